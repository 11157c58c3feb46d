"""The nodes that a name stands for (RFC 006, 2.2.6, 3.5.2.2, 3.5.2.3).

If a name is the address of a node of the service, it stands for that node. For receiving, any other name stands for all nodes of
the service whose addresses begin with it, also for nodes that are added later. For sending, an empty name stands for all nodes of
the service.

Naming a node does not create it. A temporary destination is created by the opening of a handle, and deleted with the channel of
the handle. It belongs to the client with that name and user: a client of another user with the same name is a different client.
This module does not know commands.
"""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp_fast.engine.services import Service
from trio_amqp10.broker.exchanges.addresses import RESERVED, TEMPORARY
from trio_amqp10.broker.nodes.form_registry import content_of
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.broker.nodes.queue import Queue
from trio_amqp10.core.errors import Condition

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.message import Message
    from trio_amqp10.broker.connected_peer_base import ConnectedPeerBase
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.node import Node, Owner
    from trio_amqp10.container.container import Container

_log = logging.getLogger("trio_amqp10.container")

_KEPT: Final = frozenset({"maker"})
"""A temporary queue lives as long as its maker: its channel."""


class _Temporary:
    """A temporary destination.

    Args:
        node: the node of the destination.
        channel: the channel that the destination is deleted with.
        peer: the client that created it; its name and user are the owner.
    """

    __slots__ = ("channel", "node", "owner")

    def __init__(self, node: Node, channel: object, peer: ConnectedPeerBase) -> None:
        self.node = node
        self.owner = peer.owner
        self.keep(channel, peer)

    def keep(self, channel: object, peer: ConnectedPeerBase) -> None:
        """Tie the destination to a channel; its connection needs no permission for it."""
        self.channel = channel
        self.node.maker = peer


class PrefixSubscription:
    """A subscription to all nodes of a service whose addresses begin with a prefix.

    Args:
        prefix, service: select the nodes.
        identifier: identifier of a durable subscription; empty for a subscription that ends with its handle.
        begin: subscribes to one node.
        added: called with a node that is added later, to subscribe to it if that is permitted.

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
        """Subscribe to one node, or skip it if it refuses.

        An exclusive queue of another client refuses, for example.
        """
        try:
            self._begin(node, of_prefix=True)
        except RefusedError as refusal:
            _log.debug("%r is not part of the subscription to %r: %s", node, self.prefix, refusal)


class Destinations:
    """The destinations of a container, as seen by all clients of AMQP/Fast.

    Args:
        container: the container that has the nodes.
    """

    def __init__(self, container: Container) -> None:
        self._container = container
        self._temporary: dict[str, _Temporary] = {}
        self._makes_temporary = False
        self._prefixes: dict[PrefixSubscription, None] = {}
        container.node_watchers.add(self)

    def on_node_added(self, node: Node) -> None:
        """Offer a new node to the subscriptions of its prefixes; see ``NodeWatcher``."""
        if not self._makes_temporary:
            for each in list(self._prefixes):
                if _is_of(node, each.service) and node.address.startswith(each.prefix):
                    each.added(node)

    def watch(self, subscription: PrefixSubscription) -> None:
        """Offer new nodes to this subscription."""
        self._prefixes[subscription] = None

    def unwatch(self, subscription: PrefixSubscription) -> None:
        """Stop offering new nodes to this subscription."""
        self._prefixes.pop(subscription, None)

    def find_to_send(self, name: str, service: Service) -> list[Node]:
        """Return the node of this name; all nodes of the service if the name is empty.

        Raises:
            RefusedError: there is no such node.
        """
        nodes = self._container.nodes
        if not name:
            return [each for each in list(nodes.values()) if _is_of(each, service) and each.accepts_senders]
        node = nodes.get(self._container.resolve(name))
        if node is None or not _is_of(node, service):
            raise RefusedError(Condition.NOT_FOUND, f"there is no {service.name.lower()} {name!r}")
        return [node]

    def find_one(self, name: str, service: Service) -> Node | None:
        """Return the node of this name; None if there is none of the service."""
        node = self._container.nodes.get(self._container.resolve(name)) if name else None
        return node if node is not None and _is_of(node, service) else None

    def find_below(self, name: str, service: Service) -> list[Node]:
        """Return the nodes of the service whose addresses begin with this name.

        Temporary destinations and the node of exactly this name are not included.
        """
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
        """Raise ``RefusedError`` if the node is a temporary destination of another client."""
        temporary = self._temporary.get(node.address)
        if temporary is not None and temporary.node is node and temporary.owner != owner:
            raise RefusedError(
                Condition.UNAUTHORIZED_ACCESS,
                f"{node.address!r} is the temporary destination of another client",
            )

    def make_temporary(self, name: str, service: Service, channel: object, peer: ConnectedPeerBase) -> str:
        """Create a temporary destination, or take over the client's own of this name.

        A destination that is taken over is emptied.

        Returns:
            Its name, which is generated if ``name`` is empty.

        Raises:
            RefusedError: the name is reserved, or in use by another destination.
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
            raise RefusedError(Condition.UNAUTHORIZED_ACCESS, f"the name {name!r} is in use")
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
        """Delete the temporary destinations of a channel that has ended."""
        for name, each in list(self._temporary.items()):
            if each.channel is channel:
                del self._temporary[name]
                if self._container.nodes.get(name) is each.node:
                    self._container.remove_node(name)

    @staticmethod
    def content_of(message: Message) -> Content:
        """Convert a message to the content that nodes store."""
        return content_of(0, message.to_payload())


def _is_of(node: Node, service: Service) -> bool:
    """Whether a node belongs to the service; reserved nodes belong to none."""
    if node.address.startswith("$"):
        return False
    for each in (Service.QUEUE, Service.TOPIC):
        if each.name.lower() in node.capabilities:
            return service is each
    return service is Service.PEER and node.accepts_senders
