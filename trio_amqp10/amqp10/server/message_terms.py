"""The parts that a container reads of every message: terms, durability (3.2).

Most messages have only default terms. A few comparisons of octets find that in a fraction of a microsecond; all other
messages are decoded as ``Message``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp10.message import Message
from trio_amqp10.broker.nodes.content import USUAL, Terms
from trio_amqp10.core.errors import RemoteProtocolError

if TYPE_CHECKING:
    from trio_amqp10.core.tolerances import Tolerances

SOURCE: Final = "x-opt-deadletter-source"
REASON: Final = "x-opt-deadletter-reason"
CONDITION: Final = "x-opt-deadletter-condition"
DESCRIPTION: Final = "x-opt-deadletter-description"
DEATHS: Final = "x-opt-deaths"
"""Annotations of dead letters: see ``native_message`` and ``death_annotations``."""

_HEADER: Final = b"\x00\x53\x70"
_ANNOTATIONS: Final = b"\x00\x53\x72"
_PROPERTIES: Final = b"\x00\x53\x73"
_AFTER_PROPERTIES: Final = frozenset(b"\x00\x53" + bytes((code,)) for code in range(0x74, 0x78))
_LIST0: Final = 0x45
_LIST8: Final = 0xC0
_TRUE: Final = 0x41
_FALSE: Final = (0x40, 0x42)  # False, and null: the default is false (3.2.1).
_LATER: Final = frozenset(b"\x00\x53" + bytes((code,)) for code in range(0x72, 0x79))
_MAP8: Final = 0xC1
_FIELDS_BEFORE_PRIORITY: Final = 1
_FIELDS_BEFORE_EXPIRY: Final = 8


def usual_durability(payload: bytes) -> bool | None:
    """Whether a message with the usual terms and no delivery-annotations is durable.

    None for a message in sections that has other terms, or that must be decoded to find out.
    """
    pos = 0
    head = payload[:3]
    durable = False
    try:
        if head == _HEADER:
            # Only ``durable`` may be set: every later field belongs to the terms, or to deliveries (3.2.1).
            code = payload[3]
            if code == _LIST0:
                pos = 4
            elif code == _LIST8 and payload[5] <= _FIELDS_BEFORE_PRIORITY:
                pos = 5 + payload[4]
                if payload[5]:
                    durable = payload[6] == _TRUE
                    if not durable and payload[6] not in _FALSE:
                        return None
            else:
                return None
            head = payload[pos : pos + 3]
        if head == _ANNOTATIONS and payload[pos + 3] == _MAP8:
            # Annotations can only remove the expiry of a dead letter, and this message has none.
            pos += 5 + payload[pos + 4]
            head = payload[pos : pos + 3]
        if head == _PROPERTIES:
            code = payload[pos + 3]
            if code == _LIST0 or (code == _LIST8 and payload[pos + 5] <= _FIELDS_BEFORE_EXPIRY):
                return durable
            return None
    except IndexError:  # The message is cut off, so no section of it can be read.
        return None
    return durable if head in _AFTER_PROPERTIES else None


def terms_of(payload: bytes, tolerances: Tolerances | None = None) -> Terms:
    """Return the terms of a message in sections; the usual terms if it is unreadable.

    ``tolerances`` counts the rules that the message breaks.
    """
    message = Message.from_payload(payload, 0, tolerances)
    terms = USUAL
    try:
        terms = Terms(message.priority, message.ttl)
        if REASON in message.annotations:
            terms = Terms(message.priority)
        elif DEATHS not in message.annotations:
            expiry = message.absolute_expiry_time
            terms = terms._replace(expiry=None if expiry is None else int(expiry))
        return terms._replace(group=message.group_id)
    except RemoteProtocolError:
        return terms


def is_durable(payload: bytes) -> bool:
    """Whether the header of a message in sections has ``durable``.

    True if the header cannot be decoded, because the sender may have set it.
    """
    if payload[:3] != _HEADER:
        return payload[:3] not in _LATER and _read_durable(payload)
    head = payload[3:7]
    if head[:1] == bytes((_LIST0,)) or (len(head) == 4 and head[0] == _LIST8 and not head[2]):
        return False
    if len(head) == 4 and head[0] == _LIST8:
        if head[3] == _TRUE:
            return True
        if head[3] in _FALSE:
            return False
    return _read_durable(payload)


def _read_durable(payload: bytes) -> bool:
    try:
        return bool(Message.from_payload(payload).durable)
    except RemoteProtocolError:
        return True


def for_next_hop(payload: bytes) -> bytes:
    """Return a message in sections without its delivery-annotations (3.2.2).

    These were meant for this container only. All other sections keep their octets. A message that cannot be decoded is
    returned unchanged.
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
