"""The position in a message as section number and section offset (3.4.1).

A section counts from the first octet of its descriptor. A message of another format than that of Part 3
counts as one section. Knows where sections end, but not their content.
"""

from __future__ import annotations

import struct

from trio_amqp10.amqp10.message.sections import section_code, skip_value
from trio_amqp10.amqp10.spec.messaging import Received
from trio_amqp10.core.errors import RemoteProtocolError


def progress(octets: bytes, message_format: int) -> Received:
    """Return the state of a receiver that has the first ``octets`` of a message.

    It names the place from which the sender must continue.
    """
    number = start = 0
    if not message_format:
        while start < len(octets):
            end = _section_end(octets, start)
            if end is None:
                break
            number += 1
            start = end
    return Received(section_number=number, section_offset=len(octets) - start)


def offset_of(payload: bytes, message_format: int, state: Received) -> int | None:
    """Return the octet of the message that ``state`` names, or None if outside."""
    start = 0
    for _ in range(state.section_number):
        end = None if message_format or start == len(payload) else _section_end(payload, start)
        if end is None:
            return None
        start = end
    offset = start + state.section_offset
    return offset if offset <= len(payload) else None


def _section_end(octets: bytes, start: int) -> int | None:
    """Return the end of a section; None if it is incomplete or malformed."""
    try:
        end = skip_value(octets, section_code(octets, start)[1])
    except (IndexError, struct.error, RemoteProtocolError):
        return None
    return end if end <= len(octets) else None
