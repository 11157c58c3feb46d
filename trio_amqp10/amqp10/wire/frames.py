"""Frames: a header of eight octets, a skipped extended header, and a body (2.3).

This module does not interpret bodies.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from trio_amqp10.core.peer_rules import FRAME_HEADER, MAX_FRAME_SIZE, ProtocolRule

FRAME_HEADER_SIZE: Final = 8
MIN_MAX_FRAME_SIZE: Final = 512
"""The frame size that every peer accepts before it has negotiated one (2.7.1)."""

AMQP_FRAME: Final = 0x00
SASL_FRAME: Final = 0x01

_HEADER: Final = Struct(">IBBH")
_SIZE: Final = Struct(">I")

EMPTY_FRAME: Final = _HEADER.pack(8, 2, AMQP_FRAME, 0)
"""A frame without a body, which keeps a connection from becoming idle (2.4.5)."""


def encode_frame(channel: int, body: bytes, frame_type: int = AMQP_FRAME) -> bytes:
    """Encode a frame without an extended header; ``channel`` is 0 for a SASL frame."""
    return _HEADER.pack(FRAME_HEADER_SIZE + len(body), 2, frame_type, channel) + body


def parse_frame(
    buf: bytes, pos: int, max_size: int, size_rule: ProtocolRule = MAX_FRAME_SIZE
) -> tuple[int, int, int, int] | None:
    """Find the frame that begins at ``pos``.

    Return frame type, channel, start of the body and end of the frame; None while octets are missing. A size over ``max_size`` is
    refused after the first four octets, before more is buffered; ``size_rule`` is the rule that sets this limit (2.7.1).

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
