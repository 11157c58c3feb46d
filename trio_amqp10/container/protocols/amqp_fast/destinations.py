"""Destinations: which nodes a name means for each service, and temporary ones (RFC 006, 2.2.6, 3.5.2.2, 3.5.2.3).

A name that is the address of a node of the service means that node. To receive, any other name means all such nodes whose
addresses begin with it, those that are added later too; to send, an empty name means all there are. No node is made by being named; a temporary one is made by
the handle that is opened to it, and goes with the channel of that handle. It belongs to the client of that name and user: a client
of another user with the same name is another client.

Knows nodes; knows no command.
"""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp_fast.services import Service
from trio_amqp10.container.broker.addresses import RESERVED, TEMPORARY
from trio_amqp10.container.nodes.form_registry import content_of
from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.container.nodes.queue import Queue
from trio_amqp10.errors import Condition

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.container.connected_peer_base import ConnectedPeerBase
    from trio_amqp10.container.container import Container
    from trio_amqp10.container.nodes.content import Content
    from trio_amqp10.container.nodes.node import Node, Owner
    from trio_amqp10.message import Message

__all__ = ["Destinations", "PrefixSubscription"]

_log = logging.getLogger("trio_amqp10.container")

_KEPT: Final = frozenset({"maker"})
"""What keeps a temporary queue: its channel."""


class _Temporary:
    """A temporary destination.

    Args:
        node: that it is.
        owner: the name and the user of the client that made it.
        channel: with which it goes.
    """

    __slots__ = ("channel", "node", "owner")

    def __init__(self, node: Node, channel: object, peer: ConnectedPeerBase) -> None:
        self.node = node
        self.owner = peer.owner
        self.keep(channel, peer)

    def keep(self, channel: object, peer: ConnectedPeerBase) -> None:
        """It goes with this channel from now on, whose connection needs no permission for it."""
        self.channel = channel
        self.node.maker = peer


class PrefixSubscription:
    """A subscription to all destinations of a service whose names begin with ``prefix``.

    Args:
        prefix, service: which destinations.
        identifier: of a durable subscription; empty for one that ends with its handle.
        begin: subscribes to one destination.
        added: called with a destination that is added later, to subscribe to it if that is permitted.

    Attributes:
        prefix, service, identifier, added: as given.
    """

    def __init__(
        self,
        prefix: str,
        service: Service,
        identifier: str,
        begin: Callable[..., object],
        added: Callable[[Node], object],
    ) -> None:
        self.prefix = prefix
        self.service = service
        self.identifier = identifier
        self.added = added
        self._begin = begin

    def subscribe(self, node: Node) -> None:
        """Subscribe to one destination; one that refuses it, such as an exclusive queue of another client, is left out."""
        try:
            self._begin(node, of_prefix=True)
        except RefusedError as refusal:
            _log.debug("%r is left out of the subscription to %r: %s", node, self.prefix, refusal)


class Destinations:
    """The destinations of a container, as all clients of AMQP/Fast see them.

    Args:
        container: that has the nodes.
    """

    def __init__(self, container: Container) -> None:
        self._container = container
        self._temporary: dict[str, _Temporary] = {}
        self._makes_temporary = False
        self._prefixes: dict[PrefixSubscription, None] = {}
        container.node_watchers.add(self)

    def on_node_added(self, node: Node) -> None:
        """As of ``NodeWatcher``: what subscribes to a prefix of its name subscribes to it."""
        if not self._makes_temporary:
            for each in list(self._prefixes):
                if _is_of(node, each.service) and node.address.startswith(each.prefix):
                    each.added(node)

    def watch(self, subscription: PrefixSubscription) -> None:
        """Have it told of nodes that are added."""
        self._prefixes[subscription] = None

    def unwatch(self, subscription: PrefixSubscription) -> None:
        """It is over."""
        self._prefixes.pop(subscription, None)

    def find_to_send(self, name: str, service: Service) -> list[Node]:
        """The node of this name; all of the service if the name is empty.

        Raises:
            RefusedError: there is no such node.
        """
        nodes = self._container.nodes
        if not name:
            return [each for each in list(nodes.values()) if _is_of(each, service) and each.accepts_senders]
        node = nodes.get(self._container.resolve(name))
        if node is None or not _is_of(node, service):
            raise RefusedError(Condition.NOT_FOUND, f"no {service.name.lower()} {name!r}")
        return [node]

    def find_one(self, name: str, service: Service) -> Node | None:
        """The node of this name, if it is of the service."""
        node = self._container.nodes.get(self._container.resolve(name)) if name else None
        return node if node is not None and _is_of(node, service) else None

    def find_below(self, name: str, service: Service) -> list[Node]:
        """All nodes of the service whose addresses begin with this name, but for temporary ones and the node of this name."""
        own = self.find_one(name, service)
        return [
            each
            for each in list(self._container.nodes.values())
            if each is not own
            and _is_of(each, service)
            and each.address.startswith(name)
            and each.address not in self._temporary
        ]

    def check_owner(self, node: Node, owner: Owner) -> None:
        """Raise ``RefusedError`` if it is the temporary destination of another client."""
        temporary = self._temporary.get(node.address)
        if temporary is not None and temporary.node is node and temporary.owner != owner:
            raise RefusedError(
                Condition.UNAUTHORIZED_ACCESS,
                f"{node.address!r} is the temporary destination of another client",
            )

    def make_temporary(self, name: str, service: Service, channel: object, peer: ConnectedPeerBase) -> str:
        """Make a temporary destination, or take the one that the client has of this name, without its messages.

        Returns:
            Its name, which is made up if ``name`` is empty.

        Raises:
            RefusedError: another has the name, or it is reserved.
        """
        if name.startswith(RESERVED):
            raise RefusedError(Condition.UNAUTHORIZED_ACCESS, f"{name!r} is reserved: choose another name")
        name = name or f"{TEMPORARY}{secrets.token_urlsafe(16)}"
        there = self._temporary.get(name)
        if there is not None and there.owner == peer.owner and _is_of(there.node, service):
            there.keep(channel, peer)
            if isinstance(there.node, Queue):
                there.node.purge()
            return name
        if name in self._container.nodes:
            raise RefusedError(Condition.UNAUTHORIZED_ACCESS, f"there is a destination {name!r}")
        self._makes_temporary = True
        try:
            node = (
                self._container.make_temporary(name, _KEPT)
                if service is Service.QUEUE
                else self._container.add_topic(name)
            )
        finally:
            self._makes_temporary = False
        self._temporary[name] = _Temporary(node, channel, peer)
        return name

    def drop_temporaries(self, channel: object) -> None:
        """The channel is over, and its temporary destinations with it."""
        for name, each in list(self._temporary.items()):
            if each.channel is channel:
                del self._temporary[name]
                if self._container.nodes.get(name) is each.node:
                    self._container.remove_node(name)

    @staticmethod
    def content_of(message: Message) -> Content:
        """The content that nodes have of a message."""
        return content_of(0, message.to_payload())


def _is_of(node: Node, service: Service) -> bool:
    """Whether a node is of the service; reserved ones are of none."""
    if node.address.startswith("$"):
        return False
    for each in (Service.QUEUE, Service.TOPIC):
        if each.name.lower() in node.capabilities:
            return service is each
    return service is Service.PEER and node.accepts_senders
