"""A connected peer whose connection has channels: what it was permitted, and when it is not read.

A connection is not read while a node has not taken what was sent on it, while the store is crowded, and, once it has sent while
the container holds too many octets (``Container.watermark``), until that is over.

Knows the container and its nodes; knows no method of any dialect.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeVar

import trio

from trio_amqp10.container.connected_peer import LinkView
from trio_amqp10.container.connected_peer_base import ConnectedPeerBase
from trio_amqp10.container.endpoints import Publisher
from trio_amqp10.net.waiters import OneShotEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from trio_amqp10.container.connected_peer import ServingContainer
    from trio_amqp10.container.nodes.node import Node, RefusedError
    from trio_amqp10.container.rights.guard import Need, Wish
    from trio_amqp10.net.pump import Pump, Traffic
    from trio_amqp10.sasl.mechanism import Identity

__all__ = ["ChannelPeer", "EngineWithChannels"]

_ASKED_EACH_TIME: Final = frozenset({"create", "delete"})
_MOST_GRANTS: Final = 1024
"""Permissions that one connection remembers; above it all are asked for again."""


class EngineWithChannels(Protocol):
    """The engine of a connection, as far as it is the same in each dialect."""

    crowded: Callable[[], bool] | None

    @property
    def is_open(self) -> bool:
        """Whether neither end has closed it."""
        ...

    @property
    def queued(self) -> int:
        """Octets that wait to be written."""
        ...

    @property
    def partial_octets(self) -> int:
        """Octets of messages that are not complete."""
        ...

    @property
    def has_room_for_answers(self) -> bool:
        """Whether the peer may make us write more."""
        ...

    @property
    def state(self) -> Any:
        """A member of the dialect's enumeration of states."""
        ...


class ServedChannel(Protocol):
    """A channel of the peer."""

    @property
    def engine(self) -> Any:
        """The channel of the engine."""
        ...

    def end(self) -> None:
        """Nothing more is done on it; what is unsettled goes back."""
        ...


EngineT = TypeVar("EngineT", bound=EngineWithChannels)
ChannelT = TypeVar("ChannelT", bound=ServedChannel)


class _Grant:
    """A permission that was asked for once, as the guard reviews it."""

    def __init__(self, forget: Callable[[], object]) -> None:
        self._forget = forget

    def close(self, condition: str, description: str) -> None:
        """It is no longer there: the next use asks again."""
        _ = condition, description
        self._forget()


