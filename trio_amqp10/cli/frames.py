"""Frames for people to read: a stream that shows what passes through it.

Knows frames and performatives; changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.frames import SASL_FRAME, parse_frame
from trio_amqp10.headers import HEADER_SIZE
from trio_amqp10.spec import PERFORMATIVES, SASL_PERFORMATIVES

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ShownStream"]

_ANY_SIZE: Final = 2**32 - 1


class ShownStream(trio.abc.HalfCloseableStream):
    """Passes everything through, and tells ``show`` one line for each header and frame.

    Args:
        stream: what to pass to and from.
        show: called with ``->`` or ``<-`` and what it is.
    """

    def __init__(self, stream: trio.abc.HalfCloseableStream, show: Callable[[str], object]) -> None:
        self._stream = stream
        self._out = _Direction("->", show)
        self._in = _Direction("<-", show)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """As the stream's own."""
        self._out.feed(bytes(data))
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """As the stream's own."""
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        """As the stream's own."""
        await self._stream.send_eof()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """As the stream's own."""
        data = bytes(await self._stream.receive_some(max_bytes))
        self._in.feed(data)
        return data

    async def aclose(self) -> None:
        """As the stream's own."""
        await self._stream.aclose()


class _Direction:
    def __init__(self, arrow: str, show: Callable[[str], object]) -> None:
        self._arrow = arrow
        self._show = show
        self._buffer = b""

    def feed(self, data: bytes) -> None:
        self._buffer += data
        pos = 0
        while (end := self._next(pos)) is not None:
            pos = end
        self._buffer = self._buffer[pos:]

    def _next(self, pos: int) -> int | None:
        """Show what begins at ``pos``; where it ends, or None while octets are missing."""
        buffer = self._buffer
        if buffer[pos : pos + 4] == b"AMQP" and len(buffer) >= pos + HEADER_SIZE:
            layer, *version = buffer[pos + 4 : pos + HEADER_SIZE]
            self._show(f"{self._arrow} header AMQP {layer} {'.'.join(map(str, version))}")
            return pos + HEADER_SIZE
        frame = parse_frame(buffer, pos, _ANY_SIZE)
        if frame is None:
            return None
        kind, channel, start, end = frame
        self._show(f"{self._arrow} {_described(kind, channel, buffer[start:end])}")
        return end


def _described(kind: int, channel: int, body: bytes) -> str:
    if not body:
        return "empty frame"
    registry = SASL_PERFORMATIVES if kind == SASL_FRAME else PERFORMATIVES
    try:
        performative, end = registry.decode(body)
    except RemoteProtocolError as failure:
        return f"{len(body)} octets: {failure.description}"
    prefix = "" if kind == SASL_FRAME else f"[{channel}] "
    payload = f" + {len(body) - end} octets" if end < len(body) else ""
    return f"{prefix}{_without_secrets(performative)}{payload}"


def _without_secrets(performative: Any) -> str:
    name = type(performative).__name__
    if name in ("SaslInit", "SaslResponse", "SaslChallenge"):
        return f"{name}({getattr(performative, 'mechanism', '')})"
    return repr(performative)
