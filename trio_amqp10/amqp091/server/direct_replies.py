"""Direct replies: the pseudo-queue ``amq.rabbitmq.reply-to``, without a queue.

Each consumer of the pseudo-queue is a node of its connection, with a secret address. A publish whose
``reply-to`` names the pseudo-queue is forwarded with that address. A message that is published to the address
by the default exchange, or sent there by a function or by a peer of another protocol, goes directly to the
consumer.

A reply that cannot be sent to the consumer, because its properties are larger than a frame there, is rejected,
and nothing ends. Any other failure ends the consumer; the peer that sent the reply is not affected.
"""

from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING, Final, Protocol

from trio_amqp10.broker.nodes.arrival_answers import accept, refuse, release
from trio_amqp10.broker.nodes.node import Node, NodeLink
from trio_amqp10.core.errors import Condition, LocalProtocolError

if TYPE_CHECKING:
    from trio_amqp10.broker.exchanges.topology import Topology
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.node import Inlet

REPLY_TO: Final = "amq.rabbitmq.reply-to"
"""The pseudo-queue that a client consumes."""

REPLY_TO_ADDRESS: Final = f"{REPLY_TO}."
"""The begin of the routing keys of replies."""


class ReplyConsumer(NodeLink, Protocol):
    """A consumer of direct replies, as its node uses it."""

    def deliver(self, content: Content) -> None:
        """Send the client a reply.

        Raises:
            LocalProtocolError: its properties are larger than a frame; nothing was sent.
        """
        ...


class ReplyNode(Node):
    """The node that receives the replies for one consumer.

    Args:
        address: its secret address.
        consumer: the consumer.
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
    """Return a new secret routing key of 128 bits for replies."""
    token = base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
    return f"{REPLY_TO_ADDRESS}{token}"


def find_reply_node(broker: Topology, name: str) -> ReplyNode | None:
    """Return the node of the consumer with this routing key; None if it has ended."""
    node = broker.find_node(name)
    return node if isinstance(node, ReplyNode) else None
