"""Peers that are the container itself: of messages that the service sends, and of what its nodes do unasked.

Knows where tasks can run; knows no links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.message import Message

from .nodes.node import RefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from .connected import ConnectedPeer
    from .host import Host
    from .nodes.content import Content
    from .nodes.ledger import Ledger
    from .nodes.node import Lease, Node, Peer
    from .stores.journal import Journal

__all__ = ["Household", "Internal", "send_within"]


async def send_within(
    name: str, address: str, message: Any, post: Callable[[str, Message, Peer], Awaitable[object]]
) -> None:
    """Send a message from the container of this name; see ``Container.send``."""
    octets = _frozen(message)
    refusal: RefusedError | None = None
    async with trio.open_nursery() as nursery:  # what it raises is not to come out as a group
        try:
            await post(address, octets, _Within(name, nursery))
        except RefusedError as refused:
            refusal = refused
    if refusal is not None:
        raise refusal


def _frozen(message: Any) -> Message:
    """A message that nobody can change any more: its octets."""
    made = message if isinstance(message, Message) else Message(message)
    return Message.from_payload(made.to_payload(), made.message_format)


class Internal:
    """A peer that is the container itself: it may do everything."""

    __slots__ = ()


class _Within(Internal):
    """The peer of messages that the service sends to itself."""

    __slots__ = ("_nursery", "container_id", "identity")

    def __init__(self, name: str, nursery: trio.Nursery) -> None:
        self.container_id = name
        self.identity: Any = None
        self._nursery = nursery

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: Any) -> None:
        self._nursery.start_soon(function, *args)


class Household(Internal):
    """The container, as its nodes see it.

    What a node starts by itself runs with the first of the hosts; where there is none, when there is one.
    """

    __slots__ = ("_find", "_hosts", "_later", "_ledger", "container_id", "identity")

    def __init__(
        self,
        name: str,
        find: Callable[[str], Node],
        hosts: Iterable[Host | ConnectedPeer],
        ledger: Ledger | None,
    ) -> None:
        self.container_id = name
        self.identity: Any = None
        self._find = find
        self._hosts = hosts
        self._ledger = ledger
        self._later: list[tuple[Callable[..., Awaitable[object]], tuple[Any, ...]]] = []

    def find(self, address: str) -> Node:
        return self._find(address)

    @property
    def journal(self) -> Journal | None:
        return None if self._ledger is None else self._ledger.journal

    def resume_lease(self, lease: Lease, content: Content | Any) -> object | None:
        return None if self._ledger is None else self._ledger.resume_lease(lease, content)

    def start_soon(self, function: Callable[..., Awaitable[object]], *args: Any) -> None:
        for host in self._hosts:
            if host.open:
                host.start_soon(function, *args)
                return
        self._later.append((function, args))

    def welcome(self, host: Host | ConnectedPeer) -> None:
        """Somebody is there."""
        later, self._later = self._later, []
        for function, args in later:
            host.start_soon(function, *args)
