"""What a message may not take along to its next hop: delivery-annotations (3.2.2).

Knows a little of the encoding, to find in a fraction of a microsecond that there are none, which
is how it is with nearly every message. Anything unusual takes the long way, through ``Message``.
"""

from __future__ import annotations

from typing import Final

from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.message import Message

__all__ = ["for_next_hop"]

_HEADER: Final = b"\x00\x53\x70"
_LATER: Final = frozenset(b"\x00\x53" + bytes((code,)) for code in range(0x72, 0x79))


def for_next_hop(payload: bytes) -> bytes:
    """The octets of a message in sections, without the delivery-annotations that were meant for us.

    The bare message and all else stay the octets that came. What cannot be decoded is left alone.
    """
    head = payload[:3]
    if head in _LATER:
        return payload
    if head == _HEADER:
        code = payload[3:4]
        if code == b"\xc0":
            start = 5 + payload[4] if len(payload) > 4 else 0
        else:
            start = 4 if code == b"\x45" else 0
        if start and payload[start : start + 3] in _LATER:
            return payload
    message = Message.from_payload(payload)
    try:
        if message.delivery_annotations:
            message.delivery_annotations = None
            return message.to_payload()
    except RemoteProtocolError:
        pass
    return payload
