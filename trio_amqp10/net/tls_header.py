"""Protocol headers on a stream, and the request for TLS by a header (2.2, 5.2.1).

Reads only the octets of a header, or those received where a header is due. Knows no handshake.
"""

from __future__ import annotations

from typing import Final

import trio

from trio_amqp10.core.errors import Condition, RemoteProtocolError, SecurityDowngradeError
from trio_amqp10.core.protocol_headers import AMQP_ID, HEADER_SIZE, TLS_HEADER, TLS_ID, header_id

_TLS_RECORDS: Final = (b"\x15", b"\x16")
"""Possible types of a server's first TLS record: an alert, or a handshake."""
_HEADER_PATIENCE: Final = 1.0
"""Seconds to wait for the peer's TLS header before the handshake begins anyway."""


async def ask_for_tls(stream: trio.abc.Stream) -> trio.abc.Stream:
    """Exchange the TLS headers; return the stream to put TLS on (5.2.1).

    A listener of Qpid Proton does not answer our header, and waits for our handshake. So if there is no answer after
    ``_HEADER_PATIENCE``, the handshake begins without it, and the answer is read if it still comes.
    """
    await stream.send_all(TLS_HEADER)
    answer = _Answer(stream)
    with trio.move_on_after(_HEADER_PATIENCE):
        await answer.read_header()
        return stream
    return answer


class _Answer(trio.abc.Stream):
    """The stream below TLS while the peer has not answered our header.

    It accepts the header, or a TLS record instead of it, and nothing else. The answer proves nothing about the peer: only TLS
    authenticates it.
    """

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._head = b""
        self._done = False

    async def read_header(self) -> None:
        """Read the answer. Cancelled: the octets read so far are kept.

        Raises:
            SecurityDowngradeError: the peer asks us to continue without TLS.
            RemoteProtocolError: it is neither a header nor a record of TLS.
            trio.BrokenResourceError: the stream ended.
        """
        while not self._done:
            if self._head[:1] in _TLS_RECORDS:
                self._done = True
                return
            protocol_id = _protocol_id(self._head)
            if protocol_id is None:
                self._head += await _some(self._stream, HEADER_SIZE - len(self._head))
                continue
            if protocol_id != TLS_ID:
                name = "AMQP" if protocol_id == AMQP_ID else "SASL"
                raise SecurityDowngradeError(
                    f"TLS (protocol id 2) was requested, and the peer answered with protocol id {protocol_id}: "
                    f"it wants to continue with {name} in the clear"
                )
            self._done, self._head = True, b""

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Do the same as any stream."""
        await self.read_header()
        if self._head:
            head, self._head = self._head, b""
            return head
        return await self._stream.receive_some(max_bytes)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Do the same as any stream."""
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """Do the same as any stream."""
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        """Do the same as any stream."""
        await self._stream.aclose()


async def receive_header(stream: trio.abc.Stream, head: bytes) -> tuple[int, bytes]:
    """Return the protocol id of a header, and its octets; read no octet more.

    Raises:
        InvalidProtocolHeaderError: the octets are no header.
        trio.BrokenResourceError: the stream ended.
    """
    while (protocol_id := _protocol_id(head)) is None:
        head += await _some(stream, HEADER_SIZE - len(head))
    return protocol_id, head


def _protocol_id(head: bytes) -> int | None:
    try:
        return header_id(head)
    except RemoteProtocolError as wrong:
        raise InvalidProtocolHeaderError(wrong, head) from wrong


async def _some(stream: trio.abc.Stream, most: int) -> bytes:
    data = await stream.receive_some(most)
    if not data:
        raise trio.BrokenResourceError("the peer ended the transport before its protocol header")
    return bytes(data)


class InvalidProtocolHeaderError(RemoteProtocolError):
    """The octets received are no protocol header; ``head`` contains them."""

    def __init__(self, wrong: RemoteProtocolError, head: bytes) -> None:
        super().__init__(wrong.description, Condition.FRAMING_ERROR)
        self.head = head
