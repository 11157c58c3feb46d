"""Peers that are the container itself: for messages from within, and for nodes.

Knows where tasks can run; knows no links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.message import Message

from .nodes.node import RefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from .background_tasks import TaskRunner
    from .connected_peer import ConnectedPeer
    from .nodes.content import Content
    from .nodes.message_store import MessageStore
    from .nodes.node import Lease, Node, Peer
    from .stores.group_commit import Journal

__all__ = ["InternalPeer", "NodesPeer", "send_within"]


async def send_within(
    name: str, address: str, message: Any, post: Callable[[str, Message, Peer], Awaitable[object]]
) -> None:
    """Send a message from the container of this name; see ``Container.send``."""
    octets = _frozen(message)
    refusal: RefusedError | None = None
    async with trio.open_nursery() as nursery:  # what it raises is not to come out as a group
        try:
            await post(address, octets, _LocalSender(name, nursery))
        except RefusedError as refused:
            refusal = refused
    if refusal is not None:
        raise refusal


def _frozen(message: Any) -> Message:
    """A message that cannot be changed any more: its octets."""
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

    A task that a node starts by itself runs with the first of the runners that is open; if there is none, it waits for one.
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
        """A runner is open: start what has waited for one."""
        later, self._later = self._later, []
        for function, args in later:
            runner.start_soon(function, *args)
