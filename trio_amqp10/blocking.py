"""AMQP 1.0 without async: for scripts, threads, and asyncio by ``asyncio.to_thread``.

``connect`` starts a thread in which trio runs; every call hands its work to that thread, and waits. Any number of threads may use a
connection and what is opened on it. A call that is interrupted, as by Ctrl-C, is cancelled there, as its async namesake is.

A call costs two changes of thread: what sends or receives many thousand messages a second is better off with trio itself.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
from math import inf
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import trio

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.message import Message  # noqa: TC001 - the manual reads annotations
from trio_amqp10.patterns.requester import Requester as AsyncRequester
from trio_amqp10.patterns.requester import RequesterOpening
from trio_amqp10.peer.connection import Connection as AsyncConnection
from trio_amqp10.peer.dial_options import WhereAndOptions
from trio_amqp10.peer.dialling import Dialling
from trio_amqp10.peer.link_options import (
    ConnectionReceiverOptions,
    ConnectionSenderOptions,
    RequesterOptions,
)
from trio_amqp10.peer.option_signatures import takes, takes_on
from trio_amqp10.peer.receiver import Receiver as AsyncReceiver
from trio_amqp10.peer.receiver import open_receiver
from trio_amqp10.peer.sender import Sender as AsyncSender
from trio_amqp10.peer.sender import open_sender

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    from trio_amqp10.peer.delivery import Delivery as AsyncDelivery

    Future = concurrent.futures.Future[Any]

__all__ = ["Connection", "Delivery", "Receiver", "Requester", "Sender", "connect"]

T = TypeVar("T")


class _LeftByExceptionError(Exception):
    """A block was left by an exception: its async namesake does not wait for outcomes then. Never leaves this module."""


def _closed() -> trio.ClosedResourceError:
    return trio.ClosedResourceError("this connection was closed here")


class _TrioThread:
    """A thread in which trio runs until it is stopped."""

    def __init__(self) -> None:
        started: Future = concurrent.futures.Future()
        # A program that ends without closing is not held up.
        self._thread = threading.Thread(target=trio.run, args=(self._main, started), name="amqp", daemon=True)
        self._thread.start()
        self._token, self._nursery = started.result()

    async def _main(self, started: Future) -> None:
        async with trio.open_nursery() as nursery:
            started.set_result((trio.lowlevel.current_trio_token(), nursery))
            await trio.sleep_forever()

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Await ``function()`` there; an interrupt here cancels it."""
        done: concurrent.futures.Future[T] = concurrent.futures.Future()
        scope = trio.CancelScope()

        async def task() -> None:
            try:
                with scope:
                    done.set_result(await function())
            except Exception as failure:
                done.set_exception(failure)
            finally:
                if not done.done():
                    done.cancel()

        self.start(task)
        try:
            return done.result()
        except concurrent.futures.CancelledError:
            raise _closed() from None
        except BaseException:
            if not done.done():  # what was raised came to this thread, as an interrupt does
                self._token.run_sync_soon(scope.cancel)
                with contextlib.suppress(concurrent.futures.CancelledError):
                    done.exception()
            raise

    def start(self, task: Callable[[], Awaitable[None]]) -> None:
        """Have ``task()`` run there."""
        try:
            self._token.run_sync_soon(self._nursery.start_soon, task)
        except trio.RunFinishedError:
            raise _closed() from None

    def stop(self) -> None:
        """End trio, with whatever runs there, and the thread."""
        try:
            self._token.run_sync_soon(self._nursery.cancel_scope.cancel)
        except trio.RunFinishedError:
            return
        self._thread.join()


class _Block(Generic[T]):
    """An ``async with`` block that a task of its own is in, until ``leave``."""

    def __init__(self, thread: _TrioThread, opening: AbstractAsyncContextManager[T]) -> None:
        self._thread = thread
        self._opening = opening
        self._leaving = trio.Event()
        self._entered: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._left: Future = concurrent.futures.Future()
        self._failed = False
        self._scope = trio.CancelScope()
        thread.start(self._run)
        try:
            self.value = self._entered.result()
        except concurrent.futures.CancelledError:
            raise _closed() from None
        except BaseException:
            if not self._entered.done():
                thread.run(self._cancel)
            raise

    async def _cancel(self) -> None:
        self._scope.cancel()

    async def _run(self) -> None:
        try:
            with self._scope:
                async with self._opening as value:
                    self._entered.set_result(value)
                    await self._leaving.wait()
                    if self._failed:
                        raise _LeftByExceptionError
        except _LeftByExceptionError:
            pass
        except Exception as failure:
            (self._left if self._entered.done() else self._entered).set_exception(failure)
        finally:
            self._entered.cancel()  # where the loop was stopped meanwhile
            if not self._left.done():
                self._left.set_result(None)

    def leave(self, *, failed: bool = False) -> None:
        """Leave the block, and raise what leaving it raises. The second time does nothing."""
        self._failed = self._failed or failed
        if not self._left.done():
            self._thread.run(self._leave)
            self._left.result()

    async def _leave(self) -> None:
        self._leaving.set()


