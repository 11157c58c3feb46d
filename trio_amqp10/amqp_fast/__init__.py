"""AMQP/Fast (RFC 006, version 0.8a2 of 2005): a client for trio.

The sans-IO engine and codec below the client serve both roles, client and server. This is a historical protocol without any other
implementation to test against: it is verified against its document, with vectors, and between the two ends of this package. The
modules of this folder use no clock, socket, trio or logger. The public names are those of ``client``, which is imported when one
of them is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .client import *  # noqa: F403 - all of its names, which it lists
else:
    from trio_amqp10.core.lazy_names import names_of

    __getattr__, __dir__ = names_of(__name__, ".client")
