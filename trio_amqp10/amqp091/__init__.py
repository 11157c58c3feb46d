"""AMQP 0-9-1: a client for trio, and below it the codec and the engine, sans-IO, for both roles.

The modules of this folder know no clock, socket, trio or logger. The names here are those of the client, which stands in
``client``, lists them, and is imported when one of them is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .client import *  # noqa: F403 - all of its names, which it lists
else:
    from trio_amqp10.lazy_names import names_of

    __getattr__, __dir__ = names_of(__name__, ".client")
