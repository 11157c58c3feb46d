"""Whether a message wants to survive: the first field of its header (3.2.1).

Knows a little of the encoding, to answer in a fraction of a microsecond in the common cases; anything
unusual takes the long way, through ``Message``.
"""

from __future__ import annotations

from typing import Final

from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.message import Message

__all__ = ["is_durable"]

_HEADER: Final = b"\x00\x53\x70"
_LIST0: Final = 0x45
_LIST8: Final = 0xC0
_TRUE: Final = 0x41
_FALSE: Final = (0x40, 0x42)  # null is the default, which is false


def is_durable(payload: bytes) -> bool:
    """Whether the header of a message in sections says so; False if it cannot be decoded."""
    if payload[:3] != _HEADER:
        if payload[:1] == b"\x00" and payload[1:2] != b"\x53":  # a descriptor in one of its longer forms
            return _read(payload)
        return False
    head = payload[3:7]
    if head[:1] == bytes((_LIST0,)) or (len(head) == 4 and head[0] == _LIST8 and not head[2]):
        return False
    if len(head) == 4 and head[0] == _LIST8:
        if head[3] == _TRUE:
            return True
        if head[3] in _FALSE:
            return False
    return _read(payload)


def _read(payload: bytes) -> bool:
    try:
        return bool(Message.from_payload(payload).durable)
    except RemoteProtocolError:
        return False
