"""The outlets of a handle: consumers, replies of functions, and browsing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp_fast.conversion.translate import to_fast
from trio_amqp10.amqp_fast.engine.states import ChannelState, HandleState
from trio_amqp10.broker.endpoints import GivenLease, WindowOutlet
from trio_amqp10.broker.nodes.node import NotTakenError, SubscriptionTerms
from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp_fast.engine.message import Message as FastMessage
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.form_registry import Wants
    from trio_amqp10.broker.nodes.node import Node

    from .handle import ServerHandle


class HandleOutlet(WindowOutlet):
    """Gives messages of one node to a handle.

    Args:
        handle: the handle that receives them.
        node: the node that has them.
        wants, subscription_terms: as for ``WindowOutlet``.
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
        """Stop giving messages; messages that were given are not affected."""
        self._handle.channel.stalled.pop(self, None)
        self._detach()

    def _deliver(self, content: Content, lease: GivenLease) -> None:
        raise NotImplementedError


class ConsumerOutlet(HandleOutlet):
    """A subscription, with a limit of messages that wait for an ACK.

    Args:
        identifier: identifier of a durable subscription; empty for a subscription that ends with its handle.
        unreliable: whether the client sends no acknowledgements.
        of_prefix: whether the subscription is one of a prefix, so that the handle stays open without this node.
        others: as for ``HandleOutlet``.

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
            raise NotTakenError(f"the head of the message cannot be encoded: {fault}") from fault
        handle.channel.peer.messages_out += 1
        if self._unreliable:
            lease.accepted()
        else:
            handle.channel.leases[number] = lease


class ReplyOutlet(HandleOutlet):
    """The replies of a function to the requests of one handle.

    Args:
        target: the address for replies, which the requests contain.
        handle, node: as for ``HandleOutlet``.
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
            raise NotTakenError(f"the head of the message cannot be encoded: {fault}") from fault
        handle.channel.peer.messages_out += 1
        lease.accepted()


def _message_of(content: Content) -> FastMessage:
    try:
        return to_fast(content)
    except Exception as fault:
        raise NotTakenError(f"the message cannot be converted: {fault!r}") from fault


def look(handle: ServerHandle, node: Node, wants: Callable[[Content], bool]) -> Content | None:
    """Return the first matching message of a node, without removing it."""
    found: list[Content] = []

    def note(content: Content, lease: GivenLease) -> None:
        found.append(content)
        lease.accepted()

    outlet = WindowOutlet(
        handle.channel.peer,
        node,
        note,
        do_nothing,
        window=None,
        wants=lambda content, _: wants(content),
        copying=True,
    )
    node.pull(outlet)
    return found[0] if found else None


def do_nothing(*_: object) -> None:
    """Do nothing, as a callback."""
