"""A connected peer whose connection has channels: its permissions and its input.

A connection is not read while a node has not taken a message that was sent on it; while the store is crowded; and, once it
has sent a message while the container holds too many octets (``Container.watermark``), until that is over.

Knows the container and its nodes; knows no method of any dialect.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeVar

import trio

from trio_amqp10.net.waiters import OneShotEvent

from .connected_peer_base import ConnectedPeerBase
from .endpoints import Publisher
from .peer_interfaces import ChannelView, LinkView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from trio_amqp10.core.channel_engine import ChannelEngine
    from trio_amqp10.net.pump import Pump, Traffic
    from trio_amqp10.sasl.mechanism import Identity

    from .nodes.node import Node, RefusedError
    from .peer_interfaces import ServingContainer
    from .rights.guard import Need, Wish

_ASKED_EACH_TIME: Final = frozenset({"create", "delete"})
_MOST_GRANTS: Final = 1024
"""Permissions that one connection remembers; above it, all are forgotten."""


class ServedChannel(Protocol):
    """A channel of the peer."""

    @property
    def engine(self) -> Any:
        """The channel of the engine."""
        ...

    @property
    def number(self) -> int:
        """Its number on the connection."""
        ...

    def statistics(self) -> Mapping[str, Any]:
        """Return its current figures by name; ``state`` is among them."""
        ...

    def end(self) -> None:
        """End the channel: unsettled messages go back to their nodes."""
        ...


EngineT = TypeVar("EngineT", bound="ChannelEngine[Any, Any, Any, Any]")
ChannelT = TypeVar("ChannelT", bound=ServedChannel)


class _Grant:
    """A permission that was given once, as the guard reviews it."""

    def __init__(self, forget: Callable[[], object]) -> None:
        self._forget = forget

    def close(self, condition: str, description: str) -> None:
        """Forget the withdrawn permission, so that the next use asks again."""
        _ = condition, description
        self._forget()


class ChannelPeer(ConnectedPeerBase, Generic[EngineT, ChannelT]):
    """One client, while its connection lasts.

    A subclass adds ``close``, the links, and the handling of each event.

    Args:
        container: the container that serves it.
        find: returns the node of an address that the client sends to; raises ``RefusedError``.
        engine, pump, traffic: those of the connection.
        name: the name that the client chose, or one that was generated for it.
        identity: the authenticated identity of the client.
        host: the IP address of the client.

    Attributes:
        protocol: the name of the dialect.
        engine, pump: as given.
        messages_in: the number of messages that it has sent.
        messages_out: the number of messages that it was given.
        channels: the open channels, by the channel of the engine.
        publisher: an inlet for each node that it sends to by address.
        over: set when no more input will come.
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
        self.pump: Pump = pump
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

    # -- identity ---------------------------------------------------------------------------

    @property
    def container_id(self) -> str:
        """The name that the client chose, or one that was generated here."""
        return self._name

    @property
    def identity(self) -> Identity | None:
        """The authenticated identity of the client, or None."""
        return self._identity

    @property
    def host(self) -> str | None:
        """The IP address of the client; None in memory or on a Unix socket."""
        return self._host_address

    @property
    def closed(self) -> bool:
        """Whether either end has closed the connection."""
        return not self.engine.is_open

    # -- figures ----------------------------------------------------------------------------

    def links(self) -> Iterator[LinkView]:
        """Iterate over its consumers, and the addresses that it sends to."""
        yield from self.outgoing_links()
        for address in self.publisher.inlets:
            yield LinkView(
                "receiver", address, partial(self._of_inlet, address), partial(self._close_inlet, address)
            )

    def _close_inlet(self, address: str, condition: str, description: str) -> None:
        inlet = self.publisher.inlets.get(address)
        if inlet is not None:
            inlet.close(condition, description)

    def channel_views(self) -> Iterator[ChannelView]:
        """Iterate over its channels."""
        for channel in self.channels.values():
            yield ChannelView(channel.number, channel.statistics)

    def outgoing_links(self) -> Iterator[LinkView]:
        """Iterate over its consumers."""
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
        """Return the figures of the connection, named as for AMQP 1.0.

        Its channels count as sessions, its consumers as senders.
        """
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
        """End all channels, because this end closes the connection; drop unfinished input."""
        for channel in list(self.channels.values()):
            channel.end()
        self.over.set()

    def forget(self, channel: ChannelT) -> None:
        """Remove a channel that has ended and has no waiting input."""
        self.channels.pop(channel.engine, None)
        if not self.channels and self._idle is not None:
            self._idle.set()

    async def until_done(self, seconds: float) -> None:
        """Wait until the input of all channels is done, for so many seconds at most.

        Cancelled: it is not waited for.
        """
        with trio.move_on_after(seconds):
            while self.channels:
                self._idle = trio.Event()
                await self._idle.wait()

    def on_event(self, event: Any) -> None:
        """Handle an event of the engine on an open connection."""
        raise NotImplementedError

    def on_over(self) -> None:
        """Finish the input that has come: no more will come."""
        raise NotImplementedError

    def ended(self) -> None:
        """See ``ConnectedPeer.ended``."""
        super().ended()
        self.over.set()
        for channel in list(self.channels.values()):
            channel.end()
        self.channels.clear()
        self.publisher.close()
        self.watermark.forget(self._on_low)

    # -- permissions ------------------------------------------------------------------------

    def is_granted(self, wish: Wish) -> bool:
        """Whether this is permitted without asking the hook.

        That holds if nothing is refused here, if it was asked before, and for the peer's own node.
        """
        guard = self.guard
        return not guard.asks or wish in self._grants or (wish[1] is not None and guard.is_free(wish[1]))

    def ask(self, needs: Iterable[Need], then: Callable[[RefusedError | None], object]) -> bool:
        """Ask for one permission of each need, and call ``then`` with the refusal or None.

        ``then`` is called now, or in a task. Permissions that were given before are not asked for again.

        Returns:
            Whether nothing had to be asked; ``then`` is not called in that case.
        """
        missing = [need for need in needs if not any(map(self.is_granted, need))]
        if missing:
            self.guard.ask_all(missing, then, self.grant)
        return not missing

    def grant(self, wish: Wish) -> None:
        """Remember a permission for ``send``, ``receive`` or ``transact``.

        The guard reviews it when its reasons change.
        """
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

    # -- reading ----------------------------------------------------------------------------

    def on_publish(self) -> None:
        """Count a message; stop reading if the container holds too many octets."""
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
        """Notify the client, if the dialect can, that reading stops until memory is freed."""

    def on_unblocked(self) -> None:
        """Notify the client, if the dialect can, that reading goes on."""

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
            self._block()  # Stop within a message too; otherwise each connection could bring one more.
        return self._blocked or bool(self.publisher.waiting)

    def _on_roomy(self) -> None:
        self._roomy = True
        self.pump.wake_writer()
