"""The pump moves octets between a stream and an engine of any dialect.

Two tasks, and what a cancel can touch
--------------------------------------

The *reader* waits for octets, gives them to the engine, tells the adapter what happened, wakes
what was touched, and wakes the writer. It never waits for a consumer: credit and windows are what
hold a peer back, so reading on is what keeps a connection alive. A dialect without credit has only the
transport to hold a peer back: while its engine says that it wants no data, nothing is read. The writer and the timer go on,
and each ``wake_writer`` asks the engine again. After a failure everything is read, and nothing used.

The *writer* is the only task that ever calls ``send_all``. It takes what the engine has to send,
all of it at once, and writes; where there is nothing, it sleeps until it is woken or until the
engine's next deadline, and is the timer too. User code changes the engine synchronously, and the engine
wakes the writer with its first octets (``Engine.on_output``); whatever many tasks said until it runs again leaves in one write. Where nobody
wakes it for a second, the writer ends: the next ``wake_writer``, or the engine's deadline, starts another. So a connection
that is idle is one task, the reader.

Both are shielded from the user's cancellation. ``send_all`` cancelled in the middle leaves a stream that nobody can use, so a
user's cancel never reaches it: only ``cancel`` does, which the connection calls on its way out, after the close handshake or its
time-out. The writer has one scope, and one ``ScheduledCall`` for all its deadlines: a scope with a deadline for each wait and each
write would be a fifth of the cost of a message that is sent alone. The call may come early, never late: if nothing is due yet, it is
scheduled again. So a deadline that only moves on, as that of a write, costs one assignment.

What one read brought may be 256 KiB, and a third of a second's work. So the engine takes it in slices, and
between two of them all other tasks have their turn, whatever the peer sends. Of all connections that have
more than a slice to read, or whose peer is not trusted with more than a small read yet, one has a turn at a time, see
``read_turns``: a hundred handshakes that go on at the same moment take a hundred passes, and hold up nobody. What is woken is
woken slice by slice, and if a turn is over before all is woken, the rest waits for the next, and no more is read before it. The writer waits for the last slice of a read, or for sixteen, or for 20 ms, because a write for each slice would
cost more than the slices.

Errors of the peer's and of the transport are kept in ``failure`` and never raised here: they reach the user through the
calls that need the connection. ``finished`` is set last, when the stream is closed. ``on_over`` is called for both, since
no event need go with either. What an engine, or who is told its events, raises without meaning to is logged, and ends
this connection and no other.

What an engine offers stands in ``engine_interface``; what may look at the octets, in ``octet_log``.
"""

from __future__ import annotations

import logging
from collections import deque
from math import inf
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.errors import AmqpError, LocalProtocolError

from .octet_log import new_octet_log
from .read_turns import ReadTurn
from .scheduled_call import ScheduledCall
from .waiters import OneShotEvent, Waiter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .engine_interface import Engine, Wakeable

__all__ = ["READ_SIZE", "Pump", "Traffic"]

READ_SIZE: Final = 256 * 1024
"""Octets of one read from a peer that is known: many frames for one system call."""

_FIRST_READ_SIZE: Final = 16 * 1024
"""Octets of one read from a stranger: whoever connects may have us hold no more than that."""

_LINGER: Final = 1.0

_REST: Final = 1.0
"""Seconds of silence after which the writer ends: to start it anew costs some microseconds, and to keep it 3 KB."""

_SLICES_BETWEEN_WRITES: Final = 16
_SECONDS_BETWEEN_WRITES: Final = 0.02
"""What a read waits for before its answers are written, whichever comes first: others may have turns between its slices."""

_log = logging.getLogger("trio_amqp10.pump")


class Traffic:
    """Octets and calls of the stream, by all pumps that were given this.

    Attributes:
        octets_in, octets_out: above TLS and WebSockets.
        reads, writes: times that octets came, and were written.
    """

    __slots__ = ("octets_in", "octets_out", "reads", "writes")

    def __init__(self) -> None:
        self.octets_in: int = 0
        self.octets_out: int = 0
        self.reads: int = 0
        self.writes: int = 0


