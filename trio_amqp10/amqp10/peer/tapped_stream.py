"""A stream that reports all octets that pass, and changes none.

Knows streams; knows nothing of the meaning of the octets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable


class TappedStream(trio.abc.Stream):
    """Passes all octets to and from another stream, and reports them.

    Made by ``tapped``.

    Args:
        stream: the stream to pass to and from.
        on_written: called with octets before they are written.
        on_read: called with octets after they were read; ``b""`` is the end of the stream.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        on_written: Callable[[bytes], object],
        on_read: Callable[[bytes], object],
    ) -> None:
        self.stream = stream
        self._on_written = on_written
        self._on_read = on_read

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Report ``data``, then send it."""
        self._on_written(bytes(data))
        await self.stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """Wait for the stream."""
        await self.stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Receive octets, then report them."""
        data = bytes(await self.stream.receive_some(max_bytes))
        self._on_read(data)
        return data

    async def aclose(self) -> None:
        """Close the stream."""
        await self.stream.aclose()


class _HalfCloseable(TappedStream, trio.abc.HalfCloseableStream):
    stream: trio.abc.HalfCloseableStream

    async def send_eof(self) -> None:
        """Send the end of the stream."""
        await self.stream.send_eof()


def tapped(
    stream: trio.abc.Stream, on_written: Callable[[bytes], object], on_read: Callable[[bytes], object]
) -> TappedStream:
    """Return a ``TappedStream`` of ``stream``, half-closeable if ``stream`` is.

    The arguments are those of ``TappedStream``.
    """
    cls = _HalfCloseable if isinstance(stream, trio.abc.HalfCloseableStream) else TappedStream
    return cls(stream, on_written, on_read)
