"""AMQ Protocol 10.3, of 2006: a client for trio, and below it what its wire has of its own, over the codec and the engine of 0-9-1.

``V10_3`` in ``profile`` is the profile to give to ``amqp091.engine.Engine``, for both roles. The modules of this folder know no clock,
socket, trio or logger. The names here are those of the client, in ``client``, which is imported when one of them is first
used. ``C`` with a number is a line of the class reference of 10.3.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .client import (
        AccessRefusedError,
        Alert,
        BasicProperties,
        Channel,
        ChannelClosedError,
        ChannelOpening,
        Connection,
        ConnectionClosedError,
        ConnectionStatistics,
        Consumer,
        ConsumerCancelledError,
        Consuming,
        Delivery,
        Dialling,
        Limits,
        MessageAbortedError,
        NotFoundError,
        PreconditionFailedError,
        PublishProperties,
        Queue,
        RedirectedError,
        ResourceLockedError,
        ReturnedMessage,
        Returns,
        Transaction,
        TransactionInDoubtError,
        open_connection,
    )

__all__ = [
    "AccessRefusedError",
    "Alert",
    "BasicProperties",
    "Channel",
    "ChannelClosedError",
    "ChannelOpening",
    "Connection",
    "ConnectionClosedError",
    "ConnectionStatistics",
    "Consumer",
    "ConsumerCancelledError",
    "Consuming",
    "Delivery",
    "Dialling",
    "Limits",
    "MessageAbortedError",
    "NotFoundError",
    "PreconditionFailedError",
    "PublishProperties",
    "Queue",
    "RedirectedError",
    "ResourceLockedError",
    "ReturnedMessage",
    "Returns",
    "Transaction",
    "TransactionInDoubtError",
    "open_connection",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(".client", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
