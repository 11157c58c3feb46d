"""The client of AMQP 0-9-1 for trio, over the sans-IO engine beside it.

Structured as the client of 1.0 is, with the words of 0-9-1: connections have channels, on these exchanges and queues are
declared, and messages are published and consumed. ``trio_amqp10.amqp091`` has all public names.
"""

from trio_amqp10.amqp091.content import BasicProperties
from trio_amqp10.amqp091.limits import Limits
from trio_amqp10.net.backoff import Backoff
from trio_amqp10.peer.recovery_events import Change, Changes

from .channel import Channel
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
    NackedError,
    NotFoundError,
    PreconditionFailedError,
    PublishError,
    PublishInDoubtError,
    ResourceLockedError,
    ReturnedError,
    ReturnedMessage,
    TransactionInDoubtError,
)
from .login import AmqPlain
from .messages import PublishProperties
from .opening import ChannelOpening
from .pending_publish import Outcome, Ticket
from .publisher import Publisher
from .queues import Exchange, Queue
from .requester import ReplyLostError, Requester, RequesterOpening
from .returns import Returns
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
