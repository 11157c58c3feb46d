"""Frames: the initiation, and a size before each command (RFC 006, 2.2.4, 3.1.1).

The size counts the octets behind it, the end octet among them: two octets up to ``FFFE``, or ``FFFF`` and four octets. The
shorter form is written, both are read. Fragments of messages stand behind commands, outside of frames. Knows no command.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from trio_amqp10.reply_codes import ReplyCodeRfc011

from .faults import ReplyError

if TYPE_CHECKING:
    from .commands import Command

__all__ = [
    "FRAME_END",
    "FRAME_MIN",
    "INITIATION",
    "NEGOTIATION_MAX",
    "PROTOCOL_ID",
    "VERSION",
    "frame",
    "frame_of",
    "read_size",
]

PROTOCOL_ID: Final = 128
VERSION: Final = 1
INITIATION: Final = bytes((PROTOCOL_ID, VERSION))
"""What a client begins with (3.2.2)."""

FRAME_END: Final = 0xCE
FRAME_MIN: Final = 1024
"""The least FRAME_MAX that may be agreed (3.2.5.1)."""

NEGOTIATION_MAX: Final = 4096
"""Octets of a challenge, a response or a tune (3.2.3, 3.2.4, 3.2.5)."""

_SHORT: Final = struct.Struct(">H")
_LONG: Final = struct.Struct(">HI")
_ESCAPE: Final = 0xFFFF
_LEAST: Final = 2


def frame(payload: bytes) -> bytes:
    """A command with its size and its end."""
    size = len(payload) + 1
    head = _SHORT.pack(size) if size < _ESCAPE else _LONG.pack(_ESCAPE, size)
    return b"".join((head, payload, b"\xce"))


def frame_of(command: Command) -> bytes:
    """The frame of a command.

    Raises:
        LocalProtocolError: a value that its field does not take.
    """
    return frame(command.encode())


def read_size(buf: bytes | bytearray, pos: int, largest: int) -> tuple[int, int] | None:
    """Where the command of the frame at ``pos`` begins, and its size with the end octet; None if octets are missing.

    Raises:
        ReplyError: 501; the size is none, or above ``largest``.
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
            ReplyCodeRfc011.FRAMING_ERROR, f"a frame of {size} octets, where {_LEAST} to {largest} are taken"
        )
    return start, size
