"""AMQP 0-9-1: a trio client, and a sans-IO codec and engine for both roles.

The names of this package are those of ``client``, which lists them and is imported when one of them is first
used. The modules of ``wire``, ``engine`` and ``conversion`` use no clock, socket, logger or trio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .client import *  # noqa: F403 - all of its names, which it lists
else:
    from trio_amqp10.core.lazy_names import names_of

    __getattr__, __dir__ = names_of(__name__, ".client")
