"""Pad the lists of frames with nulls, as older Azure clients need (1.4).

A list may end with its last field that has a value, and this library writes it so. The clients inside azure-eventhub, and
inside azure-servicebus before 7.15, read each field by its position, and fail if the list is shorter.

Knows the octets of whole frames (2.3); does not know their meaning.
"""

from __future__ import annotations

from typing import Any, Final, cast

from trio_amqp10.amqp10.spec.messaging import Modified, Received, Rejected, Source, Target
from trio_amqp10.amqp10.spec.transactions import Coordinator, Declared, TransactionalState
from trio_amqp10.amqp10.spec.transport import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Transfer,
)
from trio_amqp10.amqp10.wire.composite import plan_of
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.frames import FRAME_HEADER_SIZE
from trio_amqp10.amqp10.wire.values import Described

_FIELDS: Final[dict[int, int]] = {
    plan_of(each).code: len(plan_of(each).fields)
    for each in (
        Attach,
        Begin,
        Close,
        Coordinator,
        Declared,
        Detach,
        Disposition,
        End,
        Error,
        Flow,
        Modified,
        Open,
        Received,
        Rejected,
        Source,
        Target,
        TransactionalState,
        Transfer,
    )
}
"""The number of fields of each list, by descriptor; other lists are unchanged."""

MARGIN: Final = 64
"""The most octets by which a transfer grows."""


def fill(octets: bytes) -> bytes:
    """Return the frames with all fields.

    Args:
        octets: whole AMQP frames of this library, after a protocol header or not.
    """
    at = 0
    filled: list[bytes] = []
    while at < len(octets):
        if octets.startswith(b"AMQP", at):
            size, frame = FRAME_HEADER_SIZE, octets[at : at + FRAME_HEADER_SIZE]
        else:
            size = int.from_bytes(octets[at : at + 4], "big")
            frame = _fill(octets[at : at + size])
        filled.append(frame)
        at += size
    return b"".join(filled)


def _fill(frame: bytes) -> bytes:
    if len(frame) == FRAME_HEADER_SIZE:
        return frame
    performative, end = decode(frame, FRAME_HEADER_SIZE)
    body = encode(_whole(performative)) + frame[end:]
    return (FRAME_HEADER_SIZE + len(body)).to_bytes(4, "big") + frame[4:FRAME_HEADER_SIZE] + body


def _whole(value: Any) -> Any:
    if isinstance(value, Described):
        inner: Any = value.value
        count = _FIELDS.get(value.descriptor, 0) if inner.__class__ is list else 0
        if not count:
            return value
        fields = [_whole(each) for each in cast("list[Any]", inner)]
        return Described(value.descriptor, fields + [None] * (count - len(fields)))
    return value