class ChannelPeer(ConnectedPeerBase, Generic[EngineT, ChannelT]):
    """One client, for as long as its connection lasts.

    A subclass adds ``close``, the links, and what it does with each event.

    Args:
        container: that serves it.
        find: the node of an address that is sent to; raises ``RefusedError``.
        engine, pump, traffic: of the connection.
        name: that the client gave itself, or that was made up for it.
        identity: who the client proved to be.
        host: the IP address that it dialled from.

    Attributes:
        protocol: the name of the dialect.
        engine, pump: as given.
        messages_in: that it has sent.
        messages_out: that it was given.
        channels: those that are open, by the channel of the engine.
        publisher: an inlet of each node that is sent to by its address.
        over: set when nothing more comes.
        postponed: channels with methods that wait for another turn; nothing more is read meanwhile.
    """

    protocol: ClassVar[str]

    # A connection has more attributes than a dictionary shares keys for: slots are a kilobyte less.
    __slots__ = (
        "_blocked",
        "_grants",
        "_host_address",
        "_identity",
        "_idle",
        "_name",
        "_roomy",
        "_traffic",
        "channels",
        "engine",
        "messages_in",
        "messages_out",
        "over",
        "postponed",
        "publisher",
        "pump",
    )

    def __init__(
        self,
        container: ServingContainer,
        find: Callable[[str], Node],
        engine: EngineT,
        pump: Pump,
        traffic: Traffic,
        *,
        name: str,
        identity: Identity | None,
        host: str | None,
    ) -> None:
        self._name = name
        self._identity = identity
        self._host_address = host
        super().__init__(container)
        self.engine: EngineT = engine
        self.pump: Final = pump
        self.messages_in: int = 0
        self.messages_out: int = 0
        self.channels: dict[Any, ChannelT] = {}
        self.publisher: Final = Publisher(self, find, pump.wake_writer)
        self.over: OneShotEvent = OneShotEvent()
        self.postponed: int = 0
        self._traffic = traffic
        self._grants: dict[Wish, _Grant] = {}
        self._blocked = False
        self._roomy = True
        self._idle: trio.Event | None = None
        engine.crowded = self._is_crowded

    # -- who it is --------------------------------------------------------------------------

    @property
    def container_id(self) -> str:
        """The name that the client gave itself, or one that was made up here."""
        return self._name

    @property
    def identity(self) -> Identity | None:
        """Who the client proved to be, or None."""
        return self._identity

    @property
    def host(self) -> str | None:
        """The IP address that the client dialled from; None in memory or on a Unix socket."""
        return self._host_address

    @property
    def closed(self) -> bool:
        """Whether the connection is over, by either end."""
        return not self.engine.is_open

    # -- figures ----------------------------------------------------------------------------

    def links(self) -> Iterator[LinkView]:
        """What it receives by, and the places that it sends to."""
        yield from self.outgoing_links()
        for address in self.publisher.inlets:
            yield LinkView("receiver", address, partial(self._of_inlet, address))

    def outgoing_links(self) -> Iterator[LinkView]:
        """What it receives by."""
        raise NotImplementedError

    def _of_inlet(self, address: str) -> dict[str, Any]:
        inlet = self.publisher.inlets.get(address)
        return {
            "state": "GONE" if inlet is None else "ATTACHED",
            "address": address,
            "messages": self.publisher.counts.get(address, 0),
            "buffered": 0 if inlet is None else len(inlet),
        }

    def statistics(self) -> Mapping[str, Any]:
        """As those of a connection of AMQP 1.0; its channels are its sessions, what it receives by its senders."""
        traffic = self._traffic
        return {
            "state": "OPENED" if self.engine.is_open else self.engine.state.name,
            "protocol": self.protocol,
            "transports": 1,
            "octets_in": traffic.octets_in,
            "octets_out": traffic.octets_out,
            "messages_in": self.messages_in,
            "messages_out": self.messages_out,
            "reads": traffic.reads,
            "writes": traffic.writes,
            "waiting": self.engine.queued,
            "sessions": len(self.channels),
            "senders": sum(1 for _ in self.outgoing_links()),
            "receivers": len(self.publisher.inlets),
            "unsettled_out": self.leases,
        }

    # -- the end ----------------------------------------------------------------------------

    def end_channels(self) -> None:
        """We close the connection: what came and is not done is dropped."""
        for channel in list(self.channels.values()):
            channel.end()
        self.over.set()

    def forget(self, channel: ChannelT) -> None:
        """The channel is over, and nothing that came on it waits."""
        self.channels.pop(channel.engine, None)
        if not self.channels and self._idle is not None:
            self._idle.set()

    async def until_done(self, seconds: float) -> None:
        """Wait, so long at most, until what came on all channels is done. Cancelled: it is not waited for."""
        with trio.move_on_after(seconds):
            while self.channels:
                self._idle = trio.Event()
                await self._idle.wait()

    def on_event(self, event: Any) -> None:
        """What the engine reports of an open connection."""
        raise NotImplementedError

    def on_over(self) -> None:
        """Nothing more comes; what came is still done."""
        raise NotImplementedError

    def ended(self) -> None:
        """As for ``ConnectedPeer``."""
        super().ended()
        self.over.set()
        for channel in list(self.channels.values()):
            channel.end()
        self.channels.clear()
        self.publisher.close()
        self.watermark.forget(self._on_low)

    # -- permissions ------------------------------------------------------------------------

    def is_granted(self, wish: Wish) -> bool:
        """Whether this needs no question: nothing is refused here, it was asked before, or the node is the peer's own."""
        guard = self.guard
        return not guard.asks or wish in self._grants or (wish[1] is not None and guard.is_free(wish[1]))

    def ask(self, needs: Iterable[Need], then: Callable[[RefusedError | None], object]) -> bool:
        """Call ``then`` with None if one permission of each need is given, otherwise with the refusal; now, or in a task.

        What was permitted before is not asked again.

        Returns:
            Whether nothing had to be asked; ``then`` is not called in that case.
        """
        missing = [need for need in needs if not any(map(self.is_granted, need))]
        if missing:
            self.guard.ask_all(missing, then, self.grant)
        return not missing

    def grant(self, wish: Wish) -> None:
        """It was permitted: ``send``, ``receive`` and ``transact`` are remembered, until the guard reviews them."""
        if wish[0] in _ASKED_EACH_TIME or wish in self._grants:
            return
        if len(self._grants) >= _MOST_GRANTS:
            for each in list(self._grants):
                self._revoke(each)
        grant = self._grants[wish] = _Grant(partial(self._revoke, wish))
        self.guard.remember(grant, wish)

    def _revoke(self, wish: Wish) -> None:
        grant = self._grants.pop(wish, None)
        if grant is not None:
            self.guard.forget(grant)

    # -- when it is not read ----------------------------------------------------------------

    def on_publish(self) -> None:
        """A message has come: where the container holds too many, no more of them are read."""
        self.messages_in += 1
        if self.watermark.high and not self._blocked and self.engine.is_open:
            self._block()

    def _block(self) -> None:
        self._blocked = True
        self.on_blocked()
        self.watermark.when_low(self._on_low)

    def _on_low(self) -> None:
        self._blocked = False
        if self.engine.is_open:
            self.on_unblocked()
        self.pump.wake_writer()

    def on_blocked(self) -> None:
        """Tell the client, if the dialect has a word for it, that it is not read until memory is freed."""

    def on_unblocked(self) -> None:
        """Tell the client, if the dialect has a word for it, that it is read again."""

    def _is_crowded(self) -> bool:
        if self.postponed:
            return True
        journal = self._container.journal
        if journal is not None and journal.crowded:
            if self._roomy:
                self._roomy = False
                journal.when_roomy(self._on_roomy)
            return True
        if not self._blocked and self.watermark.high and self.engine.partial_octets:
            self._block()  # in the middle of a message, or each connection could bring one more
        return self._blocked or bool(self.publisher.waiting)

    def _on_roomy(self) -> None:
        self._roomy = True
        self.pump.wake_writer()
