"""The pump moves octets between a stream and an engine of any dialect.

Two tasks, and what a cancellation can reach
--------------------------------------------

The *reader* waits for octets, gives them to the engine, passes the engine's events to the adapter, wakes the objects that the
engine touched, and wakes the writer. It never waits for a consumer: credit and windows slow a peer down, and reading
keeps the connection alive. A dialect without credit can slow its peer down only by the transport: while its engine wants no
data, the pump reads nothing. The writer and the timer continue, and each ``wake_writer`` asks the engine again. After a failure
everything is read and dropped.

The *writer* is the only task that calls ``send_all``. It takes all octets that the engine has to send and writes them; if
there are none, it sleeps until it is woken or until the engine's next deadline, so it is the timer too. User code changes the
engine synchronously, and the engine wakes the writer with its first octets (``Engine.on_output``); the octets of all tasks that
run before the writer does are sent in one write. If the writer is not woken for a second, it ends: the next ``wake_writer``, or the
engine's deadline, starts another. So an idle connection has one task, the reader.

Both tasks are shielded from the user's cancellation. After a cancelled ``send_all`` a stream can no longer be used, so only
``cancel`` may interrupt it; the connection calls that when it ends, after the close handshake or its time-out. The writer has
one scope, and one ``ScheduledCall`` for all its deadlines: a scope with a deadline for each wait and each write would take a
fifth of the time of a message that is sent alone. The call may come early but never late: if nothing is due yet, it is
scheduled again. So a deadline that only moves to a later time, as that of a write, costs one assignment.

A task that waits for the answer to its call need not wait for the writer too: ``write_at_once`` writes before it waits, if it is alone.

A plain socket on Linux needs neither task as long as nothing takes time: ``poller`` has one reader and one writer for all such
sockets of a ``trio.run``, and calls ``_read_now`` and ``_write_now``. Each does the usual, or starts the task, which does all else: a peer
that has not opened yet, more than one slice, a write for which the socket has no room, a deadline, and every end. The task ends when
there is nothing left that takes time. So an idle connection has no task.

One read may bring 256 KiB, which can take a third of a second to process. So the engine takes it in slices, and other
tasks run between two slices, whatever the peer sends. Connections that have more than a slice to read, or whose peer is
not trusted with more than a small read yet, take turns (see ``read_turns``): a hundred simultaneous handshakes take a hundred
passes of trio's loop, and delay no other task. Touched objects are woken after each slice. If a turn ends before all
are woken, the rest is woken in the next turn, and nothing more is read before that. During a read the writer waits for the last slice, or
for sixteen slices, or for 20 ms, because a write after each slice would take longer than the slices.

Errors of the peer and of the transport are kept in ``failure`` and never raised here: they reach the user through the
calls that need the connection. ``finished`` is set last, when the stream is closed. ``on_over`` is called for both, because
neither need come with an event. An unexpected exception of an engine or of ``on_event`` is logged, and ends
this connection and no other.

``engine_interface`` has the calls of an engine; ``frame_logging`` logs the octets. A tap gets them too, while it is there; without one, an octet costs nothing.
"""

from __future__ import annotations

import logging
from collections import deque
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple

import trio

from trio_amqp10.core.errors import AmqpError, LocalProtocolError

from .frame_logging import new_frame_log
from .poller import polled_socket
from .read_turns import ReadTurn
from .scheduled_call import ScheduledCall
from .waiters import OneShotEvent, Waiter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .engine_interface import Engine, Wakeable
    from .frame_logging import Tap
    from .poller import PolledSocket

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

READ_SIZE: Final = 256 * 1024
"""Octets of one read from a trusted peer: many frames for one system call."""

_FIRST_READ_SIZE: Final = 16 * 1024
"""Octets of one read from a peer that is not authenticated yet.

This bounds the memory that any peer can make us use.
"""

_POLLED_READ_SIZE: Final = 64 * 1024
"""Octets of one read without a task.

The allocator maps and unmaps the memory of a larger read, each time.
"""

_BUSY_READ_SIZE: Final = 16 * 1024
"""Octets of one read after which a reader goes on.

More are likely to come at once.
"""

_CROWDED_READS: Final = 16
"""Reads with no two calls of ``write_at_once`` between them, until it acts again.

The answers to tasks that send together may come apart, and must not set them apart for good.
"""

