"""Serve scripted peers: in memory, at a port, or in another thread.

A script is an async function of a ``ScriptedPeer``. If a script fails, its stream is closed, and the exception is
raised at the end of the block.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from trio_amqp10.net.memory_streams import MemoryStream, memory_stream_pair
from trio_amqp10.net.transports import bind, listener_url
from trio_amqp10.net.urls import parse_url

from .scripted_peer import ScriptedPeer
from .threads import in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from contextlib import AbstractContextManager

Script = Callable[[ScriptedPeer], Awaitable[object]]
"""The behaviour of a scripted peer on one connection."""


@asynccontextmanager
async def scripted_stream(script: Script, *, timeout: float = 5.0) -> AsyncGenerator[MemoryStream]:  # noqa: ASYNC109
    """Open a stream to a scripted peer in memory: for ``open_connection(stream)``.

    Args:
        script: the behaviour of the peer.
        timeout: seconds of trio's clock for each wait of the peer, and for the rest of the script after
            the end of the block.

    Raises:
        AssertionError: at the end of the block: the conversation differs from the script, or the script has not finished.

    Cancelled: the script is cancelled too, and the stream is closed.
    """
    ours, theirs = memory_stream_pair()
    run = _Run(timeout)
    async with _beside(run, partial(run.play, theirs, script)):
        try:
            yield ours
        finally:
            ours.close()


@asynccontextmanager
async def open_peer(
    *scripts: Script,
    url: str = "amqp://127.0.0.1:0",
    timeout: float = 5.0,  # noqa: ASYNC109
) -> AsyncGenerator[str]:
    """Serve scripted peers at a port: ``async with open_peer(script) as url``.

    Args:
        scripts: a script for each connection, in the order of arrival.
        url: the URL to listen at; port 0 chooses a free port.
        timeout: as for ``scripted_stream``.

    Returns:
        The URL to dial.

    Raises:
        OSError: the URL cannot be listened at.
        AssertionError: at the end of the block: a conversation differs from its script, or a script has not finished.

    Cancelled: the scripts are cancelled too, and all streams are closed.
    """
    where = parse_url(url)
    listener, *others = await bind(where)
    for other in others:
        await other.aclose()
    run = _Run(timeout)
    async with listener, _beside(run, partial(run.listen, listener, scripts)):
        yield listener_url(where, listener)


def running_peer(*scripts: Script, timeout: float = 5.0) -> AbstractContextManager[str]:
    """Serve scripted peers in a thread: ``with running_peer(script) as url``.

    For clients of any kind: blocking code, asyncio, or another process.

    Args:
        scripts: a script for each connection, in the order of arrival.
        timeout: as for ``scripted_stream``.

    Raises:
        AssertionError: at the end of the block: a conversation differs from its script, or a script has not finished.
    """
    return in_thread(open_peer(*scripts, timeout=timeout), "amqp10 scripted peer")


class _Run:
    """A series of scripts, and its progress."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.finished = trio.Event()
        self.failure: Exception | None = None
        self._now = "the script has not finished"
        self._peer: ScriptedPeer | None = None

    async def play(self, stream: trio.abc.Stream, script: Script) -> None:
        async with ScriptedPeer(stream, timeout=self.timeout) as self._peer:
            await script(self._peer)

    async def listen(self, listener: trio.SocketListener, scripts: tuple[Script, ...]) -> None:
        for number, script in enumerate(scripts, 1):
            self._now = f"script {number} of {len(scripts)} waits for a connection"
            self._peer = None
            stream = await listener.accept()
            self._now = f"script {number} of {len(scripts)} has not finished"
            await self.play(stream, script)
        await listener.aclose()

    async def guard(self, scripts: Callable[[], Awaitable[None]]) -> None:
        try:
            await scripts()
        except Exception as failure:
            self.failure = failure
        finally:
            self.finished.set()

    def late(self) -> AssertionError:
        story = self._peer.transcript if self._peer is not None else []
        return AssertionError("\n".join([self._now, *(f"    {line}" for line in story[-12:])]))


@asynccontextmanager
async def _beside(run: _Run, scripts: Callable[[], Awaitable[None]]) -> AsyncGenerator[None]:
    """Run scripts during the block.

    An exception of either propagates unchanged (never wrapped in a group). If both fail, the script's exception is raised.
    """
    raised: Exception | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run.guard, scripts)
        try:
            yield
        except Exception as failure:
            raised = failure
        else:
            with trio.move_on_after(run.timeout):
                await run.finished.wait()
        is_late = not run.finished.is_set()
        nursery.cancel_scope.cancel()
    if run.failure is not None:
        raise run.failure from raised
    if raised is not None:
        raise raised
    if is_late:
        raise run.late()
