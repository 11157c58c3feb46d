"""The parts that connections of the 0-9-1 and 10.3 clients share (0-9-1, 2.2.4).

A connection passes the engine's events to its channels and wakes the tasks that wait. The pump moves octets,
``dialling_base`` opens transports, and ``recovery`` reconnects after a loss.

When the connection stops reading
---------------------------------

Only a prefetch limits deliveries. A consumer with ``no_ack``, or without a prefetch, may have more deliveries
under way than its buffer holds. Then the connection reads nothing until the program receives from that
consumer, and the transport holds the server back. While a call waits for an answer of the server, the
connection reads nevertheless, because the answer comes after these deliveries; until it comes, the buffer may
grow over its limit.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypedDict, TypeVar

import trio

from trio_amqp10.amqp091.engine.engine import Engine
from trio_amqp10.amqp091.engine.events import (
    Challenged,
    ChannelClosed,
    ChannelOpened,
    ConnectionClosed,
    ConnectionLost,
    ConnectionOpened,
    Started,
)
from trio_amqp10.amqp091.engine.states import ConnectionState
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.net.errors import fresh_copy
from trio_amqp10.net.pump import READ_SIZE, Pump, Traffic
from trio_amqp10.net.recovery_events import Changes
from trio_amqp10.net.waiters import Waiter

from .errors import ConnectionClosedError, connection_closed, connection_lost
from .reply import TransportLostError
from .topology import Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.engine.channel import Channel as EngineChannel
    from trio_amqp10.amqp091.engine.events import Event
    from trio_amqp10.net.recovery_base import RecoveryBase

DEFAULT_PREFETCH = 100
"""Unsettled deliveries under way for each consumer, if a program sets no prefetch."""


class ConnectionStatistics(TypedDict):
    """The figures of ``Connection.statistics``.

    Totals count from the opening of the connection, over all of its transports.
    """

    state: str
    """``OPEN``, or another state of the handshake or of the close."""
    transports: int
    """How often it was dialled successfully."""
    octets_in: int
    octets_out: int
    reads: int
    writes: int
    waiting: int
    """Octets that wait to be written now."""
    channels: int
    blocked: bool
    """Whether the server accepts no publishes now."""


class ClientEngine(Engine):
    """A client's engine that merges acknowledgements before each write.

    Attributes:
        unflushed: channels with pending acknowledgements.
        lost_in: the state in which the transport was lost; None if it was not lost.
    """

    __slots__ = ("lost_in", "unflushed")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.unflushed: dict[ConnectionChannel, None] = {}
        self.lost_in: ConnectionState | None = None

    def data_to_send(self) -> bytes | None:
        """Write pending acknowledgements, then return the octets to send."""
        if self.unflushed:
            for channel in self.unflushed:
                channel.flush_acks()
            self.unflushed.clear()
        return super().data_to_send()

    def has_output(self) -> bool:
        """Whether there is something to send, pending acknowledgements included."""
        return bool(self.unflushed) or super().has_output()

    def receive_eof(self, now: float) -> None:
        """Note the state, then react to the end of the peer's octets."""
        self._note_loss()
        super().receive_eof(now)

    def transport_lost(self) -> None:
        """Note the state, then react to the loss of the transport."""
        self._note_loss()
        super().transport_lost()

    def _note_loss(self) -> None:
        if self.lost_in is None and self.state is not ConnectionState.CLOSED:
            self.lost_in = self.state


class ConnectionChannel(Protocol):
    """The methods of a channel that a connection calls.

    ``ChannelBase`` implements them; a protocol avoids a circle of imports.
    """

    def wake(self) -> None:
        """Wake the tasks that wait for a change of the channel."""

    def flush_acks(self) -> None:
        """Pass the pending acknowledgements to the engine."""

    def flush_acks_if_possible(self) -> None:
        """Pass the pending acknowledgements to the engine if the channel is still open."""

    def on_opened(self) -> None:
        """React to channel.open-ok."""

    def on_closed(self, event: ChannelClosed) -> None:
        """React to the end of the channel."""

    def on_lost(self, failure: Exception | None) -> None:
        """React to the loss of the transport; ``failure`` is set if it is final."""

    def on_restored(self) -> None:
        """React to the return of the connection, its declarations and consumers."""

    def shut(self, failure: Exception | None) -> None:
        """End the channel; ``failure`` is the reason, None if it was closed here."""


C = TypeVar("C", bound=ConnectionChannel)


