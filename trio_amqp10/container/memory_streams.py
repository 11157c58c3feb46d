"""Two streams, joined in memory: a transport without a network.

Unlike ``trio.testing.memory_stream_pair`` a write is bounded, so that back-pressure works as on a
socket, and nothing is copied: a read gives the very octets of one write, where it has room for them.
"""

from __future__ import annotations

from collections import deque
from operator import index
from typing import Final

import trio

__all__ = ["MemoryStream", "memory_stream_pair"]

_LIMIT: Final = 256 * 1024
"""Octets that wait to be read before a writer has to wait."""


class _Pipe:
    """Octets on their way in one direction."""

    __slots__ = ("_offset", "changed", "chunks", "ended", "read_closed", "size", "write_closed")

    def __init__(self) -> None:
        self.chunks: deque[bytes] = deque()
        self.size: int = 0
        self.ended: bool = False  # no more will be written, by the end of the stream or its closing
        self.read_closed: bool = False
        self.write_closed: bool = False
        self.changed: Final = trio.lowlevel.ParkingLot()
        self._offset = 0  # of the first chunk, how much was read

    def take(self, most: int | None) -> bytes:
        """The octets of one write, or what is left of them; no more than ``most``."""
        chunk = self.chunks[0]
        start = self._offset
        left = len(chunk) - start
        if most is not None and left > most:
            self._offset = start + most
            self.size -= most
            return chunk[start : self._offset]
        self.chunks.popleft()
        self._offset = 0
        self.size -= left
        return chunk[start:] if start else chunk


class MemoryStream(trio.abc.HalfCloseableStream):
    """One end of ``memory_stream_pair()``."""

    __slots__ = ("_in", "_out", "_receiving", "_sending")

    def __init__(self, incoming: _Pipe, outgoing: _Pipe) -> None:
        self._in = incoming
        self._out = outgoing
        self._sending = False
        self._receiving = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write; waits while too much waits to be read.

        Raises:
            trio.BrokenResourceError: the other end is closed.
            trio.ClosedResourceError: this one is, or ``send_eof`` was called.
            trio.BusyResourceError: another task is writing.

        Cancelled: nothing was written.
        """
        await self._writable(ended=False)
        if data:
            self._out.chunks.append(bytes(data))
            self._out.size += len(data)
            self._out.changed.unpark_all()

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until a write would not wait, or would raise. Cancelled: nothing has happened."""
        await self._writable(ended=True)

    async def _writable(self, *, ended: bool) -> None:
        pipe = self._out
        if self._sending:
            raise trio.BusyResourceError("another task is writing to this stream")
        self._sending = True
        try:
            await trio.lowlevel.checkpoint()
            while True:
                if pipe.write_closed or (pipe.ended and not ended):
                    raise trio.ClosedResourceError("this end of the stream was closed, or its writing ended")
                if pipe.read_closed:
                    if ended:
                        return
                    raise trio.BrokenResourceError("the other end of the stream is closed")
                if pipe.size < _LIMIT:
                    return
                await pipe.changed.park()
        finally:
            self._sending = False

    async def send_eof(self) -> None:
        """Write no more; the other end reads all there is, then ``b""``. Twice is fine."""
        if self._sending:
            raise trio.BusyResourceError("another task is writing to this stream")
        await trio.lowlevel.checkpoint()
        if self._out.write_closed:
            raise trio.ClosedResourceError("this end of the stream was closed")
        self._out.ended = True
        self._out.changed.unpark_all()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """What the other end wrote, at most one write of it; ``b""`` when it has ended.

        Raises:
            TypeError, ValueError: ``max_bytes`` is no int, or not at least 1.
            trio.ClosedResourceError: this end was closed.
            trio.BusyResourceError: another task is reading.

        Cancelled: nothing was read.
        """
        if max_bytes is not None and index(max_bytes) < 1:
            raise ValueError("max_bytes is at least 1")
        if self._receiving:
            raise trio.BusyResourceError("another task is reading from this stream")
        pipe = self._in
        self._receiving = True
        try:
            await trio.lowlevel.checkpoint()
            while not pipe.chunks and not pipe.ended and not pipe.read_closed:
                await pipe.changed.park()
        finally:
            self._receiving = False
        if pipe.read_closed:
            raise trio.ClosedResourceError("this end of the stream was closed")
        if not pipe.chunks:
            return b""
        chunk = pipe.take(max_bytes)
        pipe.changed.unpark_all()
        return chunk

    def close(self) -> None:
        """Close both ways, at once."""
        self._out.ended = self._out.write_closed = True
        self._in.read_closed = True
        self._in.chunks.clear()
        self._out.changed.unpark_all()
        self._in.changed.unpark_all()

    async def aclose(self) -> None:
        """Close both ways. Cancelled: it is closed."""
        self.close()
        await trio.lowlevel.checkpoint()


def memory_stream_pair() -> tuple[MemoryStream, MemoryStream]:
    """Two streams; what is written to one is read from the other."""
    there, back = _Pipe(), _Pipe()
    return MemoryStream(there, back), MemoryStream(back, there)
