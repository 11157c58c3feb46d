"""AMQP 0-9-1: a client for trio, and below it the codec and the engine, sans-IO, for both roles.

The modules of this folder know no clock, socket, trio or logger. The names here are those of the client, which stands in
``client`` and is imported when one of them is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .client import (
        AccessRefusedError,
        AmqPlain,
        Backoff,
        BasicProperties,
        Change,
        Changes,
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
        DeliveryLostError,
        Dialling,
        Exchange,
        Limits,
        NackedError,
        NotFoundError,
        Outcome,
        PreconditionFailedError,
        Properties,
        Publisher,
        PublishError,
        PublishInDoubtError,
        Queue,
        ReplyLostError,
        Requester,
        RequesterOpening,
        ResourceLockedError,
        Returned,
        ReturnedError,
        Returns,
        Ticket,
        Transaction,
        TransactionInDoubtError,
        open_connection,
    )

__all__ = [
    "AccessRefusedError",
    "AmqPlain",
    "Backoff",
    "BasicProperties",
    "Change",
    "Changes",
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
    "DeliveryLostError",
    "Dialling",
    "Exchange",
    "Limits",
    "NackedError",
    "NotFoundError",
    "Outcome",
    "PreconditionFailedError",
    "Properties",
    "PublishError",
    "PublishInDoubtError",
    "Publisher",
    "Queue",
    "ReplyLostError",
    "Requester",
    "RequesterOpening",
    "ResourceLockedError",
    "Returned",
    "ReturnedError",
    "Returns",
    "Ticket",
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