class _Opened(Generic[T]):
    """What is open until ``close``, or until its ``with`` block is left."""

    def __init__(self, thread: _TrioThread, opening: AbstractAsyncContextManager[T]) -> None:
        self._thread = thread
        self._block = _Block(thread, opening)
        self._inner = self._block.value

    def close(self) -> None:
        """Close it, as leaving the block of its async namesake does. The second time does nothing."""
        self._leave(failed=False)

    def _leave(self, *, failed: bool) -> None:
        self._block.leave(failed=failed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._leave(failed=kind is not None)

    def __repr__(self) -> str:
        return f"<blocking {self._inner!r}>"


class Connection(_Opened[AsyncConnection]):
    """A connection for programs without async; ``connect`` makes it. Any number of threads may use it."""

    @takes_on(ConnectionSenderOptions)
    def open_sender(self, options: ConnectionSenderOptions) -> Sender:
        """Open a sender: ``with conn.open_sender("orders") as sender``; arguments and errors as ``trio_amqp10.Connection.open_sender``."""
        return Sender(self._thread, open_sender(self._inner, options))

    @takes_on(ConnectionReceiverOptions)
    def open_receiver(self, options: ConnectionReceiverOptions) -> Receiver:
        """Open a receiver: ``with conn.open_receiver("orders") as receiver``; as ``trio_amqp10.Connection.open_receiver``."""
        return Receiver(self._thread, open_receiver(self._inner, options))

    @takes_on(RequesterOptions)
    def open_requester(self, options: RequesterOptions) -> Requester:
        """Ask a service: ``with conn.open_requester("upper") as requester``; as ``trio_amqp10.Connection.open_requester``."""
        return Requester(self._thread, RequesterOpening(self._inner, options))

    def _leave(self, *, failed: bool) -> None:
        try:
            super()._leave(failed=failed)
        finally:
            self._thread.stop()


class Sender(_Opened[AsyncSender]):
    """Sends messages to a node of the peer."""

    def send(self, message: Any, *, timeout: float | None = None) -> Any:
        """Send a message, and wait for its outcome; as ``trio_amqp10.Sender.send``.

        Args:
            message: bytes, str, any AMQP value, or a ``Message``.
            timeout: seconds to wait at most; whether it was sent is not known then.

        Returns:
            The outcome; None where it was sent settled.

        Raises: as there, and ``trio.TooSlowError`` if there was no outcome in time.
        """
        return self._thread.run(lambda: _within(timeout, lambda: self._inner.send(message)))


class Receiver(_Opened[AsyncReceiver]):
    """Receives messages from a node of the peer: one by one, or with ``for delivery in receiver``, until the peer detaches."""

    def receive(self, *, timeout: float | None = None) -> Delivery:
        """The next delivery.

        Args:
            timeout: seconds to wait at most.

        Raises: as ``trio_amqp10.Receiver.receive``, and ``trio.TooSlowError`` if none came in time; none is lost.
        """
        return self._wrapped(self._thread.run(lambda: _within(timeout, self._inner.receive)))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Delivery:
        """The next delivery; ends when the peer detaches without an error."""
        found = self._thread.run(self._next)
        if found is None:
            raise StopIteration
        return self._wrapped(found)

    async def _next(self) -> AsyncDelivery | None:
        try:
            return await self._inner.__anext__()
        except StopAsyncIteration:
            return None

    def _wrapped(self, received: AsyncDelivery) -> Delivery:
        return Delivery(self._thread, received)


class Delivery:
    """A message that came in, to be accepted, rejected or released; each once. An outcome raises as its async namesake does."""

    def __init__(self, thread: _TrioThread, received: AsyncDelivery) -> None:
        self._thread = thread
        self._inner = received

    @property
    def message(self) -> Message:
        """The message; its sections are decoded as they are read."""
        return self._inner.message

    def accept(self) -> None:
        """Say that the message was processed (3.4.2)."""
        self._settle(self._inner.accept)

    def reject(self, condition: str = "amqp:internal-error", description: str | None = None) -> None:
        """Say that the message is invalid, and why (3.4.3)."""
        self._settle(lambda: self._inner.reject(condition, description))

    def release(self) -> None:
        """Give the message back, as if it had never been delivered (3.4.4)."""
        self._settle(self._inner.release)

    def _settle(self, outcome: Callable[[], None]) -> None:
        async def give() -> None:
            outcome()

        self._thread.run(give)

    def __repr__(self) -> str:
        return f"<blocking {self._inner!r}>"


class Requester(_Opened[AsyncRequester]):
    """Sends requests and returns the replies to them; any number of threads at a time."""

    def request(self, request: Any, *, timeout: float | None = None) -> Message:
        """Send a request and wait for its reply; arguments and errors as ``trio_amqp10.Requester.request``."""
        return self._thread.run(lambda: self._inner.request(request, timeout=timeout))


@takes(WhereAndOptions)
def connect(options: WhereAndOptions) -> Connection:
    """Dial a peer: ``with connect("amqp://localhost:5672") as conn``; arguments and errors as ``trio_amqp10.open_connection``.

    Returns when the connection is open. Closing it, or leaving the block, closes all that was opened on it, and ends its thread.

    Raises: also ``LocalProtocolError`` for a stream, which belongs to another loop.
    """
    if isinstance(options.where, trio.abc.Stream):
        raise LocalProtocolError(
            "connect() needs a URL: a stream of trio belongs to the loop that it was made in"
        )
    dialling = Dialling(options.where, options)
    thread = _TrioThread()
    try:
        return Connection(thread, dialling)
    except BaseException:
        thread.stop()
        raise


async def _within(seconds: float | None, call: Callable[[], Awaitable[T]]) -> T:
    with trio.fail_after(inf if seconds is None else seconds):
        return await call()
