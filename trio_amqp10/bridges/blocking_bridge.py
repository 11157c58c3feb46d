"""How a program without async waits for calls that run in trio.

Any number of threads may call. A call that is interrupted, as by Ctrl-C, is abandoned in trio.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

import trio

from trio_amqp10.amqp10.peer.delivery import OutgoingDelivery as Sent
from trio_amqp10.amqp10.peer.dialling import Dialling
from trio_amqp10.amqp10.peer.sender import Sender as AsyncSender
from trio_amqp10.amqp10.peer.sender import not_sent
from trio_amqp10.core.errors import LocalProtocolError

from .portal import Block, Call, Portal, no_outcome, result_of, within
from .trio_thread import shared_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from trio_amqp10.amqp10.peer.delivery import Outcome
    from trio_amqp10.amqp10.peer.dial_options import WhereAndOptions

    Done = concurrent.futures.Future[tuple["T | None", Exception | None]]

__all__ = ["Bridge", "Opened", "OpenedSender", "Sent", "connected", "dialled", "inner_of", "opened"]

T = TypeVar("T")
O = TypeVar("O", bound="Opened[Any]")  # noqa: E741 - an object that is opened


def _check_no_loop() -> None:
    """Raise RuntimeError in a task of a loop, which a blocking call would stop."""
    if trio.lowlevel.in_trio_run():
        loop, advice = "trio", "await trio_amqp10.open_connection() and its methods"
    elif _is_asyncio_running():
        loop, advice = "asyncio", "await trio_amqp10.aio.connect() and its methods"
    else:
        return
    raise RuntimeError(
        f"a call of trio_amqp10.blocking would stop the {loop} loop that runs in this thread: {advice}"
    )


def _is_asyncio_running() -> bool:
    """Return whether asyncio runs in this thread, without importing it."""
    if (asyncio := sys.modules.get("asyncio")) is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Bridge:
    """The way of a program without async to one connection in trio, and back.

    Args:
        in_loops: whether a task of a loop may call, although the loop stands still meanwhile.
    """

    def __init__(self, *, in_loops: bool = False) -> None:
        self._in_loops = in_loops
        self.check()
        self.portal: Portal = Portal(shared_thread())

    def check(self) -> None:
        """Raise RuntimeError in a task of a loop, unless such tasks may call."""
        if not self._in_loops:
            _check_no_loop()

    def run(self, function: Callable[[], Awaitable[T]], undo: Callable[[T], None] | None = None) -> T:
        """Await ``function()`` in trio; an interrupt of the caller cancels it."""
        self.check()
        done: Done[T] = concurrent.futures.Future()
        call = Call(self.portal, function, lambda value, failure: done.set_result((value, failure)), undo)
        self.portal.post(call.start)
        try:
            value, failure = done.result()
        except BaseException:  # it was raised in this thread, as an interrupt is
            with contextlib.suppress(trio.ClosedResourceError):
                self.portal.post(call.abandon)
            raise
        if failure is not None:
            raise failure
        return cast("T", value)

    def run_sync(self, function: Callable[[], T]) -> T:
        """Call ``function()`` in trio's thread."""
        self.check()
        done: Done[T] = concurrent.futures.Future()
        self.portal.post(lambda: done.set_result(result_of(function)))
        value, failure = done.result()
        if failure is not None:
            raise failure
        return cast("T", value)

    def outcome(self, sent: Sent, seconds: float | None) -> Outcome | None:
        """Wait for the outcome of a message."""
        return self.run(lambda: within(seconds, sent.outcome, partial(no_outcome, sent=True)))


