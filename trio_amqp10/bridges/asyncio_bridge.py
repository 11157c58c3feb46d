"""Calls of asyncio tasks that run in trio, and the blocks that they enter.

A connection belongs to the loop that opened it. Each call checks that, and that the process is the same. Trio runs in the thread
of ``trio_thread``, or in ``guest_mode`` as a guest of the loop.

When asyncio cancels a task that waits for a call, the call is abandoned in trio, and the task goes on at once. A task that leaves a
block waits until trio has left it, even if the task is cancelled.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager, nullcontext, suppress
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar
from weakref import WeakKeyDictionary, finalize

import trio

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.peer.delivery import raise_unless_accepted
from trio_amqp10.amqp10.peer.dialling import Dialling
from trio_amqp10.amqp10.peer.sender import Sender as AsyncSender
from trio_amqp10.core.errors import LocalProtocolError

from .bell import Bell
from .portal import Block, Call, Portal, result_of, within
from .sender_feed import PostedMessage, SenderFeed
from .trio_thread import shared_thread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from trio_amqp10.amqp10.peer.delivery import Outcome
    from trio_amqp10.amqp10.peer.dial_options import WhereAndOptions

    from .trio_thread import Host

    Loop = asyncio.AbstractEventLoop
    Sent = PostedMessage

T = TypeVar("T")
O = TypeVar("O", bound="Opened[Any]")  # noqa: E741 - an object that is opened

_BURST: Final = 64
"""Calls that do not wait, after which other tasks have a turn."""


class Bridge:
    """The calls of one asyncio loop to one connection in trio, and their results."""

    def __init__(self) -> None:
        self._loop: Loop = asyncio.get_running_loop()
        guest = _guests.get(self._loop)
        self._outbox = _outbox_of(self._loop) if guest is None else None
        host: Host = shared_thread() if guest is None else guest
        self.portal: Portal = Portal(host, self._loop.is_closed)

    def check(self) -> Loop:
        """Return the loop of this connection.

        Raises:
            RuntimeError: another loop runs here, or none; or this is a child process.
        """
        if asyncio.get_running_loop() is not self._loop:
            self.portal.check_process()
            raise RuntimeError(
                "this connection belongs to another event loop: open one in each loop, with aio.connect"
            )
        return self._loop

    def reply(self, done: asyncio.Future[Any], value: Any, failure: Exception | None) -> None:
        """End ``done`` with a value, or an exception, unless its loop is closed.

        This method is called in trio's thread.
        """
        if self._outbox is None:  # trio is a guest of this loop
            _end(done, value, failure)
        elif not self._loop.is_closed():  # otherwise no task waits
            self._outbox.put(done, value, failure)

    async def run(self, function: Callable[[], Awaitable[T]], undo: Callable[[T], None] | None = None) -> T:
        """Await ``function()`` in trio.

        Cancelled: it is cancelled in trio too; a result that was on its way is given to ``undo``.
        """
        done: asyncio.Future[T] = self.check().create_future()
        call = Call(self.portal, function, partial(self.reply, done), undo)
        self.portal.post(call.start)
        try:
            return await done
        except asyncio.CancelledError:
            with suppress(trio.ClosedResourceError):
                self.portal.post(call.abandon)
            raise

    async def outcome(self, sent: PostedMessage, seconds: float | None) -> Outcome | None:
        """Wait for the outcome of a message. Cancelled: nothing is lost."""
        done: asyncio.Future[Outcome | None] = self.check().create_future()
        report = partial(self.reply, done)
        self.portal.post(partial(sent.ask, report))
        try:
            async with _within(seconds):
                return await done
        except (asyncio.CancelledError, trio.TooSlowError):
            with suppress(trio.ClosedResourceError):
                self.portal.post(partial(sent.forget, report))
            raise

    async def run_sync(self, function: Callable[[], T]) -> T:
        """Call ``function()`` in trio's thread. Cancelled: it is called anyway."""
        done: asyncio.Future[T] = self.check().create_future()
        self.portal.post(lambda: self.reply(done, *result_of(function)))
        return await done


def _end(done: asyncio.Future[Any], value: Any, failure: Exception | None) -> None:
    if done.done():
        return  # the task was cancelled
    if failure is None:
        done.set_result(value)
    else:
        done.set_exception(failure)


class _Outbox:
    """The results that trio's thread has for the tasks of one loop.

    It has no reference to the loop, and lasts as long: a future on its way has one.
    """

    def __init__(self, loop: Loop) -> None:
        self._results: deque[tuple[asyncio.Future[Any], Any, Exception | None]] = deque()
        self._is_rung = False
        self._bell: Bell | None = Bell()
        try:
            # In an empty context, which the loop would keep.
            Context().run(loop.add_reader, self._bell.number, self._deliver)
        except NotImplementedError:  # as by the loop of Windows
            self._bell.close()
            self._bell = None
        else:
            finalize(loop, self._bell.close).atexit = False  # trio's thread still runs then

    def put(self, done: asyncio.Future[Any], value: Any, failure: Exception | None) -> None:
        """End ``done`` soon, in the thread of its loop."""
        self._results.append((done, value, failure))
        if self._is_rung:
            return
        self._is_rung = True
        if self._bell is not None:
            self._bell.ring()
        else:
            with suppress(RuntimeError):  # the loop is closed, and no task waits
                done.get_loop().call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        if self._bell is not None:
            self._bell.silence()
        self._is_rung = False  # before the results are taken: what comes later rings again
        results = self._results
        while results:
            _end(*results.popleft())


