"""Connections that a dialect serves in memory, and that a test can cut."""

from __future__ import annotations

import contextlib
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio
from trio.testing import memory_stream_pair

from trio_amqp10.net import dialling_base
from trio_amqp10.net.dialect import AcceptedConnection
from trio_amqp10.net.login_failures import HostLoginFailures, LoginFailures
from trio_amqp10.net.transport_layers import Transport
from trio_amqp10.tools.trace.frame_splitter import FrameSplitter

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import pytest

    from trio_amqp10.net.dialect import Dialect
    from trio_amqp10.sasl import Server


def accepted(stream: trio.abc.Stream, sasl: Server | None = None) -> AcceptedConnection:
    """A stream as a listener would have it."""
    return AcceptedConnection(
        stream=stream,
        transport=Transport(stream=stream),
        name="memory",
        host=None,
        private=True,
        began=trio.current_time(),
        opened=lambda: None,
        failures=HostLoginFailures(LoginFailures(None, trio.current_time), None),
        sasl=sasl,
    )


@asynccontextmanager
async def served(dialect: Dialect, sasl: Server | None = None) -> AsyncGenerator[trio.abc.Stream]:
    """The peer's end of a connection."""
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(dialect.serve, accepted(ours, sasl))
        try:
            yield theirs
        finally:
            await theirs.aclose()
            nursery.cancel_scope.cancel()


class CutStream(trio.abc.Stream):
    """A stream that breaks after so many octets.

    Args:
        stream: what to pass to and from.
        left: octets that may be written, and octets that may be read; None for any number.

    Attributes:
        written, read: octets that have passed.
        frames: frames that were read since ``read_frames``.
    """

    def __init__(self, stream: trio.abc.Stream, left: tuple[int | None, int | None] = (None, None)) -> None:
        self._stream = stream
        self._to_write, self._to_read = left
        self._holds = False
        self._cut = trio.Event()
        self._splitter: FrameSplitter | None = None
        self._frames: deque[bytes] = deque()
        self._spoiled: int | None = None
        self.written = self.read = self.frames = 0

    def limit_writing(self, octets: int) -> None:
        """Break it after so many more octets were written."""
        self._to_write = octets

    def limit_reading(self, octets: int) -> None:
        """Break it after so many more octets were read."""
        self._to_read = octets

    def read_frames(self, protocol: str, *, spoiled: int | None = None) -> None:
        """Let each read have one frame.

        Args:
            protocol: as for ``FrameSplitter``.
            spoiled: the frame, the first being 0, that comes with octets of no protocol, and is the last.
        """
        self._splitter = FrameSplitter(protocol)
        self._spoiled = spoiled

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self._cut.is_set():
            raise trio.BrokenResourceError("cut")
        octets = bytes(data)
        passed = octets if self._to_write is None else octets[: self._to_write]
        if self._to_write is not None:
            self._to_write -= len(passed)
        await self._stream.send_all(passed)
        self.written += len(passed)
        if len(passed) < len(octets):
            await self.cut()
            raise trio.BrokenResourceError("cut while it was written")

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if self._frames:
            await trio.lowlevel.checkpoint()
        while not self._frames:
            data = await self._receive(max_bytes)
            if not data or self._splitter is None:
                return data
            self._frames.extend(piece.octets for piece in self._splitter.feed(data))
        self.frames += 1
        frame = self._frames.popleft()
        if self.frames - 1 == self._spoiled:
            frame += b"\xff" * 64
            self._frames.clear()
            await self.cut()
        return frame

    async def _receive(self, max_bytes: int | None) -> bytes:
        data = b""
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                await self._cut.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                data = bytes(await self._stream.receive_some(max_bytes))
            nursery.cancel_scope.cancel()
        if self._cut.is_set():
            raise trio.BrokenResourceError("cut")
        if self._to_read is not None:
            if len(data) > self._to_read or not self._to_read:
                await self.cut()
            data, self._to_read = data[: self._to_read], self._to_read - len(data[: self._to_read])
            if not data:
                raise trio.BrokenResourceError("cut while it was read")
        self.read += len(data)
        return data

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        if self._holds:
            await trio.lowlevel.checkpoint()
        else:
            await self._stream.aclose()

    async def cut(self) -> None:
        """Break the stream; a held other end notices only after ``let_go``."""
        self._cut.set()
        if self._holds:
            await trio.lowlevel.checkpoint()
        else:
            await trio.aclose_forcefully(self._stream)

    def break_silently(self) -> None:
        """Break the stream without waking the tasks that wait for it."""
        self._cut.set()

    def hold_the_other_end(self) -> None:
        """Keep the other end from noticing a cut."""
        self._holds = True

    async def let_go(self) -> None:
        """Let the other end notice the cut."""
        self._holds = False
        await trio.aclose_forcefully(self._stream)


class OneOctetStream(CutStream):
    """A stream whose other end reads one octet at a time."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        for octet in bytes(data):
            await super().send_all(bytes((octet,)))


class Redialled:
    """A dialect that clients dial in memory, any number of times.

    Args:
        dialect: that is served.
        nursery: for the connections.

    Attributes:
        cuts: where the next connections are cut, as of ``CutStream``; later ones are not.
        accepts: whether a dial succeeds.
        sasl: who may log in; None for everybody.
        streams: those of the clients, the oldest first.
    """

    def __init__(self, dialect: Dialect, nursery: trio.Nursery) -> None:
        self.dialect = dialect
        self.cuts: list[tuple[int | None, int | None]] = []
        self.accepts = True
        self.sasl: Server | None = None
        self.streams: list[CutStream] = []
        self._nursery = nursery

    async def dial(self, _url: object = None) -> trio.abc.Stream:
        """Return the client's end of a new connection."""
        await trio.lowlevel.checkpoint()
        if not self.accepts:
            raise ConnectionRefusedError("nobody listens")
        ours, theirs = memory_stream_pair()
        self._nursery.start_soon(self.dialect.serve, accepted(ours, self.sasl))
        self.streams.append(CutStream(theirs, self.cuts.pop(0) if self.cuts else (None, None)))
        return self.streams[-1]

    async def sever(self) -> None:
        """Cut the latest connection."""
        await self.streams[-1].cut()


@asynccontextmanager
async def redialled(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Redialled]:
    """Connect every client that dials to the dialect."""
    async with trio.open_nursery() as nursery:
        made = Redialled(dialect, nursery)
        monkeypatch.setattr(dialling_base, "connect", made.dial)
        monkeypatch.setattr(dialling_base, "is_private", lambda _stream: True)
        yield made
        nursery.cancel_scope.cancel()
