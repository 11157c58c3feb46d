"""Direct replies: a consumer of the pseudo-queue ``amq.rabbitmq.reply-to`` gets replies without a queue.

Each such consumer is a node of the connection, whose address nobody can guess. A publish that names the pseudo-queue in its
``reply-to`` goes out with that address; what is published to it by the default exchange, or sent there by a function or by
a peer of another protocol, goes straight to the consumer.

A reply that its consumer cannot be sent, as its properties are larger than a frame there, is rejected: nothing ends. Whatever else
fails is the consumer's, and ends that: the peer that sent the reply goes on.

Knows one consumer; knows no queue.
"""

from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING, Final, Protocol

from trio_amqp10.container.nodes.arrival_answers import accept, refuse, release
from trio_amqp10.container.nodes.node import Node, NodeLink
from trio_amqp10.errors import Condition, LocalProtocolError

if TYPE_CHECKING:
    from trio_amqp10.container.broker.topology import Topology
    from trio_amqp10.container.nodes.content import Content
    from trio_amqp10.container.nodes.node import Inlet

__all__ = ["REPLY_TO", "REPLY_TO_ADDRESS", "ReplyConsumer", "ReplyNode", "find_reply_node", "reply_name"]

REPLY_TO: Final = "amq.rabbitmq.reply-to"
"""The pseudo-queue that a client consumes."""

REPLY_TO_ADDRESS: Final = f"{REPLY_TO}."
"""How the names begin to which replies are published."""


class ReplyConsumer(NodeLink, Protocol):
    """What replies are given to."""

    def deliver(self, content: Content) -> None:
        """Send the client a reply. Raises ``LocalProtocolError`` if its properties are larger than a frame: nothing was sent."""
        ...


class ReplyNode(Node):
    """Where the replies to one consumer are sent.

    Args:
        address: that nobody can guess.
        consumer: that is given them.
    """

    accepts_senders = True
    needs_no_permission = True

    def __init__(self, address: str, consumer: ReplyConsumer) -> None:
        super().__init__(address)
        self._consumer = consumer

    def on_arrivals(self, inlet: Inlet) -> None:
        while (arrival := inlet.take()) is not None:
            try:
                self._consumer.deliver(arrival.content)
            except LocalProtocolError as fault:
                refuse(arrival, Condition.RESOURCE_LIMIT_EXCEEDED.value, str(fault))
            except Exception:
                release(arrival)
                self.end_link(self._consumer)
            else:
                accept(arrival)


def reply_name() -> str:
    """A new name for replies, of 128 bits that nobody can guess."""
    token = base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
    return f"{REPLY_TO_ADDRESS}{token}"


def find_reply_node(broker: Topology, name: str) -> ReplyNode | None:
    """The node of the consumer with this name for replies; None if it is gone."""
    node = broker.find_node(name)
    return node if isinstance(node, ReplyNode) else None