class _Block:
    """A block in trio, as a thread waits for it."""

    def __init__(
        self, bridge: Bridge, opening: AbstractAsyncContextManager[Any], *, is_connection: bool
    ) -> None:
        self._bridge = bridge
        self._is_connection = is_connection
        self._entered: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._left: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._block: Block[Any] = Block(
            bridge.portal,
            opening,
            lambda: self._entered.set_result(None),
            lambda: self._left.set_result(None),
            is_connection=is_connection,
        )

    def enter(self) -> Any:
        self._bridge.check()
        self._bridge.portal.post(self._block.start)
        try:
            self._entered.result()
        except BaseException:
            self._leave(by_exception=True, cancelled=True)
            raise
        if self._block.failure is not None:
            self._wait()
            raise self._block.failure
        return self._block.value

    def leave(self, exc: BaseException | None) -> None:
        """Leave the block, and raise its exception, if any. A second call does nothing."""
        self._bridge.portal.check_process()
        if self._left.done():
            return
        self._bridge.check()
        self._leave(by_exception=exc is not None, cancelled=False)
        if self._block.failure is not None:
            raise self._block.failure

    def _leave(self, *, by_exception: bool, cancelled: bool) -> None:
        self._post_leave(by_exception=by_exception, cancelled=cancelled)
        try:
            self._wait()
        except BaseException:
            self._post_leave(by_exception=True, cancelled=True)
            self._wait()
            raise

    def _post_leave(self, *, by_exception: bool, cancelled: bool) -> None:
        with contextlib.suppress(trio.ClosedResourceError):  # the block is over, or about to be
            self._bridge.portal.post(
                lambda: self._block.leave(by_exception=by_exception, cancelled=cancelled)
            )

    def _wait(self) -> None:
        self._left.result()
        if self._is_connection:
            self._bridge.portal.host.join()


class Opened(Generic[T]):
    """An object that is open until ``close``, or to the end of its ``with`` block."""

    def __init__(self, bridge: Bridge, block: _Block, inner: T) -> None:
        self._bridge = bridge
        self._block = block
        self._inner = inner

    def close(self) -> None:
        """Close it, as the end of its block does. A second call does nothing."""
        self._block.leave(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._block.leave(exc)

    def __repr__(self) -> str:
        return f"<blocking {self._inner!r}>"


def inner_of(opened: Opened[T] | None) -> T | None:
    """Return the object in trio; None for None."""
    return None if opened is None else opened._inner  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


class OpenedSender(Opened[AsyncSender]):
    """A sender, with what ``asyncio_bridge`` does in another way."""

    def _send(
        self, message: Any, seconds: float | None, tag: bytes | None, settled: bool, transaction: Any
    ) -> Outcome | None:
        return self._bridge.run(
            lambda: within(
                seconds,
                lambda: self._inner.send(message, tag=tag, settled=settled, transaction=transaction),
                partial(no_outcome, sent=None),
            )
        )

    def _transmit(
        self, message: Any, seconds: float | None, tag: bytes | None, settled: bool, transaction: Any
    ) -> Sent:
        return self._bridge.run(
            lambda: within(
                seconds,
                lambda: self._inner.transmit(message, tag=tag, settled=settled, transaction=transaction),
                partial(not_sent, self._inner),
            )
        )

    async def _flush(self) -> None:
        await self._inner.flush()


def opened(made: type[O], opening: Callable[[], AbstractAsyncContextManager[Any]], bridge: Bridge) -> O:
    """Open something on the connection of ``bridge``."""
    block = _Block(bridge, opening(), is_connection=False)
    return made(bridge, block, block.enter())


def connected(made: type[O], dialling: AbstractAsyncContextManager[Any], *, in_loops: bool = False) -> O:
    """Open a connection; ``in_loops`` as for ``Bridge``."""
    bridge = Bridge(in_loops=in_loops)
    block = _Block(bridge, dialling, is_connection=True)
    return made(bridge, block, block.enter())


def dialled(made: type[O], options: WhereAndOptions) -> O:
    """Dial a peer.

    Raises: as ``open_connection``, and ``LocalProtocolError`` for a stream.
    """
    if isinstance(options.where, trio.abc.Stream):
        raise LocalProtocolError(
            "open_connection() needs a URL: a stream of trio belongs to the loop that made it"
        )
    return connected(made, Dialling(options.where, options))
