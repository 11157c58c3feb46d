"""The AMQP 0-9-1 client for trio, on top of the sans-IO engine.

It has the structure of the AMQP 1.0 client, with the terms of 0-9-1: a connection has channels; on a channel, a
program declares exchanges and queues, and publishes and consumes messages. ``trio_amqp10.amqp091`` has all
public names.
"""

from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.wire.content import BasicProperties
from trio_amqp10.net.backoff import Backoff
from trio_amqp10.net.recovery_events import Change, Changes

from .channel import Channel
from .channel_base import Returns
from .channel_opening import ChannelOpening
from .connection import Connection, ConnectionStatistics
from .consumer import Consumer, Consuming
from .delivery import Delivery
from .dial import Dialling, open_connection
from .errors import (
    AccessRefusedError,
    ChannelClosedError,
    ConnectionClosedError,
    ConsumerCancelledError,
    DeliveryLostError,
    NotFoundError,
    PreconditionFailedError,
    ResourceLockedError,
    ReturnedMessage,
    TransactionInDoubtError,
)
from .login import AmqPlain
from .pending_publish import (
    NackedError,
    Outcome,
    PublishError,
    PublishInDoubtError,
    ReturnedError,
    Ticket,
)
from .publish_content import PublishProperties
from .publisher import Publisher
from .queues import Exchange, Queue
from .requester import ReplyLostError, Requester, RequesterOpening
from .transaction import Transaction

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
    "PublishError",
    "PublishInDoubtError",
    "PublishProperties",
    "Publisher",
    "Queue",
    "ReplyLostError",
    "Requester",
    "RequesterOpening",
    "ResourceLockedError",
    "ReturnedError",
    "ReturnedMessage",
    "Returns",
    "Ticket",
    "Transaction",
    "TransactionInDoubtError",
    "open_connection",
]