_outboxes: WeakKeyDictionary[Loop, _Outbox] = WeakKeyDictionary()


def _outbox_of(loop: Loop) -> _Outbox:
    found = _outboxes.get(loop)
    if found is None:
        found = _outboxes[loop] = _Outbox(loop)
    return found


class Opening(Generic[O]):
    """A connection, link or transaction that is not opened yet.

    ``async with`` and ``await`` open it. ``async with`` also closes it; what was opened by ``await`` has a method ``close``.

    Cancelled: it is closed again, which takes at most a second.
    """

    def __init__(
        self,
        made: type[O],
        opening: Callable[[], AbstractAsyncContextManager[Any]],
        bridge: Bridge | None = None,
    ) -> None:
        self._made = made
        self._opening = opening
        self._bridge = bridge
        self._opened: O | None = None

    def __await__(self) -> Generator[Any, None, O]:
        return self._open().__await__()

    async def __aenter__(self) -> O:
        self._opened = await self._open()
        return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._opened is not None
        await self._opened.__aexit__(kind, exc, tb)

    async def _open(self) -> O:
        opening = self._opening()
        bridge = self._bridge or Bridge()
        block = _Block(bridge, opening, is_connection=self._bridge is None)
        return self._made(bridge, block, await block.enter())


class _Block:
    """A block in trio, as asyncio waits for it."""

    def __init__(
        self, bridge: Bridge, opening: AbstractAsyncContextManager[Any], *, is_connection: bool
    ) -> None:
        loop = bridge.check()
        self._bridge = bridge
        self._is_connection = is_connection
        self._entered: asyncio.Future[None] = loop.create_future()
        self._left: asyncio.Future[None] = loop.create_future()
        self._block: Block[Any] = Block(
            bridge.portal,
            opening,
            lambda: bridge.reply(self._entered, None, None),
            lambda: bridge.reply(self._left, None, None),
            is_connection=is_connection,
        )

    async def enter(self) -> Any:
        self._bridge.portal.post(self._block.start)
        try:
            await self._entered
        except asyncio.CancelledError:
            await self._leave(by_exception=True, cancelled=True)
            raise
        if self._block.failure is not None:
            await _finished(self._left)
            self._join()
            raise self._block.failure
        return self._block.value

    async def leave(self, exc: BaseException | None) -> None:
        """Leave the block, and raise its exception, if any. A second call does nothing."""
        self._bridge.check()
        if self._left.done():
            return
        await self._leave(by_exception=exc is not None, cancelled=isinstance(exc, asyncio.CancelledError))
        if self._block.failure is not None:
            raise self._block.failure

    async def _leave(self, *, by_exception: bool, cancelled: bool) -> None:
        leave = partial(self._block.leave, by_exception=by_exception, cancelled=cancelled)
        with suppress(trio.ClosedResourceError):  # the block is over, or about to be
            self._bridge.portal.post(leave)
        try:
            await asyncio.shield(self._left)
        except asyncio.CancelledError:
            with suppress(trio.ClosedResourceError):
                self._bridge.portal.post(partial(self._block.leave, by_exception=True, cancelled=True))
            await _finished(self._left)
            raise
        finally:
            self._join()

    def _join(self) -> None:
        if self._is_connection:
            self._bridge.portal.host.join()


