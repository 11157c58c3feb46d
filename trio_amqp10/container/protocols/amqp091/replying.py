"""Direct replies: a consumer of the pseudo-queue ``amq.rabbitmq.reply-to`` gets replies without a queue.

Each such consumer is a node of the connection, whose address nobody can guess. A publish that names the pseudo-queue in its
``reply-to`` goes out with that address; what is published to it by the default exchange, or sent there by a function or by
a peer of another protocol, goes straight to the consumer.

Knows one consumer; knows no queue.
"""

from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING, Final

from trio_amqp10.container.nodes.node import Node
from trio_amqp10.container.nodes.refusals import accept

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.container.broker.topology import Topology
    from trio_amqp10.container.nodes.content import Content
    from trio_amqp10.container.nodes.node import Inlet

__all__ = ["REPLY_TO", "REPLY_TO_ADDRESS", "ReplyNode", "find_reply_node", "reply_name"]

REPLY_TO: Final = "amq.rabbitmq.reply-to"
"""The pseudo-queue that a client consumes."""

REPLY_TO_ADDRESS: Final = f"{REPLY_TO}."
"""How the names begin to which replies are published."""


class ReplyNode(Node):
    """Where the replies to one consumer are sent.

    Args:
        address: that nobody can guess.
        deliver: gives the consumer a reply.
    """

    takes = True
    unasked = True

    def __init__(self, address: str, deliver: Callable[[Content], object]) -> None:
        super().__init__(address)
        self._deliver = deliver

    def on_arrivals(self, inlet: Inlet) -> None:
        while (arrival := inlet.take()) is not None:
            self._deliver(arrival.content)
            accept(arrival)


def reply_name() -> str:
    """A new name for replies, of 128 bits that nobody can guess."""
    token = base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
    return f"{REPLY_TO_ADDRESS}{token}"


def find_reply_node(broker: Topology, name: str) -> ReplyNode | None:
    """The node of the consumer with this name for replies; None if it is gone."""
    node = broker.find_node(name)
    return node if isinstance(node, ReplyNode) else None
