"""The client of AMQP/Fast for trio: connections, channels and handles (RFC 006)."""

from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.amqp_fast.engine.message import Message
from trio_amqp10.amqp_fast.spec import MessageHead

from .channel import Channel
from .connection import Connection
from .dial import open_connection
from .errors import (
    ChannelClosedError,
    ConnectionClosedError,
    DeliveryLostError,
    HandleClosedError,
    NotAvailableError,
    TransactionInDoubtError,
)
from .handle import Delivery, Handle

__all__ = [
    "Channel",
    "ChannelClosedError",
    "Connection",
    "ConnectionClosedError",
    "Delivery",
    "DeliveryLostError",
    "Handle",
    "HandleClosedError",
    "Limits",
    "Message",
    "MessageHead",
    "NotAvailableError",
    "TransactionInDoubtError",
    "open_connection",
]
