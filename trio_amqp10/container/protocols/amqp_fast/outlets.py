"""Outlets of a handle: a consumer, which has a window; the replies of a function; and a look at what a queue has.

Know leases and messages; what the client says is in ``handle``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp_fast.states import ChannelState, HandleState
from trio_amqp10.container.endpoints import GivenLease, WindowOutlet
from trio_amqp10.container.nodes.node import NotTakenError, SubscriptionTerms
from trio_amqp10.errors import LocalProtocolError

from .translate import to_fast

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp_fast.message import Message as FastMessage
    from trio_amqp10.container.nodes.content import Content
    from trio_amqp10.container.nodes.form_registry import Wants
    from trio_amqp10.container.nodes.node import Node

    from .handle import ServerHandle

__all__ = ["ConsumerOutlet", "ReplyOutlet", "look"]


class HandleOutlet(WindowOutlet):
    """What gives messages of one node to a handle.

    Args:
        handle: that receives them.
        node: that has them.
        wants, subscription_terms: as of ``WindowOutlet``.
    """

    def __init__(
        self,
        handle: ServerHandle,
        node: Node,
        *,
        wants: Wants | None = None,
        subscription_terms: SubscriptionTerms | None = None,
    ) -> None:
        super().__init__(
            handle.channel.peer,
            node,
            self._deliver,
            self._on_closed,
            window=None,
            wants=wants,
            subscription_terms=subscription_terms,
        )
        self.address: str = node.address
        self._handle = handle

    def ready(self) -> bool:
        handle = self._handle
        channel = handle.channel
        if not super().ready():
            return False
        if (
            channel.engine.state is ChannelState.OPEN
            and handle.engine.state is HandleState.OPEN
            and channel.peer.engine.has_room
            and self._may_send()
        ):
            return True
        channel.stalled[self] = None
        return False

    def _may_send(self) -> bool:
        return True

    def _on_closed(self, condition: str | None, description: str | None) -> None:
        self._handle.on_outlet_closed(self, condition, description)

    def wake(self) -> None:
        if self._handle.channel.settling:
            self._handle.channel.stalled[self] = None
        else:
            super().wake()

    def stop(self) -> None:
        """Nothing more is given; what was given stays as it is."""
        self._handle.channel.stalled.pop(self, None)
        self._detach()

    def _deliver(self, content: Content, lease: GivenLease) -> None:
        raise NotImplementedError


class ConsumerOutlet(HandleOutlet):
    """A subscription: so many messages may wait for an ACK at a time.

    Args:
        identifier: of a durable subscription; empty for one that ends with its handle.
        unreliable: whether the client acknowledges nothing.
        of_prefix: whether the client has named a prefix, so that the handle goes on without this node.
        others: as of ``HandleOutlet``.

    Attributes:
        identifier, of_prefix: as given.
    """

    def __init__(
        self,
        handle: ServerHandle,
        node: Node,
        identifier: str,
        *,
        unreliable: bool,
        of_prefix: bool = False,
        **others: Any,
    ) -> None:
        super().__init__(handle, node, **others)
        self.identifier = identifier
        self.of_prefix = of_prefix
        self.final: bool = not identifier
        self._unreliable = unreliable

    def _may_send(self) -> bool:
        handle = self._handle
        if handle.paused:
            return False
        return self._unreliable or handle.channel.engine.numbers.count(handle.engine.id) < handle.prefetch

    def _deliver(self, content: Content, lease: GivenLease) -> None:
        handle = self._handle
        message = _message_of(content)
        try:
            number = handle.engine.notify(
                message, self.address, redelivered=lease.redelivered, unreliable=self._unreliable
            )
        except LocalProtocolError as fault:
            if handle.engine.state is not HandleState.OPEN:
                raise
            raise NotTakenError(f"its head cannot be written: {fault}") from fault
        handle.channel.peer.messages_out += 1
        if self._unreliable:
            lease.accepted()
        else:
            handle.channel.leases[number] = lease


class ReplyOutlet(HandleOutlet):
    """Where a function sends its replies to the requests of one handle.

    Args:
        target: the address for replies, that stands in the requests.
        handle, node: as of ``HandleOutlet``.
    """

    def __init__(self, handle: ServerHandle, node: Node, target: str) -> None:
        super().__init__(handle, node, subscription_terms=SubscriptionTerms(name=target))
        self.target: str | None = target

    def _deliver(self, content: Content, lease: GivenLease) -> None:
        handle = self._handle
        message = _message_of(content)
        try:
            handle.engine.notify(message, self.address)
        except LocalProtocolError as fault:
            raise NotTakenError(f"its head cannot be written: {fault}") from fault
        handle.channel.peer.messages_out += 1
        lease.accepted()


def _message_of(content: Content) -> FastMessage:
    try:
        return to_fast(content)
    except Exception as fault:
        raise NotTakenError(f"it cannot be translated: {fault!r}") from fault


def look(handle: ServerHandle, node: Node, wants: Callable[[Content], bool]) -> Content | None:
    """The first available message of a node that this wants; it stays where it is."""
    found: list[Content] = []

    def note(content: Content, lease: GivenLease) -> None:
        found.append(content)
        lease.accepted()

    outlet = WindowOutlet(
        handle.channel.peer,
        node,
        note,
        _nothing,
        window=None,
        wants=lambda content, _: wants(content),
        copying=True,
    )
    node.pull(outlet)
    return found[0] if found else None


def _nothing(*_: object) -> None:
    """Nothing is to be done."""