_LINGER: Final = 1.0

_REST: Final = 1.0
"""Seconds of silence after which the writer ends.

A new one costs some microseconds; to keep it costs 3 KB.
"""

_SLICES_BETWEEN_WRITES: Final = 16
_SECONDS_BETWEEN_WRITES: Final = 0.02
"""Limits on slices, and seconds, of one read before its answers are written.

Whichever comes first counts: other connections may have turns between the slices.
"""

_log = logging.getLogger("trio_amqp10.pump")


class Traffic:
    """Counts of octets, reads and writes of all pumps that were given this object.

    Attributes:
        octets_in, octets_out: above TLS and WebSockets.
        reads, writes: successful calls of the stream.
        transports: transports so far, the present one included; counted by the connection.
    """

    __slots__ = ("octets_in", "octets_out", "reads", "transports", "writes")

    def __init__(self) -> None:
        self.octets_in: int = 0
        self.octets_out: int = 0
        self.reads: int = 0
        self.writes: int = 0
        self.transports: int = 0


def _nothing(*_: object) -> None:
    """Do nothing: the callback of a pump that has finished."""


def _always() -> bool:
    """Return True: an engine without ``wants_data`` always wants data."""
    return True


class Pump:
    """One engine on one stream.

    Args:
        engine: interprets the octets.
        stream: the transport; closed when the pump is finished.
        on_event: called with each event, at once and synchronously.
        on_over: called when ``failure`` is set, and when ``finished`` is set.
        write_stall: seconds that one write may take; None for any time.
        totals: counts octets, reads and writes.

    Attributes:
        failure: the first error, or None.
        finished: set when the stream is closed.
        read_size: octets of one read; small, until the owner of the pump trusts the peer with more.
        read_pause: seconds between a read and the next one, unless it was large. What comes meanwhile is read at once, which takes
            less processor time than many reads.
    """

    __slots__ = (
        "_asked",
        "_awaits_eof",
        "_brake",
        "_collecting",
        "_crowded",
        "_deferring",
        "_due",
        "_ended_at",
        "_engine",
        "_had_last_words",
        "_held_back",
        "_idle",
        "_lost",
        "_nursery",
        "_on_event",
        "_on_over",
        "_progress",
        "_reader",
        "_reading",
        "_rest",
        "_rests",
        "_scheduled",
        "_scheduled_at",
        "_sending",
        "_sleeper",
        "_socket",
        "_stopped",
        "_stream",
        "_taking",
        "_taps",
        "_totals",
        "_turn",
        "_unsent",
        "_wants_data",
        "_woken",
        "_write_stall",
        "_writer",
        "failure",
        "finished",
        "read_pause",
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
        log = new_frame_log()
        self._taps: tuple[Tap, ...] = () if log is None else (log,)
        self._stream = stream
        self._on_event = on_event
        self._on_over = on_over
        self._write_stall = inf if write_stall is None else write_stall
        self._woken = False
        self._collecting = False  # the engine returns all its octets, and may report output meanwhile
        # The writer is not woken before the last slice of a read, or the end of ``write_at_once``:
        self._deferring = False
        self._asked = 0  # calls of ``write_at_once`` since the last read
        self._crowded = 0  # reads to come until a single call counts as alone
        self._idle = False
        self._lost = False
        self._wants_data: Callable[[], bool] = getattr(engine, "wants_data", _always)
        self._awaits_eof: Callable[[], bool] | None = getattr(engine, "awaits_eof", None)
        self._held_back = False  # the reader waits in ``_brake``, because the engine wants no data
        self._brake = Waiter()
        self._progress = (
            Waiter()
        )  # for tasks that wait until all is written, all is read, or all objects are woken
        self._sleeper = Waiter()
        self._socket: PolledSocket | None = None  # None: the stream needs tasks to be read and written
        self._unsent: bytes = b""  # octets of a write for which the socket had no room
        self._reader: trio.CancelScope | None = None  # None: the poller watches the socket instead
        self._reading = True
        self._turn = ReadTurn()
        self._taking = False  # the reader is in ``_take``, and will wake ``_rest`` itself
        # The objects to wake in another turn, before any later event or wake-up:
        self._rest: deque[Wakeable] | None = None
        self._writer: trio.CancelScope | None = None
        self._nursery: trio.Nursery | None = None
        self._rests = False  # there is no writer; the scheduled call or ``wake_writer`` starts one
        self._due = inf  # when the writer must stop waiting, or one write has taken too long
        self._scheduled: ScheduledCall | None = None
        self._scheduled_at = inf
        self._sending = False
        self._stopped = False
        self._ended_at = 0.0  # when it failed, or wrote its last octets
        self._had_last_words = False  # something was written after it failed
        self.failure: BaseException | None = None
        self.finished: Final = OneShotEvent()
        engine.on_output = self.wake_writer
        self.read_size: int = _FIRST_READ_SIZE
        self.read_pause: float = 0.0

    def add_tap(self, tap: Tap) -> None:
        """Give all octets between stream and engine to ``tap`` too, from now on."""
        self._taps = (*self._taps, tap)

    def remove_tap(self, tap: Tap) -> None:
        """Give no more octets to ``tap``, if it got any."""
        self._taps = tuple(each for each in self._taps if each is not tap)

    def unread_input(self) -> bytes | None:
        """Return what the engine has not read yet; see ``WatchableEngine``."""
        unread: Callable[[], bytes | None] | None = getattr(self._engine, "unread_input", None)
        return None if unread is None else unread()

    def start(self, nursery: trio.Nursery) -> None:
        """Start in ``nursery``, which must stay open until ``finished`` is set."""
        self._nursery = nursery
        self._socket = polled_socket(self._stream, self._read_now, self._write_now)
        self._start_reader()
        if self._socket is None:
            nursery.start_soon(self._write, _REST)
        else:
            self._rests = True
            self.wake_writer()

    def wake_writer(self) -> None:
        """Make the writer look at the engine again.

        Call it if the engine may want data again or may have a new deadline. The engine itself calls it for octets to send.
        """
        self._woken = True
        self._idle = False
        if self._deferring or self._collecting:
            return
        if self._held_back:
            self._brake.wake()
        if not self._rests:
            self._sleeper.wake()
        elif self._socket is not None:
            self._socket.write_soon()
        else:
            self._resume(_REST)

    def write_at_once(self, call: Callable[[*Ts], T], *args: *Ts) -> T:
        """Make a call of the engine, and write its octets now, not in the next pass.

        For a task that will wait for the answer of the peer. The writer does it as usual if it is due anyway, if the stream needs tasks,
        or if several tasks ask at once: only the first of them is written before the others, and none while this goes on.
        """
        self._asked += 1
        socket = self._socket
        is_crowded = self._asked > 1 or self._crowded
        if is_crowded or self._woken or self._deferring or not self._rests or socket is None:
            return call(*args)
        self._deferring = True
        try:
            return call(*args)
        finally:
            self._deferring = False
            if self._woken:
                socket.write()

    def _start_reader(self) -> None:
        assert self._nursery is not None
        self._reader = trio.CancelScope(shield=True)
        self._nursery.start_soon(self._read)

    def _stop_reader(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
        elif self._socket is not None:
            self._socket.unwatch()
            self._reading = False
            self._progress.wake()

    def _resume(self, patience: float) -> None:
        """Start a writer if there is none."""
        if self._rests:
            assert self._nursery is not None
            self._rests = False
            self._nursery.start_soon(self._write, patience)

    def _schedule(self, at: float) -> None:
        """Have ``_on_scheduled`` called at this time, or earlier."""
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
        """Stop at once: nothing more is read or written."""
        self._stopped = True
        self._stop_reader()
        if self._writer is not None:
            self._writer.cancel()
        self._resume(0.0)  # to close the stream

    async def abort(self) -> None:
        """Stop at once, and wait until the stream is closed.

        Cancelled: it waits anyway.
        """
        self.cancel()
        with trio.CancelScope(shield=True):
            await self.finished.wait()

    async def finish(self, seconds: float) -> None:
        """Wait until our close is answered and the stream is closed; then stop.

        Args:
            seconds: the longest wait.

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
        """End a failed connection: write the last octets, and stop within a second.

        Args:
            say_goodbye: closes the engine, unless it has failed by itself; called at once.

        Cancelled: the last octets are written anyway.
        """
        with trio.CancelScope(shield=True):
            say_goodbye()
            self.wake_writer()
            await self.finish(_LINGER)

    async def flushed(self) -> None:
        """Wait until all octets of the engine are written, or the pump is finished."""
        while not self._idle and not self.finished.is_set():
            await self._progress.wait()

    async def all_woken(self) -> None:
        """Wait until every object that was touched has been woken.

        Cancelled: they are woken anyway.
        """
        while self._rest is not None:
            await self._progress.wait()

    def feed(self, call: Callable[..., None], *args: Any) -> None:
        """Make a call of the engine that may fail because of the peer, then settle."""
        if self._taps and args and call == self._engine.receive_slice:
            for tap in self._taps:
                tap.read(args[0])
        try:
            try:
                call(*args)
            except LocalProtocolError:
                raise  # no local call was made, so this is a fault of the engine
            except AmqpError as failure:
                # The engine has prepared its last octets already. The traceback is dropped, because it
                # refers to the peer's octets.
                self._fail(failure.with_traceback(None))
            self.settle()
        except Exception as bug:
            self._break(bug)

    def settle(self) -> None:
        """Report events, wake touched objects, and wake the writer if it has work.

        If the turn ends meanwhile, another turn wakes the rest.
        """
        engine = self._engine
        if self._rest is None:
            # Report all events of a slice, even if the turn is over: no task may see a state of the engine
            # before the event that explains it.
            while (event := engine.next_event()) is not None:
                self._on_event(event)
            while touched := engine.take_touched():  # a woken object may touch others, or itself to go last
                if not self._wake(touched):
                    break
        if self._held_back or engine.has_output() or self._due_in_engine() < self._due:
            self.wake_writer()

    def _wake(self, touched: Iterable[Wakeable]) -> bool:
        """Wake the objects until the turn is over; return whether there is time left.

        The others are woken in another turn.
        """
        is_over = self._turn.turns.is_over
        items = iter(touched)
        for item in items:
            item.wake()
            if is_over():
                self._put_off(deque(items))
                return False
        return True

    def _put_off(self, rest: deque[Wakeable]) -> None:
        """Wake these objects, and then those touched since, in another turn."""
        self._rest = rest
        if not self._taking:
            self._turn.turns.later(self._settle_rest)

    def _settle_rest(self) -> None:
        """Wake the objects put off; at least one of them, even if the turn is over."""
        rest, self._rest = self._rest, None
        if rest is None:
            return  # the reader has woken them already
        try:
            if self._wake(rest):
                self.settle()
        except Exception as bug:
            self._break(bug)
        if self._rest is None:
            self._progress.wake()

    def _fail(self, failure: BaseException) -> None:
        if self.failure is None:
            self.failure = failure
            self._ended_at = trio.current_time()
            self._on_over()

    def _break(self, bug: Exception) -> None:
        """Stop because of an unexpected error: the engine's state is unreliable."""
        _log.error("the engine failed, and its connection with it", exc_info=bug)
        self._fail(bug)
        self.cancel()

    def _lose(self, cause: BaseException) -> None:
        self._lost = True
        self._fail(cause)
        self.feed(self._engine.transport_lost)

    def _read_now(self) -> None:
        """Read without a task: the poller found the socket readable.

        What may take time starts a reader: more octets than one read or one slice, a peer that must take turns, an engine that wants no
        data, and the end of the stream.
        """
        socket, turn = self._socket, self._turn
        assert socket is not None
        data: bytes | None = b""
        if not turn.due and self._rest is None and self._wants_data():
            try:
                data = socket.receive(_POLLED_READ_SIZE)
            except trio.BrokenResourceError as lost:
                self._lose(lost)
        if data is None:
            return
        if data:
            self._count_read(len(data))
            began = turn.began()
            self.feed(self._engine.receive_slice, data, trio.current_time())
            turn.charge(began)
        needs_time = len(data) in (0, _POLLED_READ_SIZE) or self._engine.has_input() or self.read_pause
        if needs_time and self._reading:
            socket.unwatch()
            self._start_reader()

    def _count_read(self, octets: int) -> None:
        """Count a read, and note whether several tasks have asked before it."""
        self._totals.reads += 1
        self._totals.octets_in += octets
        if self._asked > 1:
            self._crowded = _CROWDED_READS
        elif self._crowded:
            self._crowded -= 1
        self._asked = 0

    async def _read(self) -> None:
        assert self._reader is not None
        rests = False
        try:
            with self._reader:
                rests = await self._read_all()
        finally:
            self._turn.release()
            if rests:
                self._reader = None
            else:
                self._reading = False
                self._progress.wake()

    async def _read_all(self) -> bool:
        """Read to the end of the stream; return True if the poller reads on instead."""
        engine, stream, socket = self._engine, self._stream, self._socket
        await self._until_wanted()
        while True:
            try:
                data = await stream.receive_some(self.read_size)
            except Exception as lost:  # BrokenResourceError; a user's own stream may raise others
                self._lose(lost)
                return False
            if not data:
                self.feed(engine.receive_eof, trio.current_time())
                return False
            self._count_read(len(data))
            is_busy = len(data) >= _BUSY_READ_SIZE
            await self._take(bytes(data))
            del data  # otherwise an idle connection would keep its last read in memory
            await self._until_wanted()
            if is_busy:
                continue
            if self.read_pause:
                await trio.sleep(self.read_pause)
            elif socket is not None and self._may_be_polled() and socket.watch():
                return True

    def _may_be_polled(self) -> bool:
        """Whether the poller may read on: the peer is trusted, and takes no turns now."""
        assert self._reader is not None
        return self.read_size >= READ_SIZE and not self._turn.due and not self._reader.cancel_called

    async def _until_wanted(self) -> None:
        """Let the engine read its own input first; wait while it wants no data."""
        try:
            while self.failure is None:
                if not self._wants_data():
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
        """Let the engine read these octets in slices, with other tasks in between."""
        engine, turn = self._engine, self._turn
        if turn.due or self.read_size < READ_SIZE:
            await turn.take()
        slices, written = 0, trio.current_time()
        self._taking = True
        try:
            while True:
                slices += 1
                now = trio.current_time()
                self._deferring = (
                    slices % _SLICES_BETWEEN_WRITES != 0 and now - written < _SECONDS_BETWEEN_WRITES
                )
                if not self._deferring:
                    written = now
                began = turn.began()
                self.feed(engine.receive_slice, data, now)
                turn.charge(began)
                while self._rest is not None:
                    await turn.next()
                    began = turn.began()
                    self._settle_rest()
                    turn.charge(began)
                if not engine.has_input() or not self._wants_data():
                    break  # if the engine wants no data, ``_until_wanted`` continues with its input
                await turn.next()
                data = b""
        finally:
            self._deferring = self._taking = False
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
                self._stop_reader()
                await self._close_stream()
                began = self._turn.began()
                self.feed(self._engine.transport_lost)
                while self._rest is not None:  # wake all now; each may leave long work to later turns
                    self._settle_rest()
                self.finished.set()
                self._progress.wake()
                self._on_over()
                self._let_go()
                self._turn.charge(began)

    def _let_go(self) -> None:
        """Break the reference cycles, so that the connection's objects are freed now.

        Otherwise the garbage collector must find them, by a pass over all objects of the process.
        """
        self._on_event, self._on_over, self._socket = _nothing, _nothing, None
        failure = self.failure
        while failure is not None:
            failure.__traceback__ = None  # its frames hold the pump, which holds the failure
            failure = failure.__cause__ or failure.__context__

    async def _write_all(self, patience: float) -> None:
        """Write until the engine has nothing more to send, ever, or until idle.

        Idle means that the writer was not woken for ``patience`` seconds: then it ends, and ``_rests`` is set.
        """
        with self._shield() as scope:
            while not self._stopped and (data := self._octets()) is not None:
                if data:
                    if not await self._send(data):
                        return
                    if self._woken or self._engine.has_output():
                        continue
                if self._woken or (patience and await self._sleep(patience)):
                    patience = _REST if self._socket is None else 0.0
                elif (due := self._due_in_engine()) <= trio.current_time():
                    self.feed(self._engine.handle_timer, trio.current_time())
                else:
                    self._writer, self._rests = None, True
                    self._rest_until(due)
                    return
        if scope.cancelled_caught and not self._stopped:
            self._lose(TimeoutError(f"the peer read nothing for {self._write_stall:g} s"))

    def _write_now(self) -> None:
        """Write the engine's octets without a task.

        What may take time starts a writer: octets for which the socket has no room, a failure, and the end.
        """
        if not self._rests:
            return  # ``cancel`` has started a writer since ``wake_writer``
        try:
            data = None if self._stopped or self.failure is not None else self._octets()
            if data is not None and self._is_sent(data):
                if self._woken or (data and self._engine.has_output()):
                    self.wake_writer()
                else:
                    self._rest_until(self._due_in_engine())
                return
        except Exception as bug:
            self._break(bug)
        self._resume(0.0)

    def _is_sent(self, data: bytes) -> bool:
        """Send octets, if there are any; return whether the socket took all of them."""
        if not data:
            return True
        assert self._socket is not None
        sent = self._socket.send(data)
        self._totals.octets_out += sent
        if sent < len(data):
            self._unsent = data[sent:]
            return False
        self._totals.writes += 1
        return True

    def _rest_until(self, due: float) -> None:
        """Note that all is written; a writer starts at ``due``, if none did before."""
        self._idle = True
        self._progress.wake()
        self._due = due
        self._schedule(due)

    async def _sleep(self, patience: float) -> bool:
        """Wait until the writer is woken or a deadline comes; return whether it was woken.

        The deadline is the engine's, or ``patience`` seconds from now if that is earlier.
        """
        self._idle = True
        self._progress.wake()
        self._due = min(self._due_in_engine(), trio.current_time() + patience)
        self._schedule(self._due)
        while not self._woken and trio.current_time() < self._due:
            await self._sleeper.wait()
        return self._woken

    def _due_in_engine(self) -> float:
        deadline = self._engine.next_deadline()
        return inf if deadline is None else deadline

    def _shield(self, deadline: float = inf) -> trio.CancelScope:
        """Make the writer's scope, which ends at ``deadline`` or by ``cancel``."""
        self._writer = trio.CancelScope(shield=True, deadline=deadline)
        if self._stopped:
            self._writer.cancel()
        return self._writer

    def _octets(self) -> bytes | None:
        """Return the octets to write, as ``data_to_send`` does."""
        self._woken = False
        self._idle = False
        if self._unsent:
            unsent, self._unsent = self._unsent, b""
            return unsent
        began = self._turn.began()
        self._collecting = True
        data = self._engine.data_to_send()
        self._collecting = self._woken = False
        if self._rest is None:
            self._wake(self._engine.take_touched())
        if not data:
            self._turn.turns.end()
        else:
            self._turn.charge(began)
            for tap in self._taps:
                tap.written(data)
        if self._held_back:
            self._brake.wake()  # octets that waited here may be why the engine wanted no data
        return data

    async def _send(self, data: bytes) -> bool:
        """Write all of it; return False if the transport has failed."""
        now = trio.current_time()
        self._due = now + self._write_stall
        self._schedule(min(self._due, now + _REST))  # not later than the next sleep's deadline
        self._sending = True
        self._had_last_words = self.failure is not None
        try:
            await self._stream.send_all(data)
        except Exception as lost:  # as in ``_read``
            self._lose(lost)
            return False
        finally:
            self._sending = False
        self._totals.writes += 1
        self._totals.octets_out += len(data)
        return True

    def _lingers(self) -> bool:
        """Whether to read on after our last octets; if so, set when that began.

        After a failure without last octets, as when a dialled peer speaks another protocol, there is nothing to wait for.
        """
        if self.failure is not None:
            return self._had_last_words
        if self._awaits_eof is None or not self._awaits_eof():
            return False
        self._ended_at = trio.current_time()
        return True

    async def _linger(self) -> None:
        """Let the peer read our last octets.

        If we closed while octets of the peer are unread, the system would reset the connection, and the peer could lose them.
        """
        with self._shield(self._ended_at + _LINGER):
            if isinstance(self._stream, trio.abc.HalfCloseableStream):
                try:
                    await self._stream.send_eof()
                except Exception:
                    return  # the stream has failed already
            while self._reading:
                await self._progress.wait()

    async def _close_stream(self) -> None:
        """Close the stream: in order, or by force if it failed or the pump must stop.

        In order means that the layers below can still send their own last octets.
        """
        try:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + _LINGER) as patience:
                if self._stopped or self._lost:
                    await trio.aclose_forcefully(self._stream)
                    return
                while self._reading:  # it is cancelled already; closing a layer may need to read
                    await self._progress.wait()
                await self._stream.aclose()
            # The time may be up while it waits for the reader, with the stream still open.
            if patience.cancelled_caught:
                with trio.CancelScope(shield=True):
                    await trio.aclose_forcefully(self._stream)
        except Exception as failure:
            _log.warning("the stream could not be closed: %r", failure)
