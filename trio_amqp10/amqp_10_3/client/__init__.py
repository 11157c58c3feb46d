"""The client of AMQ Protocol 10.3 for trio.

It supports contents of the class basic, tickets, transactions and alerts, and shares the rest with the client of 0-9-1. Files,
streams, distributed transactions and tunnels are only supported by the engine.
"""

from trio_amqp10.amqp091.client.channel_base import Returns
from trio_amqp10.amqp091.client.channel_opening import ChannelOpening
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
from trio_amqp10.amqp091.client.publish_content import PublishProperties
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.wire.content import BasicProperties

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
