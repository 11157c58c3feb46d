"""What connections of 0-9-1 and of 10.3 have in common for a program: their channels, and their end (0-9-1, 2.2.4).

Turns events of the engine into objects and wake-ups. Octets are the pump's business, transports those of ``dialling``, and what
happens after a loss that of ``recovery``.

What is read while nothing is consumed
--------------------------------------

A prefetch alone limits deliveries. A consumer that settles nothing, or that has no prefetch, may have more under
way than its buffer takes: then the whole connection is not read until a program receives from it, and the transport holds
the server back. While any call waits for an answer of the server the connection is read in any case, because the answer
stands behind these deliveries; until it comes the buffer may grow over its bound.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypedDict, TypeVar

import trio

from trio_amqp10.amqp091.engine import Engine
from trio_amqp10.amqp091.events import (
    Challenged,
    ChannelClosed,
    ChannelOpened,
    ConnectionClosed,
    ConnectionLost,
    ConnectionOpened,
    Started,
)
from trio_amqp10.amqp091.states import ConnectionState
from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.net.pump import READ_SIZE, Pump
from trio_amqp10.net.waiters import Waiter
from trio_amqp10.peer.recovery_events import Changes
from trio_amqp10.peer.statistics import ConnectionCounters

from .errors import ConnectionClosedError, connection_closed, connection_lost
from .reply import TransportLostError, anew
from .topology import Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.channel import Channel as EngineChannel
    from trio_amqp10.amqp091.events import Event
    from trio_amqp10.peer.recovery_base import RecoveryBase

__all__ = ["DEFAULT_PREFETCH", "ClientEngine", "ConnectionBase", "ConnectionStatistics"]

DEFAULT_PREFETCH = 100
"""Unsettled deliveries under way for each consumer, unless a program says otherwise."""


class ConnectionStatistics(TypedDict):
    """What ``Connection.statistics`` reports. Totals are since it was opened, whatever transports it had since."""

    state: str
    """``OPEN``, or another state of the handshake or the end."""
    transports: int
    """How often it was dialled with success."""
    octets_in: int
    octets_out: int
    reads: int
    writes: int
    waiting: int
    """Octets that wait to be written now."""
    channels: int
    blocked: bool
    """Whether the server takes no publishes now."""


class ClientEngine(Engine):
    """A client's engine, before whose writes acknowledgements are merged.

    Attributes:
        unflushed: channels with acknowledgements that wait.
        lost_in: the state in which the transport was lost; None if it was not.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.unflushed: dict[ConnectionChannel, None] = {}
        self.lost_in: ConnectionState | None = None

    def data_to_send(self) -> bytes | None:
        """As ``Engine.data_to_send``."""
        if self.unflushed:
            for channel in self.unflushed:
                channel.flush_acks()
            self.unflushed.clear()
        return super().data_to_send()

    def has_output(self) -> bool:
        """As ``Engine.has_output``."""
        return bool(self.unflushed) or super().has_output()

    def receive_eof(self, now: float) -> None:
        """As ``Engine.receive_eof``."""
        self._note_loss()
        super().receive_eof(now)

    def transport_lost(self) -> None:
        """As ``Engine.transport_lost``."""
        self._note_loss()
        super().transport_lost()

    def _note_loss(self) -> None:
        if self.lost_in is None and self.state is not ConnectionState.CLOSED:
            self.lost_in = self.state


class ConnectionChannel(Protocol):
    """What a connection asks of its channels."""

    def wake(self) -> None:
        """Look again: something has changed."""

    def flush_acks(self) -> None:
        """Hand the acknowledgements that wait to the engine."""

    def flush_acks_if_possible(self) -> None:
        """As ``flush_acks``, unless the channel is over."""

    def on_opened(self) -> None:
        """The server has opened it."""

    def on_closed(self, event: ChannelClosed) -> None:
        """The server has closed it."""

    def on_lost(self, failure: Exception | None) -> None:
        """The transport was lost; ``failure`` if for good."""

    def on_restored(self) -> None:
        """The connection is back, and all that was there."""

    def shut(self, failure: Exception | None) -> None:
        """Nothing can be done on it any more."""


C = TypeVar("C", bound=ConnectionChannel)