async def _finished(future: asyncio.Future[None]) -> None:
    """Wait for a future; a cancellation meanwhile is raised afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as raised:
            cancelled = raised
    if cancelled is not None:
        raise cancelled


class Opened(Generic[T]):
    """An object that is open until ``close``, or to the end of its block."""

    def __init__(self, bridge: Bridge, block: _Block, inner: T) -> None:
        self._bridge = bridge
        self._block = block
        self._inner = inner

    async def close(self) -> None:
        """Close it, as the end of its block does. A second call does nothing.

        Cancelled: it is closed without waiting for the peer's answer.
        """
        await self._leave(None)

    async def _leave(self, exc: BaseException | None) -> None:
        await self._block.leave(exc)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._leave(exc)

    def __repr__(self) -> str:
        return f"<aio {self._inner!r}>"


def inner_of(opened: Opened[T] | None) -> T | None:
    """Return the object in trio; None for None."""
    return None if opened is None else opened._inner  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


class OpenedSender(Opened[AsyncSender]):
    """A sender whose messages are posted, if nothing has to be waited for."""

    def __init__(self, bridge: Bridge, block: _Block, inner: AsyncSender) -> None:
        super().__init__(bridge, block, inner)
        self._feed = SenderFeed(bridge.portal, inner)
        self._is_written = inner.is_written
        self._gate = asyncio.Lock()  # one task waits for credit, the others for that task
        self._burst = 0

    async def _send(
        self, message: Any, seconds: float | None, tag: bytes | None, settled: bool, transaction: Any
    ) -> Outcome | None:
        if seconds is not None:
            async with _timed(seconds):
                return await self._send(message, None, tag, settled, transaction)
        bridge = self._bridge
        done: asyncio.Future[Outcome | None] = bridge.check().create_future()
        posted = PostedMessage(message, settled, partial(bridge.reply, done))
        await self._post(posted, None, tag, transaction)
        outcome = await done
        assert posted.delivery is not None
        raise_unless_accepted(outcome, posted.delivery)
        return outcome

    async def _transmit(
        self, message: Any, seconds: float | None, tag: bytes | None, settled: bool, transaction: Any
    ) -> PostedMessage:
        self._bridge.check()
        posted = PostedMessage(message, settled)
        await self._post(posted, seconds, tag, transaction)
        return posted

    async def _post(
        self, posted: PostedMessage, seconds: float | None, tag: bytes | None, transaction: Any
    ) -> None:
        inner = self._inner
        if tag is not None or transaction is not None or self._is_written:
            await self._bridge.run(
                lambda: within(seconds, lambda: _transmitted(inner, posted, tag, transaction))
            )
            return
        inner.check_size(posted.payload)
        self._burst += 1
        if self._burst >= _BURST:
            self._burst = 0
            await asyncio.sleep(0)
        if self._gate.locked() or not self._feed.post(posted):
            async with _within(seconds), self._gate:
                while not self._feed.post(posted):
                    await self._bridge.run(inner.wait_sendable, lambda _: inner.give_back())

    async def _flush(self) -> None:
        await self._feed.emptied()
        await self._inner.flush()

    async def _leave(self, exc: BaseException | None) -> None:
        if exc is None and not self._feed.is_empty:
            with suppress(trio.ClosedResourceError):
                await self._bridge.run(self._feed.emptied)
        await super()._leave(exc)


async def _transmitted(
    inner: AsyncSender, posted: PostedMessage, tag: bytes | None, transaction: Any
) -> None:
    message = Message.from_payload(posted.payload, posted.message_format)
    posted.delivery = await inner.transmit(message, tag=tag, settled=posted.settled, transaction=transaction)
    posted.look()


@asynccontextmanager
async def _timed(seconds: float) -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise trio.TooSlowError from None


def _within(seconds: float | None) -> AbstractAsyncContextManager[None]:
    return nullcontext() if seconds is None else _timed(seconds)


def dialled(made: type[O], options: WhereAndOptions) -> Opening[O]:
    """Return a connection that is dialled when it is opened.

    Raises: as ``open_connection``, and ``LocalProtocolError`` for a stream.
    """
    if isinstance(options.where, trio.abc.Stream):
        raise LocalProtocolError(
            "open_connection() needs a URL: a stream of trio belongs to the loop that made it"
        )
    dialling = Dialling(options.where, options)
    return Opening(made, lambda: dialling)


# -- guest mode -----------------------------------------------------------------------------


class _Guest:
    """A trio that runs as a guest of a loop, in the same thread."""

    nursery: trio.Nursery

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.started: asyncio.Future[None] = loop.create_future()
        self.finished: asyncio.Future[None] = loop.create_future()

    def start(self) -> None:
        trio.lowlevel.start_guest_run(
            self._main,
            run_sync_soon_threadsafe=self._loop.call_soon_threadsafe,
            run_sync_soon_not_threadsafe=self._loop.call_soon,
            done_callback=self._finish,
            host_uses_signal_set_wakeup_fd=True,
        )

    async def _main(self) -> None:
        async with trio.open_nursery() as self.nursery:
            self.started.set_result(None)
            await trio.sleep_forever()

    def _finish(self, result: Any) -> None:
        self.finished.set_result(None)
        result.unwrap()  # an interrupt goes on to the loop

    def run_soon(self, work: Callable[[], None]) -> None:
        self._loop.call_soon(work)

    def release(self) -> None:
        """Do nothing: it ends with its block."""

    def join(self) -> None:
        """Do nothing: it has no thread."""


_guests: WeakKeyDictionary[Loop, _Guest] = WeakKeyDictionary()


@asynccontextmanager
async def guest_mode() -> AsyncGenerator[None]:
    """Run trio as a guest of this loop: ``async with guest_mode()``.

    It lasts as long as the block. Connections that this loop opens meanwhile run in its own thread, and no other thread runs code of the program or
    of the library. They must be closed before the end of the block, which closes those that are still open.

    Raises:
        RuntimeError: trio runs in this thread already.

    Cancelled: the connections are closed without waiting for their peers.
    """
    loop = asyncio.get_running_loop()
    if trio.lowlevel.in_trio_run():
        raise RuntimeError("trio runs in this thread already: leave its block before another guest_mode()")
    guest = _Guest(loop)
    guest.start()
    await guest.started
    _guests[loop] = guest
    try:
        yield
    finally:
        del _guests[loop]
        guest.nursery.cancel_scope.cancel()
        await _finished(guest.finished)
