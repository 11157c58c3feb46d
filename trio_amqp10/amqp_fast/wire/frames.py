"""Frames: the initiation, and sizes before commands (RFC 006, 2.2.4, 3.1.1).

The size counts the octets after it, including the end octet. It has two octets (up to ``FFFE``), or ``FFFF`` and four octets; the
shorter form is written, both are read. Fragments of messages follow commands, outside of frames.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from trio_amqp10.core.reply_codes import ReplyCodeRfc011

from .faults import ReplyError

if TYPE_CHECKING:
    from .commands import Command

PROTOCOL_ID: Final = 128
VERSION: Final = 1
INITIATION: Final = bytes((PROTOCOL_ID, VERSION))
"""The first octets of a client (3.2.2)."""

FRAME_END: Final = 0xCE
FRAME_MIN: Final = 1024
"""The lowest FRAME_MAX that may be agreed on (3.2.5.1)."""

NEGOTIATION_MAX: Final = 4096
"""The maximum octets of a challenge, a response or a tune (3.2.3, 3.2.4, 3.2.5)."""

_SHORT: Final = struct.Struct(">H")
_LONG: Final = struct.Struct(">HI")
_ESCAPE: Final = 0xFFFF
_LEAST: Final = 2


def frame(payload: bytes) -> bytes:
    """Return the frame around an encoded command: its size, itself, and the end octet."""
    size = len(payload) + 1
    head = _SHORT.pack(size) if size < _ESCAPE else _LONG.pack(_ESCAPE, size)
    return b"".join((head, payload, b"\xce"))


def frame_of(command: Command) -> bytes:
    """Encode a command as a frame.

    Raises:
        LocalProtocolError: a value is invalid for its field.
    """
    return frame(command.encode())


def read_size(buf: bytes | bytearray, pos: int, largest: int) -> tuple[int, int] | None:
    """Decode the size of the frame at ``pos``.

    Return the offset of its command, and the size including the end octet; None if octets are missing.

    Raises:
        ReplyError: 501: the size is invalid, or above ``largest``.
    """
    if len(buf) - pos < _SHORT.size:
        return None
    size, start = _SHORT.unpack_from(buf, pos)[0], pos + _SHORT.size
    if size == _ESCAPE:
        if len(buf) - pos < _LONG.size:
            return None
        size, start = _LONG.unpack_from(buf, pos)[1], pos + _LONG.size
    if not _LEAST <= size <= largest:
        raise ReplyError(
            ReplyCodeRfc011.FRAMING_ERROR, f"a frame must have {_LEAST} to {largest} octets, not {size}"
        )
    return start, size
