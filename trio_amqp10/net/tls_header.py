"""Protocol headers as octets of a stream, and asking for TLS by one (2.2, 5.2.1).

Not one octet is read that is not a header's, or stands where one was due. Knows no handshake.
"""

from __future__ import annotations

from typing import Final

import trio

from trio_amqp10.errors import Condition, RemoteProtocolError, SecurityDowngradeError
from trio_amqp10.protocol_headers import AMQP_ID, HEADER_SIZE, TLS_HEADER, TLS_ID, header_id

__all__ = ["InvalidProtocolHeaderError", "ask_for_tls", "receive_header"]

_TLS_RECORDS: Final = (b"\x15", b"\x16")
"""What a server's first record may be: an alert, or a handshake."""
_HEADER_PATIENCE: Final = 1.0
"""Seconds that a peer has to answer the header of TLS, before the handshake begins all the same."""


async def ask_for_tls(stream: trio.abc.Stream) -> trio.abc.Stream:
    """Exchange the headers of TLS; returns the stream that TLS is to lie on (5.2.1).

    A listener of Qpid Proton takes our header and sends none, as though the handshake were its answer: it waits for
    us. So the handshake begins without an answer after a moment, and the answer is read where it comes.
    """
    await stream.send_all(TLS_HEADER)
    answer = _Answer(stream)
    with trio.move_on_after(_HEADER_PATIENCE):
        await answer.read_header()
        return stream
    return answer


class _Answer(trio.abc.Stream):
    """The stream below TLS, whose peer has not answered our header yet: a record of TLS may come in its place.

    Nothing else is let through. Whether the peer answers proves nothing: who it is, TLS finds out.
    """

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._head = b""
        self._done = False

    async def read_header(self) -> None:
        """Read the answer. Cancelled: what came of it is kept.

        Raises:
            SecurityDowngradeError: it asks us to go on with less.
            RemoteProtocolError: it is no header, and no record of TLS.
            trio.BrokenResourceError: nothing is there any more.
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
                    f"we asked for TLS (protocol id 2), and the peer answered with protocol id {protocol_id}: "
                    f"it wants to continue with {name} in the clear"
                )
            self._done, self._head = True, b""

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """As of any stream."""
        await self.read_header()
        if self._head:
            head, self._head = self._head, b""
            return head
        return await self._stream.receive_some(max_bytes)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """As of any stream."""
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        """As of any stream."""
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        """As of any stream."""
        await self._stream.aclose()


async def receive_header(stream: trio.abc.Stream, head: bytes) -> tuple[int, bytes]:
    """The protocol id of a header, and its octets; not one octet more is read.

    Raises:
        InvalidProtocolHeaderError: something else is there.
        trio.BrokenResourceError: nothing is there any more.
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
    """Not a protocol header; ``head`` is what there is instead."""

    def __init__(self, wrong: RemoteProtocolError, head: bytes) -> None:
        super().__init__(wrong.description, Condition.FRAMING_ERROR)
        self.head = head