class ConnectionBase(Waiter, trio.abc.AsyncResource, Generic[C]):
    """One connection, with the parts that both versions share.

    Attributes:
        engine, pump: those of the current transport, or of the last one.
        close_timeout: seconds to wait for the server's answer when something is closed.
        recovery: the task that reconnects; None without ``reconnect``.
        topology: the declarations of this connection, which are repeated after a reconnect.
        channels: the channels that are not closed.
        loss: the reason of the last loss; None if the connection was never lost.
        blocked: the reason why the server accepts no publishes now, such as ``"low on memory"``; otherwise
            None. Publishes wait meanwhile.
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
        self.totals: Traffic = Traffic()
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
        """The server's product, version, capabilities and so on (0-9-1, connection.start)."""
        return self.engine.peer_properties

    @property
    def heartbeat(self) -> int:
        """The agreed heartbeat interval in seconds; 0 if there are no heartbeats.

        A server that sends nothing for two intervals is regarded as lost.
        """
        return self.engine.heartbeat

    @property
    def is_up(self) -> bool:
        """Whether channels can be used now."""
        return self._restored and not self._over

    @property
    def is_live(self) -> bool:
        """Whether there is a transport on which the handshake is complete."""
        return self._opened and not self._over

    def statistics(self) -> ConnectionStatistics:
        """Return figures: totals since the connection was opened, and the current state."""
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
        """Iterate over losses and returns of a connection that reconnects; see ``Change``.

        The iteration ends together with the connection.

        Args:
            attempts: also report each failed attempt to dial; consecutive attempts that were not read yet are
                one change.
        """
        return Changes(ended=True) if self.recovery is None else self.recovery.changes(attempts=attempts)

    async def wait_closed(self) -> None:
        """Wait until the connection is closed or lost for good.

        Raises:
            ConnectionClosedError: the connection was not closed by this program.

        Cancelled: nothing has happened.
        """
        await trio.lowlevel.checkpoint()
        while not (self._over and not self.comes_back):
            await self.wait()
        if not self.closed_here and self.loss is not None:
            raise fresh_copy(self.loss)

    async def aclose(self, code: int = 200, text: str = "") -> None:
        """Close the connection and all its channels (0-9-1, connection.close).

        Pending acknowledgements are written first.

        Args:
            code: the reply code to send.
            text: the reply-text, 255 octets at most.

        Cancelled: the close gets one second to be written.
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
        """Whether the connection reconnects after a loss."""
        return self.recovery is not None and not self.recovery.stopped and not self.closed_here

    def covers(self, loss: Exception) -> bool:
        """Whether the connection reconnects after this loss."""
        return self.recovery is not None and self.recovery.covers(loss)

    def sits_out(self, refusal: Exception) -> bool:
        """Whether the connection is being restored, and will retry the refused request."""
        return self.recovery is not None and self.recovery.sits_out(refusal)

    def declaring_channel(self) -> C:
        """Return a channel that is not opened yet, on which recovery declares again."""
        raise NotImplementedError

    def fail_requests(self, failure: Exception) -> None:
        """Fail the requests of the connection itself that have no answer yet."""

    def wake_writer(self) -> None:
        """Notify the pump that there is something to write."""
        self.pump.wake_writer()

    async def wait_recovered(self) -> None:
        """Wait until channels can be used; always execute a checkpoint.

        Raises:
            ConnectionClosedError: the connection is lost for good.
            trio.ClosedResourceError: the connection was closed here.
        """
        await trio.lowlevel.checkpoint()
        while True:
            if self.closed_here:
                raise trio.ClosedResourceError("the connection is closed")
            if self.is_up:
                return
            if not self.comes_back:
                raise fresh_copy(self.loss or connection_lost("the connection was never opened"))
            await self.wait()

    def brake(self, consumer: object) -> None:
        """Stop reading until ``consumer`` has room, except while an answer is awaited."""
        self._full[consumer] = None
        self._update_brake()

    def release(self, consumer: object) -> None:
        """Note that ``consumer`` has room again."""
        if self._full.pop(consumer, self) is None:
            self._update_brake()

    def expect(self) -> None:
        """Count a call that begins to wait for the server."""
        self._expected += 1
        if self._expected == 1 and self._full:
            self._update_brake()

    def expect_no_more(self) -> None:
        """Count a call that has finished waiting for the server."""
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
        """Use ``stream`` as the transport, before the handshake."""
        self.engine = engine
        self.attached.clear()
        self._handshake.clear()
        self._opened = self._restored = False
        self._over = False
        self.blocked = None
        self.pump = Pump(engine, stream, self._on_event, self._on_over, totals=self.totals)
        self.pump.start(nursery)

    async def next_of_handshake(self) -> Started | Challenged | ConnectionOpened:
        """Wait for the next handshake event that the login must handle."""
        while not self._handshake:
            if self._over:
                assert self.loss is not None
                raise fresh_copy(self.loss)
            await self.wait()
        event = self._handshake.popleft()
        assert isinstance(event, Started | Challenged | ConnectionOpened)
        return event

    async def hang_up(self) -> None:
        """Close the current transport.

        Cancelled: the last frames are still written, for at most one second.
        """
        await self.pump.part(partial(self.engine.close, trio.current_time()))

    def lost_to(self) -> Exception:
        """Return the reason for the loss of the last transport."""
        return self.loss or connection_lost("the transport ended")

    def on_ready(self) -> None:
        """Wake all calls: the handshake and the repeated declarations are complete."""
        self._restored = True
        for channel in list(self.channels):
            channel.on_restored()
        self.wake()

    def fail(self, failure: Exception) -> None:
        """End all channels and requests, because the connection will not be restored."""
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
    """The reaction to each event of the engine."""

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
            return connection_lost(f"the server violated the protocol: {failure}", failure)
        return connection_lost(str(failure) or repr(failure), failure)

    def go_down(self, loss: ConnectionClosedError | RemoteProtocolError) -> None:
        """React to the loss of the transport; wait for recovery or end all channels."""
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
        """Wake the tasks that wait for the connection or for one of its channels."""
        for channel in list(self.channels):
            channel.wake()
        self.wake()

    def __repr__(self) -> str:
        return f"<Connection {self.engine.state.name}, {len(self.channels)} channels>"
