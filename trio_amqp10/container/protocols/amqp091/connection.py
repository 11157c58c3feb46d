"""One connection of a client of 0-9-1 to a container: its channels, its memory of permissions, and when it is not read.

A connection is not read while a node has not taken what was published on it, while the store is crowded, and, once it has
published while the container holds too many octets (``Container.watermark``), until that is over; a client that understands
``connection.blocked`` is told so.

Knows the container and the engine; what methods of a channel do is in ``channel``.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp091.engine import Engine
from trio_amqp10.amqp091.events import (
    ChannelClosed,
    ChannelOpened,
    ConnectionClosed,
    ConnectionLost,
    SecretUpdated,
)
from trio_amqp10.container.connected import LinkView, ServedPeer
from trio_amqp10.container.endpoints import Publisher
from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.errors import Condition
from trio_amqp10.reply_codes import reply_text

from .channel import ServerChannel
from .faults import connection_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trio_amqp10.amqp091.faults import ReplyError
    from trio_amqp10.container.broker.topology import Topology
    from trio_amqp10.container.nodes.node import Node
    from trio_amqp10.container.rights.guard import Wish
    from trio_amqp10.container.service import Container
    from trio_amqp10.net.pump import Pump, Traffic
    from trio_amqp10.sasl.mechanism import Identity

__all__ = ["ServedConnection", "ServerEngine"]

_MOST_GRANTS: Final = 1024
"""Permissions that one connection remembers; above it all are asked for again."""

_BLOCKED: Final = "low on memory"


class ServerEngine(Engine):
    """The engine, which asks whether the container can take more.

    Attributes:
        crowded: whether it cannot.
    """

    crowded: Callable[[], bool] | None = None

    def wants_data(self) -> bool:
        self.braked = self.is_open and self.crowded is not None and self.crowded()
        return super().wants_data()


class _Grant:
    """A permission that was asked for once, as the guard reviews it."""

    def __init__(self, forget: Callable[[], object]) -> None:
        self._forget = forget

    def close(self, condition: str, description: str) -> None:
        """It is no longer there: the next use asks again."""
        _ = condition, description
        self._forget()


class ServedConnection(ServedPeer):
    """One client, for as long as its connection lasts.

    Args:
        container: that serves it.
        broker: its exchanges and queues.
        engine, pump, traffic: of the connection.
        identity: who the client proved to be.
        host: the IP address that it dialled from.
        reaches_running: whether ``basic.qos`` of consumers reaches those that run.

    Attributes:
        broker, engine, pump, reaches_running: as given.
        channels: those that are open.
        publisher: an inlet of each node that is published to by its address.
        over: set when nothing more comes.
    """

    def __init__(
        self,
        container: Container,
        broker: Topology,
        engine: ServerEngine,
        pump: Pump,
        traffic: Traffic,
        *,
        identity: Identity | None,
        host: str | None,
        reaches_running: bool = True,
    ) -> None:
        self._identity = identity
        self._host_address = host
        name = engine.peer_properties.get("connection_name")
        self._name = name if isinstance(name, str) and name else str(uuid.uuid4())
        super().__init__(container)
        self.broker = broker
        self.engine = engine
        self.pump = pump
        self.reaches_running = reaches_running
        self.channels: dict[Any, ServerChannel] = {}
        self.publisher = Publisher(self, self._find, pump.ring)
        self.over = trio.Event()
        self._traffic = traffic
        self._grants: dict[Wish, _Grant] = {}
        self._blocked = False
        self._roomy = True
        self._idle = trio.Event()
        engine.crowded = self._is_crowded

    # -- who it is --------------------------------------------------------------------------

    @property
    def container_id(self) -> str:
        """The client's ``connection_name``, or a name made up here."""
        return self._name

    @property
    def identity(self) -> Any:
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

    def links(self) -> Iterator[LinkView]:
        """Its consumers, and the places that it publishes to."""
        for channel in self.channels.values():
            for tag, outlet in channel.consuming.outlets.items():
                name = f"{channel.number}/{tag}"
                yield LinkView("sender", name, partial(dict, state="attached", address=outlet.address))
        for address in self.publisher.inlets:
            yield LinkView("receiver", address, partial(dict, state="attached", address=address))

    def statistics(self) -> Mapping[str, Any]:
        """Octets and calls of the transport, and how many channels there are."""
        traffic = self._traffic
        return {
            "state": self.engine.state.name.lower(),
            "protocol": "AMQP 0-9-1",
            "channels": len(self.channels),
            "octets_in": traffic.octets_in,
            "octets_out": traffic.octets_out,
            "reads": traffic.reads,
            "writes": traffic.writes,
        }

    def close(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        """As for ``ConnectedPeer``."""
        _ = info
        code = connection_code(condition)
        self.engine.close(trio.current_time(), code, reply_text(code, description))
        self._end_channels()

    def fail(self, fault: ReplyError) -> None:
        """A method broke a rule that ends the connection."""
        now = trio.current_time()
        self.engine.close(now, fault.code, fault.reply_text, fault.class_id, fault.method_id)
        self._end_channels()

    def _end_channels(self) -> None:
        """We close the connection: what came and is not done is dropped."""
        for channel in list(self.channels.values()):
            channel.end()
        self.pump.ring()
        self.over.set()

    # -- what happens -----------------------------------------------------------------------

    def on_event(self, event: Any) -> None:
        """What the engine reports of an open connection."""
        if isinstance(event, ChannelOpened):
            self.channels[event.channel] = ServerChannel(self, event.channel)
        elif isinstance(event, ChannelClosed):
            channel = self.channels.get(event.channel)
            if channel is not None:
                channel.close()
        elif isinstance(event, SecretUpdated):
            self.engine.accept_secret()
        elif isinstance(event, (ConnectionClosed, ConnectionLost)):
            self.on_over()

    def on_over(self) -> None:
        """Nothing more comes; what came is still done."""
        for channel in list(self.channels.values()):
            channel.close()
        self.over.set()

    def forget(self, channel: ServerChannel) -> None:
        """The channel is over, and nothing that came on it waits."""
        self.channels.pop(channel.engine, None)
        if not self.channels:
            self._idle.set()

    async def until_done(self, seconds: float) -> None:
        """Wait, so long at most, until what came on all channels is done. Cancelled: it is not waited for."""
        with trio.move_on_after(seconds):
            while self.channels:
                self._idle = trio.Event()
                await self._idle.wait()

    def ended(self) -> None:
        """As for ``ConnectedPeer``."""
        super().ended()
        self.over.set()
        for channel in list(self.channels.values()):
            channel.end()
        self.channels.clear()
        self.publisher.close()
        self.watermark.forget(self._on_low)
        self.broker.disown(self)

    # -- permissions ------------------------------------------------------------------------

    def is_granted(self, wish: Wish) -> bool:
        """Whether this needs no question: nothing is refused here, or it was asked before."""
        return not self.guard.asks or wish in self._grants

    def grant(self, wish: Wish) -> None:
        """It was permitted."""
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
        if self.watermark.high and not self._blocked and self.engine.is_open:
            self._blocked = True
            self.engine.block(_BLOCKED)
            self.watermark.when_low(self._on_low)

    def _on_low(self) -> None:
        self._blocked = False
        if self.engine.is_open:
            self.engine.unblock()
        self.pump.ring()

    def _is_crowded(self) -> bool:
        journal = self._container.journal
        if journal is not None and journal.crowded:
            if self._roomy:
                self._roomy = False
                journal.when_roomy(self._on_roomy)
            return True
        return self._blocked or bool(self.publisher.waiting)

    def _on_roomy(self) -> None:
        self._roomy = True
        self.pump.ring()

    def _find(self, address: str) -> Node:
        """A node that is there: what nobody declared is not made by publishing to it."""
        node = self._container.nodes.get(address)
        if node is None:
            raise RefusedError(Condition.NOT_FOUND, f"no node {address!r}")
        return node
