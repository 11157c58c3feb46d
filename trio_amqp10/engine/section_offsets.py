"""Progress of a delivery as section number and section offset (3.4.1).

A section counts from the first octet of its descriptor. A message in another format than that of
Part 3 is one section here. Knows where sections end, and nothing of what they say.
"""

from __future__ import annotations

import struct

from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.message.sections import section_code, skip_value
from trio_amqp10.spec.messaging import Received

__all__ = ["offset_of", "progress"]


def progress(octets: bytes, message_format: int) -> Received:
    """What a receiver says that has these first octets of a message: where it wants the sender to go on."""
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
    """The octet of the whole message that the state points at; None where it has no such place."""
    start = 0
    for _ in range(state.section_number):
        end = None if message_format or start == len(payload) else _section_end(payload, start)
        if end is None:
            return None
        start = end
    offset = start + state.section_offset
    return offset if offset <= len(payload) else None


def _section_end(octets: bytes, start: int) -> int | None:
    """Where the section ends; None where that is behind these octets, or they are no section."""
    try:
        end = skip_value(octets, section_code(octets, start)[1])
    except (IndexError, struct.error, RemoteProtocolError):
        return None
    return end if end <= len(octets) else None
