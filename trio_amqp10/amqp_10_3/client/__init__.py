"""The client of AMQ Protocol 10.3 for trio: what it has of its own, over what it shares with that of 0-9-1.

Contents of the class basic, tickets, transactions and alerts. Files, streams, distributed transactions and tunnels are those of
the engine alone.
"""

from trio_amqp10.amqp091.client.connection_base import ConnectionStatistics
from trio_amqp10.amqp091.client.errors import (
    AccessRefusedError,
    ChannelClosedError,
    ConnectionClosedError,
    ConsumerCancelledError,
    NotFoundError,
    PreconditionFailedError,
    ResourceLockedError,
    ReturnedMessage,
    TransactionInDoubtError,
)
from trio_amqp10.amqp091.client.messages import PublishProperties
from trio_amqp10.amqp091.client.opening import ChannelOpening
from trio_amqp10.amqp091.client.returns import Returns
from trio_amqp10.amqp091.content import BasicProperties
from trio_amqp10.amqp091.limits import Limits
from trio_amqp10.peer import frame_logging as frame_logging  # so that frames are logged here too

from .channel import Channel, Transaction
from .connection import Connection
from .dial import Dialling, open_connection
from .errors import Alert, MessageAbortedError, RedirectedError
from .queues import Consumer, Consuming, Delivery, Queue

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
