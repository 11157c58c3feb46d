"""AMQP/Fast (RFC 006, 0.8a2 of 2005): a client for trio, and below it the codec and the engine, sans-IO, for both roles.

A historical protocol: verified by its document, by vectors and by the two ends here; there is no other implementation to
test against. The modules of this folder know no clock, socket, trio or logger. The names here are those of the client, in
``client``, which is imported when one of them is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .client import (
        Channel,
        ChannelClosedError,
        Connection,
        ConnectionClosedError,
        Delivery,
        Handle,
        HandleClosedError,
        Limits,
        Message,
        MessageHead,
        NotAvailableError,
        open_connection,
    )

__all__ = [
    "Channel",
    "ChannelClosedError",
    "Connection",
    "ConnectionClosedError",
    "Delivery",
    "Handle",
    "HandleClosedError",
    "Limits",
    "Message",
    "MessageHead",
    "NotAvailableError",
    "open_connection",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(".client", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
