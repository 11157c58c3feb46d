"""The frame: eight octets of header, an extended header that we skip, and a body (2.3).

Knows sizes and offsets, not what a body means.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from .protocol_rules import FRAME_HEADER, MAX_FRAME_SIZE, ProtocolRule

__all__ = [
    "AMQP_FRAME",
    "EMPTY_FRAME",
    "FRAME_HEADER_SIZE",
    "MIN_MAX_FRAME_SIZE",
    "SASL_FRAME",
    "encode_frame",
    "parse_frame",
]

FRAME_HEADER_SIZE: Final = 8
MIN_MAX_FRAME_SIZE: Final = 512
"""Every peer takes frames of this many octets before anything was negotiated (2.7.1)."""

AMQP_FRAME: Final = 0x00
SASL_FRAME: Final = 0x01

_HEADER: Final = Struct(">IBBH")
_SIZE: Final = Struct(">I")

EMPTY_FRAME: Final = _HEADER.pack(8, 2, AMQP_FRAME, 0)
"""Keeps a connection from going idle, and says nothing else (2.4.5)."""


def encode_frame(channel: int, body: bytes, frame_type: int = AMQP_FRAME) -> bytes:
    """One frame without an extended header; ``channel`` is 0 for a SASL frame."""
    return _HEADER.pack(FRAME_HEADER_SIZE + len(body), 2, frame_type, channel) + body


def parse_frame(
    buf: bytes, pos: int, max_size: int, size_rule: ProtocolRule = MAX_FRAME_SIZE
) -> tuple[int, int, int, int] | None:
    """Find the frame that begins at ``pos``: (frame type, channel, body start, frame end).

    Returns None while octets are missing. A size over ``max_size`` is refused from the first
    four octets, before anything more is buffered; ``size_rule`` says whence that limit is (2.7.1).

    Raises:
        RemoteProtocolError: ``amqp:connection:framing-error`` (2.3.1).
    """
    have = len(buf) - pos
    if have < 4:
        return None
    (size,) = _SIZE.unpack_from(buf, pos)
    if size > max_size:
        raise size_rule.broken(f"frame of {size} octets, larger than the {max_size} agreed")
    if size < FRAME_HEADER_SIZE:
        raise FRAME_HEADER.broken(f"frame size {size} is less than its own header of 8 octets")
    if have < size:
        return None
    _, doff, frame_type, channel = _HEADER.unpack_from(buf, pos)
    if doff < 2 or 4 * doff > size:
        raise FRAME_HEADER.broken(f"data offset {doff} of a frame of {size} octets is out of range")
    return frame_type, channel, pos + 4 * doff, pos + size
