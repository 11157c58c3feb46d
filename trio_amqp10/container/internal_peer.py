"""The container as a peer of its own nodes.

``Container.send`` and tasks of nodes act as such a peer. Knows where tasks can run; knows no links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp10.message import Message
from trio_amqp10.broker.nodes.node import RefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from trio_amqp10.broker.background_tasks import TaskRunner
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.message_store import MessageStore
    from trio_amqp10.broker.nodes.node import Lease, Node, Peer
    from trio_amqp10.broker.peer_interfaces import ConnectedPeer
    from trio_amqp10.broker.stores.group_commit import Journal


async def send_within(
    name: str, address: str, message: Any, post: Callable[[str, Message, Peer], Awaitable[object]]
) -> None:
    """Send a message from the container of this name; see ``Container.send``."""
    octets = _frozen(message)
    refusal: RefusedError | None = None
    # A refusal is raised after the nursery: from inside, it would propagate in an exception group.
    async with trio.open_nursery() as nursery:
        try:
            await post(address, octets, _LocalSender(name, nursery))
        except RefusedError as refused:
            refusal = refused
    if refusal is not None:
        raise refusal


def _frozen(message: Any) -> Message:
    """Return the message as octets, which the caller cannot change any more."""
    made = message if isinstance(message, Message) else Message(message)
    return Message.from_payload(made.to_payload(), made.message_format)


class InternalPeer:
    """A peer that is the container itself: it may do everything."""

    __slots__ = ()


class _LocalSender(InternalPeer):
    """The peer of messages that the program sends with ``Container.send``."""

    __slots__ = ("_nursery", "container_id", "identity")

    def __init__(self, name: str, nursery: trio.Nursery) -> None:
        self.container_id = name
        self.identity: Any = None
        self._nursery = nursery

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: Any) -> None:
        self._nursery.start_soon(function, *args)


class NodesPeer(InternalPeer):
    """The container as a peer of its nodes; a ``ContainerPeer``.

    A task that a node starts by itself runs with the first runner that is open. If no runner is open, it starts when one
    joins.
    """

    __slots__ = ("_find", "_later", "_message_store", "_runners", "container_id", "identity")

    def __init__(
        self,
        name: str,
        find: Callable[[str], Node],
        runners: Iterable[TaskRunner | ConnectedPeer],
        message_store: MessageStore | None,
    ) -> None:
        self.container_id: Final = name
        self.identity: Any = None
        self._find = find
        self._runners = runners
        self._message_store = message_store
        self._later: list[tuple[Callable[..., Awaitable[object]], tuple[Any, ...]]] = []

    def find(self, address: str) -> Node:
        return self._find(address)

    @property
    def journal(self) -> Journal | None:
        return None if self._message_store is None else self._message_store.journal

    def resume_lease(self, lease: Lease, content: Content | Any) -> object | None:
        return None if self._message_store is None else self._message_store.resume_lease(lease, content)

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: Any) -> None:
        for runner in self._runners:
            if runner.open:
                runner.start_soon(function, *args)
                return
        self._later.append((function, args))

    def welcome(self, runner: TaskRunner | ConnectedPeer) -> None:
        """Start the tasks that waited for a runner."""
        later, self._later = self._later, []
        for function, args in later:
            runner.start_soon(function, *args)
