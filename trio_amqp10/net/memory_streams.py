"""A pair of streams joined in memory: a transport without a network.

Unlike in ``trio.testing.memory_stream_pair`` writing is bounded, so that back-pressure works as on a
socket, and nothing is copied: a read returns the bytes object of one write, if ``max_bytes`` permits.
"""

from __future__ import annotations

from collections import deque
from operator import index
from typing import Final

import trio

_LIMIT: Final = 256 * 1024
"""Unread octets at which a writer must wait."""


class _Pipe:
    """The octets that travel in one direction."""

    __slots__ = ("_offset", "changed", "chunks", "ended", "read_closed", "size", "write_closed")

    def __init__(self) -> None:
        self.chunks: deque[bytes] = deque()
        self.size: int = 0
        self.ended: bool = False  # by send_eof or close: no more will be written
        self.read_closed: bool = False
        self.write_closed: bool = False
        self.changed: Final = trio.lowlevel.ParkingLot()
        self._offset = 0  # octets of the first chunk that were read

    def take(self, most: int | None) -> bytes:
        """Remove and return the rest of the oldest write; at most ``most`` octets."""
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
        """Write ``data``, after waiting while too many octets are unread.

        Raises:
            trio.BrokenResourceError: the other end is closed.
            trio.ClosedResourceError: this end is closed, or ``send_eof`` was called.
            trio.BusyResourceError: another task is writing.

        Cancelled: nothing was written.
        """
        await self._writable(ended=False)
        if data:
            self._out.chunks.append(bytes(data))
            self._out.size += len(data)
            self._out.changed.unpark_all()

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until a write would not wait, or would raise.

        Cancelled: nothing has changed.
        """
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
        """End writing: the other end reads the rest, then ``b""``.

        A second call does nothing.
        """
        if self._sending:
            raise trio.BusyResourceError("another task is writing to this stream")
        await trio.lowlevel.checkpoint()
        if self._out.write_closed:
            raise trio.ClosedResourceError("this end of the stream was closed")
        self._out.ended = True
        self._out.changed.unpark_all()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return octets of at most one write, or ``b""`` after the end.

        Raises:
            TypeError, ValueError: ``max_bytes`` is no int, or less than 1.
            trio.ClosedResourceError: this end was closed.
            trio.BusyResourceError: another task is reading.

        Cancelled: nothing was read.
        """
        if max_bytes is not None and index(max_bytes) < 1:
            raise ValueError(f"max_bytes={max_bytes}: expected at least 1, or None for any number")
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
        """Close both directions at once."""
        self._out.ended = self._out.write_closed = True
        self._in.read_closed = True
        self._in.chunks.clear()
        self._out.changed.unpark_all()
        self._in.changed.unpark_all()

    async def aclose(self) -> None:
        """Close both directions. Cancelled: both are closed."""
        self.close()
        await trio.lowlevel.checkpoint()


def memory_stream_pair() -> tuple[MemoryStream, MemoryStream]:
    """Return two streams; octets written to one are read from the other."""
    there, back = _Pipe(), _Pipe()
    return MemoryStream(there, back), MemoryStream(back, there)