class ConnectionBase(Waiter, trio.abc.AsyncResource, Generic[C]):
    """One connection, with what versions have in common.

    Attributes:
        engine, pump: of the transport that there is now, or was last.
        close_timeout: seconds to wait for the server's answer when something is closed.
        recovery: brings it back; None without ``reconnect``.
        topology: what was declared on it.
        channels: those that are not closed.
        loss: why it was lost last; None if it never was.
        blocked: why the server takes no publishes now, such as ``"low on memory"``; None if it does. Publishes wait meanwhile.
    """

    def __init__(self, close_timeout: float) -> None:
        super().__init__()
        self.engine: ClientEngine
        self.pump: Pump
        self.close_timeout = close_timeout
        self.recovery: RecoveryBase[Any] | None = None
        self.topology: Topology = Topology()
        self.channels: dict[C, None] = {}
        self.attached: dict[EngineChannel, C] = {}
        self.loss: ConnectionClosedError | RemoteProtocolError | None = None
        self.blocked: str | None = None
        self.braked: bool = False
        self.totals: ConnectionCounters = ConnectionCounters()
        self.closed_here: bool = False
        self._opened = False
        self._restored = False
        self._over = True
        self._handshake: deque[Event] = deque()
        self._full: dict[object, None] = {}
        self._expected = 0

    # -- what it is -------------------------------------------------------------------------

    @property
    def server_properties(self) -> Mapping[str, Any]:
        """What the server says of itself: product, version, capabilities and so on (0-9-1, connection.start)."""
        return self.engine.peer_properties

    @property
    def heartbeat(self) -> int:
        """Seconds of the interval that was agreed; 0 for none. A server that is silent for two intervals is given up."""
        return self.engine.heartbeat

    @property
    def is_up(self) -> bool:
        """Whether channels can be used now."""
        return self._restored and not self._over

    @property
    def is_live(self) -> bool:
        """Whether there is a transport on which the handshake is done."""
        return self._opened and not self._over

    def statistics(self) -> ConnectionStatistics:
        """What it has done since it was opened, and where it stands: plain figures."""
        totals = self.totals
        return {
            "state": self.engine.state.name,
            "transports": totals.transports,
            "octets_in": totals.octets_in,
            "octets_out": totals.octets_out,
            "reads": totals.reads,
            "writes": totals.writes,
            "waiting": self.engine.queued,
            "channels": len(self.channels),
            "blocked": self.blocked is not None,
        }

    def changes(self, *, attempts: bool = False) -> Changes:
        """Iterate over losses and returns of a connection that reconnects; see ``Change``. Ends with the connection.

        Args:
            attempts: report each attempt to dial that fails, too; those in a row that were not read yet are one change.
        """
        return Changes(ended=True) if self.recovery is None else self.recovery.changes(attempts=attempts)

    async def wait_closed(self) -> None:
        """Wait until the connection is over for good.

        Raises:
            ConnectionClosedError: not by our own close.

        Cancelled: nothing has happened.
        """
        await trio.lowlevel.checkpoint()
        while not (self._over and not self.comes_back):
            await self.wait()
        if not self.closed_here and self.loss is not None:
            raise anew(self.loss)

    async def aclose(self, code: int = 200, text: str = "") -> None:
        """Close it, and all its channels (0-9-1, connection.close). Acknowledgements that wait are written first.

        Args:
            code: the reply code to send.
            text: the reply-text, 255 octets at most.

        Cancelled: the close gets a second to be written.
        """
        if not self.closed_here:
            if self.recovery is not None:
                self.recovery.stop()
            self.closed_here = True
            if not self._over:
                for channel in list(self.channels):
                    channel.flush_acks_if_possible()
                self.engine.close(trio.current_time(), code, text)
            for channel in list(self.channels):
                channel.shut(None)
            self.fail_requests(trio.ClosedResourceError("the connection was closed"))
            self._over = True
            self._update_brake()
            self.pump.wake_writer()
            self.wake()
        await self.pump.finish(self.close_timeout + 1.0)

    # -- what its channels use --------------------------------------------------------------

    @property
    def comes_back(self) -> bool:
        """Whether a loss is not the end."""
        return self.recovery is not None and not self.recovery.stopped and not self.closed_here

    def covers(self, loss: Exception) -> bool:
        """Whether this loss is not the end."""
        return self.recovery is not None and self.recovery.covers(loss)

    def sits_out(self, refusal: Exception) -> bool:
        """Whether the connection is coming back, and tries again what was refused so."""
        return self.recovery is not None and self.recovery.sits_out(refusal)

    def declaring_channel(self) -> C:
        """A channel that is yet to be opened, on which what was declared is declared again."""
        raise NotImplementedError

    def fail_requests(self, failure: Exception) -> None:
        """Requests of the connection itself will not be answered."""

    def wake_writer(self) -> None:
        """There is something to write."""
        self.pump.wake_writer()

    async def wait_recovered(self) -> None:
        """Wait until channels can be used; a checkpoint in any case.

        Raises:
            ConnectionClosedError: they never will be again.
            trio.ClosedResourceError: the connection was closed here.
        """
        await trio.lowlevel.checkpoint()
        while True:
            if self.closed_here:
                raise trio.ClosedResourceError("the connection is closed")
            if self.is_up:
                return
            if not self.comes_back:
                raise anew(self.loss or connection_lost("it was never opened"))
            await self.wait()

    def brake(self, consumer: object) -> None:
        """A consumer has enough: read nothing until it has room, unless an answer is awaited."""
        self._full[consumer] = None
        self._update_brake()

    def release(self, consumer: object) -> None:
        """A consumer has room."""
        if self._full.pop(consumer, self) is None:
            self._update_brake()

    def expect(self) -> None:
        """A call begins to wait for the server."""
        self._expected += 1
        if self._expected == 1 and self._full:
            self._update_brake()

    def expect_no_more(self) -> None:
        """A call waits no more."""
        self._expected -= 1
        if not self._expected and self._full:
            self._update_brake()

    def _update_brake(self) -> None:
        self.braked = bool(self._full)
        braked = self.braked and not self._expected and not self.closed_here
        if self.engine.braked is not braked:
            self.engine.braked = braked
            self.pump.wake_writer()

    # -- one transport ----------------------------------------------------------------------

    def begin(self, engine: ClientEngine, stream: trio.abc.Stream, nursery: trio.Nursery) -> None:
        """Have a transport, on which the handshake begins."""
        self.engine = engine
        self.attached.clear()
        self._handshake.clear()
        self._opened = self._restored = False
        self._over = False
        self.blocked = None
        self.pump = Pump(engine, stream, self._on_event, self._on_over, totals=self.totals)
        self.pump.start(nursery)

    async def next_of_handshake(self) -> Started | Challenged | ConnectionOpened:
        """The server's next method of the handshake that needs an answer, or its end."""
        while not self._handshake:
            if self._over:
                assert self.loss is not None
                raise anew(self.loss)
            await self.wait()
        event = self._handshake.popleft()
        assert isinstance(event, Started | Challenged | ConnectionOpened)
        return event

    def on_ready(self) -> None:
        """The handshake is done, and what was declared is there again: channels can be used."""
        self._restored = True
        for channel in list(self.channels):
            channel.on_restored()
        self.wake()

    def fail(self, failure: Exception) -> None:
        """It will not come back."""
        if not isinstance(failure, ConnectionClosedError | RemoteProtocolError):
            failure = connection_lost(str(failure), failure)
        self.loss = failure
        for channel in list(self.channels):
            channel.shut(failure)
        self.fail_requests(failure)
        self.wake()

    # -- what the engine and the pump report ------------------------------------------------

    def _on_event(self, event: Event) -> None:
        react = self.REACTIONS.get(type(event))
        if react is not None:
            react(self, event)

    def _on_handshake(self, event: Event) -> None:
        if isinstance(event, ConnectionOpened):
            self._opened = True
            self.pump.read_size = READ_SIZE
            self.totals.transports += 1
        self._handshake.append(event)
        self.wake()

    def _on_closed(self, event: ConnectionClosed) -> None:
        self.go_down(connection_closed(event.close, self.engine.methods))

    def _on_lost(self, event: ConnectionLost) -> None:
        failure = self.pump.failure
        if failure is None:
            self.go_down(connection_lost(event.reason))
        else:
            self.go_down(self._loss_for(failure))

    def _on_channel_opened(self, event: ChannelOpened) -> None:
        channel = self.attached.get(event.channel)
        if channel is not None:
            channel.on_opened()

    def _on_channel_closed(self, event: ChannelClosed) -> None:
        channel = self.attached.get(event.channel)
        if channel is not None:
            channel.on_closed(event)

    REACTIONS: ClassVar[Mapping[type[Event], Callable[[Any, Any], None]]] = {
        Started: _on_handshake,
        Challenged: _on_handshake,
        ConnectionOpened: _on_handshake,
        ConnectionClosed: _on_closed,
        ConnectionLost: _on_lost,
        ChannelOpened: _on_channel_opened,
        ChannelClosed: _on_channel_closed,
    }
    """What each event of the engine is answered with."""

    def _on_over(self) -> None:
        failure = self.pump.failure
        if failure is not None:
            self.go_down(self._loss_for(failure))
        elif self.pump.finished.is_set():
            self.go_down(connection_lost("the transport ended"))
        self.wake()

    def _loss_for(self, failure: BaseException) -> ConnectionClosedError | RemoteProtocolError:
        if isinstance(failure, RemoteProtocolError):
            if not self._opened:
                return failure
            return connection_lost(f"the server broke a rule: {failure}", failure)
        return connection_lost(str(failure) or repr(failure), failure)

    def go_down(self, loss: ConnectionClosedError | RemoteProtocolError) -> None:
        """The transport is of no use any more."""
        if self._over:
            return
        self._over = True
        self.loss = loss
        self.blocked = None
        self._full.clear()
        self._update_brake()
        final = None if self.covers(loss) else loss
        if self._opened:
            for channel in list(self.channels):
                channel.on_lost(final)
        self.fail_requests(TransportLostError("the transport was lost") if final is None else final)
        self.wake_all()

    def wake_all(self) -> None:
        """Have all that waits look again."""
        for channel in list(self.channels):
            channel.wake()
        self.wake()

    def __repr__(self) -> str:
        return f"<Connection {self.engine.state.name}, {len(self.channels)} channels>"