def _nothing(*_: object) -> None:
    """Nobody is told any more."""


class Pump:
    """One engine on one stream.

    Args:
        engine: what the octets mean.
        stream: where they come from and go to; closed when the pump is finished.
        on_event: told each event, at once and synchronously.
        on_over: called when ``failure`` is set, and when ``finished`` is.
        write_stall: seconds that one write may take; None for any time.
        totals: where octets, reads and writes are counted.

    Attributes:
        failure: what went wrong first, or None.
        finished: set when the stream is closed.
        read_size: octets of one read; small, until the owner of the pump trusts the peer with more.
    """

    __slots__ = (
        "_awaits_eof",
        "_brake",
        "_due",
        "_ended_at",
        "_engine",
        "_flushed",
        "_held_back",
        "_idle",
        "_log",
        "_lost",
        "_nursery",
        "_on_event",
        "_on_over",
        "_reader",
        "_reading",
        "_rest",
        "_rests",
        "_scheduled",
        "_scheduled_at",
        "_sending",
        "_sleeper",
        "_slicing",
        "_stopped",
        "_stream",
        "_taking",
        "_totals",
        "_turn",
        "_wants_data",
        "_woken",
        "_write_stall",
        "_writer",
        "failure",
        "finished",
        "read_size",
    )

    def __init__(
        self,
        engine: Engine,
        stream: trio.abc.Stream,
        on_event: Callable[[Any], None],
        on_over: Callable[[], None],
        write_stall: float | None = 30.0,
        totals: Traffic | None = None,
    ) -> None:
        self._totals = totals or Traffic()
        self._engine = engine
        self._log = new_octet_log()
        self._stream = stream
        self._on_event = on_event
        self._on_over = on_over
        self._write_stall = inf if write_stall is None else write_stall
        self._woken = False
        self._slicing = False  # a read is taken in slices, and the writer waits for the last of them
        self._idle = False
        self._lost = False
        self._wants_data: Callable[[], bool] | None = getattr(engine, "wants_data", None)
        self._awaits_eof: Callable[[], bool] | None = getattr(engine, "awaits_eof", None)
        self._held_back = False  # the reader is, and waits for the brake to be released
        self._brake = Waiter()
        self._flushed = Waiter()
        self._sleeper = Waiter()
        self._reader = trio.CancelScope(shield=True)
        self._reading = True
        self._turn = ReadTurn()
        self._taking = False  # the reader takes what came, and goes on with the rest itself
        self._rest: deque[Wakeable] | None = (
            None  # that is to be woken in another turn, before all else that the engine did
        )
        self._writer: trio.CancelScope | None = None
        self._nursery: trio.Nursery | None = None
        self._rests = False  # there is no writer: only the scheduled call starts one, or ``wake_writer``
        self._due = inf  # when the writer must not wait any more, or has written for too long
        self._scheduled: ScheduledCall | None = None
        self._scheduled_at = inf
        self._sending = False
        self._stopped = False
        self._ended_at = 0.0  # when it failed, or said its last words
        self.failure: BaseException | None = None
        self.finished: Final = OneShotEvent()
        engine.on_output = self.wake_writer
        self.read_size: int = _FIRST_READ_SIZE

    def start(self, nursery: trio.Nursery) -> None:
        """Begin; ``nursery`` must outlive the connection."""
        self._nursery = nursery
        nursery.start_soon(self._read)
        nursery.start_soon(self._write, _REST)

    def wake_writer(self) -> None:
        """There is something to send, the engine may want data again, or it has a new deadline.

        For octets to send the engine calls it itself.
        """
        self._woken = True
        self._idle = False
        if self._slicing:
            return
        if self._held_back:
            self._brake.wake()
        if self._rests:
            self._resume(_REST)
        else:
            self._sleeper.wake()

    def _resume(self, patience: float) -> None:
        """Start a writer where the last one rests."""
        if self._rests:
            assert self._nursery is not None
            self._rests = False
            self._nursery.start_soon(self._write, patience)

    def _schedule(self, at: float) -> None:
        """Have ``_on_scheduled`` called then, or before."""
        if at < self._scheduled_at:
            if self._scheduled is not None:
                self._scheduled.cancel()
            self._scheduled_at = at
            self._scheduled = ScheduledCall(at, self._on_scheduled)

    def _on_scheduled(self) -> None:
        self._scheduled, self._scheduled_at = None, inf
        if trio.current_time() < self._due:
            self._schedule(self._due)
        elif self._rests:
            self._resume(0.0)
        elif self._sending:
            assert self._writer is not None
            self._writer.cancel()
        else:
            self._sleeper.wake()

    def cancel(self) -> None:
        """Stop where it stands: nothing more is read or written."""
        self._stopped = True
        self._reader.cancel()
        if self._writer is not None:
            self._writer.cancel()
        self._resume(0.0)  # to close the stream

    async def abort(self) -> None:
        """Stop where it stands, and wait until the stream is closed; cancelled: it is waited for all the same."""
        self.cancel()
        with trio.CancelScope(shield=True):
            await self.finished.wait()

    async def finish(self, seconds: float) -> None:
        """Wait, so long at most, until our close is answered and the stream is closed; stop where it stands then.

        Cancelled: the close gets a second to be written.
        """
        try:
            with trio.move_on_after(seconds):
                await self.finished.wait()
        except trio.Cancelled:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 1.0):
                await self.finished.wait()
            raise
        finally:
            await self.abort()

    async def part(self, say_goodbye: Callable[[], object]) -> None:
        """End a conversation that has failed: have the last words written, and stop a second later at most.

        Args:
            say_goodbye: closes the engine, if it has not failed by itself; called at once.

        Cancelled: the last words are written all the same.
        """
        with trio.CancelScope(shield=True):
            say_goodbye()
            self.wake_writer()
            await self.finish(_LINGER)

    async def flushed(self) -> None:
        """Wait until all that the engine has to send is written, or the pump is finished."""
        while not self._idle and not self.finished.is_set():
            await self._flushed.wait()

    def feed(self, call: Callable[..., None], *args: Any) -> None:
        """Have the engine do something that the peer may have made fail, and tell what came of it."""
        if self._log is not None and args and call == self._engine.receive_slice:
            self._log.read(args[0])
        try:
            try:
                call(*args)
            except LocalProtocolError:
                raise  # nobody here gave an order: the engine is at fault
            except AmqpError as failure:
                # The engine has said its last words already. The frames of the traceback hold what the peer sent.
                self._fail(failure.with_traceback(None))
            self.settle()
        except Exception as bug:
            self._break(bug)

    def settle(self) -> None:
        """Tell events, wake what was touched, and then the writer, if it has something to do.

        What the turn is over for, another goes on with.
        """
        engine = self._engine
        if self._rest is None:
            # All events of a slice, whatever time it is: no task may see the state of the engine before the event that explains it.
            while (event := engine.next_event()) is not None:
                self._on_event(event)
            while touched := engine.take_touched():  # who is woken may touch others, or itself to go last
                if not self._wake(touched):
                    break
        if self._held_back or engine.has_output() or self._due_in_engine() < self._due:
            self.wake_writer()

    def _wake(self, touched: Iterable[Wakeable]) -> bool:
        """Wake these until the turn is over, and the others in another turn; whether there is time for more."""
        is_over = self._turn.turns.is_over
        items = iter(touched)
        for item in items:
            item.wake()
            if is_over():
                self._put_off(deque(items))
                return False
        return True

    def _put_off(self, rest: deque[Wakeable]) -> None:
        """Go on with these, and then with what else the engine did, in another turn."""
        self._rest = rest
        if not self._taking:
            self._turn.turns.later(self._settle_rest)

    def _settle_rest(self) -> None:
        """Go on; at least one of them is woken, whatever time it is."""
        rest, self._rest = self._rest, None
        if rest is None:
            return  # the reader was faster
        try:
            if self._wake(rest):
                self.settle()
        except Exception as bug:
            self._break(bug)

    def _fail(self, failure: BaseException) -> None:
        if self.failure is None:
            self.failure = failure
            self._ended_at = trio.current_time()
            self._on_over()

    def _break(self, bug: Exception) -> None:
        """What must not happen did, so nothing that the engine says can be relied on: stop."""
        _log.error("the engine failed, and its connection with it", exc_info=bug)
        self._fail(bug)
        self.cancel()

    def _lose(self, cause: BaseException) -> None:
        self._lost = True
        self._fail(cause)
        self.feed(self._engine.transport_lost)

    async def _read(self) -> None:
        engine, stream, totals = self._engine, self._stream, self._totals
        try:
            with self._reader:
                while True:
                    if self._wants_data is not None:
                        await self._until_wanted(self._wants_data)
                    try:
                        data = await stream.receive_some(self.read_size)
                    except Exception as lost:  # BrokenResourceError; somebody's own stream may raise others
                        self._lose(lost)
                        return
                    if not data:
                        self.feed(engine.receive_eof, trio.current_time())
                        return
                    totals.reads += 1
                    totals.octets_in += len(data)
                    await self._take(bytes(data))
                    del data  # or an idle connection would hold what it read last
        finally:
            self._turn.release()
            self._reading = False
            self._flushed.wake()

    async def _until_wanted(self, wants_data: Callable[[], bool]) -> None:
        """Wait while the engine wants no data; then have it read first what it has."""
        try:
            while self.failure is None:
                if not wants_data():
                    self._held_back = True
                    await self._brake.wait()
                    self._held_back = False
                elif self._engine.has_input():
                    await self._take(b"")
                else:
                    return
        except Exception as bug:
            self._break(bug)

    async def _take(self, data: bytes) -> None:
        """Have the engine read these octets, and others have their turn after each slice but the last."""
        engine, turn = self._engine, self._turn
        if turn.due or self.read_size < READ_SIZE:
            await turn.take()
        slices, written = 0, trio.current_time()
        self._taking = True
        try:
            while True:
                slices += 1
                now = trio.current_time()
                self._slicing = (
                    slices % _SLICES_BETWEEN_WRITES != 0 and now - written < _SECONDS_BETWEEN_WRITES
                )
                if not self._slicing:
                    written = now
                began = turn.began()
                self.feed(engine.receive_slice, data, now)
                turn.charge(began)
                while self._rest is not None:
                    await turn.next()
                    began = turn.began()
                    self._settle_rest()
                    turn.charge(began)
                if not engine.has_input() or not (self._wants_data is None or self._wants_data()):
                    break  # in the second case ``_until_wanted`` goes on with what is left
                await turn.next()
                data = b""
        finally:
            self._slicing = self._taking = False
            if self._rest is not None:  # cancelled
                turn.turns.later(self._settle_rest)
            if self._woken:
                self.wake_writer()
        if turn.held:
            await turn.rest()

    async def _write(self, patience: float) -> None:
        try:
            try:
                await self._write_all(patience)
            except Exception as bug:
                self._break(bug)
            if not self._rests and self._lingers():
                await self._linger()
        finally:
            if not self._rests:
                if self._scheduled is not None:
                    self._scheduled.cancel()
                self._reader.cancel()
                await self._close_stream()
                began = self._turn.began()
                self.feed(self._engine.transport_lost)
                while self._rest is not None:  # all are notified now; long work of each goes on later
                    self._settle_rest()
                self.finished.set()
                self._flushed.wake()
                self._on_over()
                self._let_go()
                self._turn.charge(began)

    def _let_go(self) -> None:
        """Leave no reference cycle behind, so that what the connection consisted of is freed now.

        Otherwise the garbage collector has to find it, at a pass over all objects of the process.
        """
        self._on_event, self._on_over = _nothing, _nothing
        failure = self.failure
        while failure is not None:
            failure.__traceback__ = None  # its frames hold the pump, which holds the failure
            failure = failure.__cause__ or failure.__context__

    async def _write_all(self, patience: float) -> None:
        """Write until the engine has nothing more to say, ever; or rest, ``patience`` seconds after it was last woken."""
        with self._shield() as scope:
            while (data := self._octets()) is not None and not self._stopped:
                if data:
                    if not await self._send(data):
                        return
                    if self._woken or self._engine.has_output():
                        continue
                if await self._sleep(patience):
                    patience = _REST
                elif (due := self._due_in_engine()) <= trio.current_time():
                    self.feed(self._engine.handle_timer, trio.current_time())
                else:
                    self._writer, self._rests = None, True
                    self._due = due
                    self._schedule(due)
                    return
        if scope.cancelled_caught and not self._stopped:
            self._lose(TimeoutError(f"the peer read nothing for {self._write_stall:g} s"))

    async def _sleep(self, patience: float) -> bool:
        """Wait until the writer is woken, the engine's deadline has come, or for ``patience`` seconds; whether it was woken."""
        self._idle = True
        self._flushed.wake()
        self._due = min(self._due_in_engine(), trio.current_time() + patience)
        self._schedule(self._due)
        while not self._woken and trio.current_time() < self._due:
            await self._sleeper.wait()
        return self._woken

    def _due_in_engine(self) -> float:
        deadline = self._engine.next_deadline()
        return inf if deadline is None else deadline

    def _shield(self, deadline: float = inf) -> trio.CancelScope:
        """For what the writer does: until ``deadline``, or until ``cancel``."""
        self._writer = trio.CancelScope(shield=True, deadline=deadline)
        if self._stopped:
            self._writer.cancel()
        return self._writer

    def _octets(self) -> bytes | None:
        """What there is to write, as ``data_to_send`` has it."""
        self._woken = False
        self._idle = False
        began = self._turn.began()
        data = self._engine.data_to_send()
        if self._rest is None:
            self._wake(self._engine.take_touched())
        if not data:
            self._turn.turns.end()
        else:
            self._turn.charge(began)
            if self._log is not None:
                self._log.written(data)
        if self._held_back:
            self._brake.wake()  # what waits to be written may have been why
        return data

    async def _send(self, data: bytes) -> bool:
        """Write all of it; False where the transport is of no use any more."""
        now = trio.current_time()
        self._due = now + self._write_stall
        self._schedule(min(self._due, now + _REST))  # as the sleep behind it
        self._sending = True
        try:
            await self._stream.send_all(data)
        except Exception as lost:  # as in reading
            self._lose(lost)
            return False
        finally:
            self._sending = False
        self._totals.writes += 1
        self._totals.octets_out += len(data)
        return True

    def _lingers(self) -> bool:
        """Whether to read on behind our last words; begins the time for that."""
        if self.failure is not None:
            return True
        if self._awaits_eof is None or not self._awaits_eof():
            return False
        self._ended_at = trio.current_time()
        return True

    async def _linger(self) -> None:
        """Let the peer read our last words: closing over its unread octets would reset them away."""
        with self._shield(self._ended_at + _LINGER):
            if isinstance(self._stream, trio.abc.HalfCloseableStream):
                try:
                    await self._stream.send_eof()
                except Exception:
                    return  # it is gone already
            while self._reading:
                await self._flushed.wait()

    async def _close_stream(self) -> None:
        """Close it: in order, so that layers below us can say goodbye, unless it failed or we are to stop."""
        try:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + _LINGER) as patience:
                if self._stopped or self._lost:
                    await trio.aclose_forcefully(self._stream)
                    return
                while self._reading:  # cancelled already: to say goodbye may take reading, too
                    await self._flushed.wait()
                await self._stream.aclose()
            if (
                patience.cancelled_caught
            ):  # perhaps while it waited for the reader, with the stream still open
                with trio.CancelScope(shield=True):
                    await trio.aclose_forcefully(self._stream)
        except Exception as failure:
            _log.warning("the stream could not be closed: %r", failure)
