"""Sections in octets, and values of fields, for tests of messages."""

from __future__ import annotations

import datetime
import uuid

import pytest
from hypothesis import strategies as st

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire.values import Symbol, Timestamp, UByte, ULong
from trio_amqp10.core.errors import RemoteProtocolError

UTC = datetime.UTC
ID = uuid.UUID(int=0x0123456789ABCDEF0123456789ABCDEF)


def received(payload: bytes) -> Message:
    return Message.from_payload(payload)


integers = st.integers(-(2**63), 2**64 - 1)
scalars = (
    st.none()
    | st.booleans()
    | integers
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.binary(max_size=20)
    | st.uuids()
    | st.integers(0, 255).map(UByte)
    | st.integers(-(2**63), 2**63 - 1).map(Timestamp)
    | st.text(st.characters(max_codepoint=127), max_size=9).map(Symbol)
)
values = st.recursive(
    scalars,
    lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text(max_size=5), each, max_size=4),
    max_leaves=8,
)
DEFAULTS = {"durable": False, "priority": 4, "first_acquirer": False, "delivery_count": 0}
text = st.text(max_size=12) | st.just("x" * 300)
times = st.integers(-(2**63), 2**63 - 1).map(Timestamp)
ids = text | st.binary(max_size=300) | st.uuids() | st.integers(0, 2**64 - 1).map(ULong)
symbols = st.text(st.characters(max_codepoint=127), max_size=12).map(Symbol) | st.just(Symbol("s" * 300))
uints = st.integers(0, 2**32 - 1)
optional_headers = st.fixed_dictionaries(
    {},
    optional={
        "durable": st.booleans(),
        "priority": st.integers(0, 255),
        "ttl": uints,
        "first_acquirer": st.booleans(),
        "delivery_count": uints,
    },
)
optional_properties = st.fixed_dictionaries(
    {},
    optional={
        "message_id": ids,
        "user_id": st.binary(max_size=300),
        "to": text,
        "subject": text,
        "reply_to": text,
        "correlation_id": ids,
        "content_type": symbols,
        "content_encoding": symbols,
        "absolute_expiry_time": times,
        "creation_time": times,
        "group_id": text,
        "group_sequence": uints,
        "reply_to_group_id": text,
    },
)


# One section each, written by hand from the standard.
HEADER_OCTETS = bytes.fromhex("00 53 70 c0 02 01 41")  # durable
DELIVERY = bytes.fromhex("00 53 71 c1 06 02 a3 01 64 54 01")  # {d: int 1}
MESSAGE = bytes.fromhex("00 53 72 c1 06 02 a3 01 6d 54 02")  # {m: int 2}
PROPERTIES_OCTETS = bytes.fromhex("00 53 73 c0 04 01 a1 01 69")  # message-id "i"
APPLICATION = bytes.fromhex("00 53 74 c1 06 02 a1 01 61 54 03")  # {"a": int 3}
DATA = bytes.fromhex("00 53 75 a0 02 6869")
VALUE = bytes.fromhex("00 53 77 a1 02 6869")
FOOTER = bytes.fromhex("00 53 78 c1 06 02 a3 01 66 54 04")  # {f: int 4}
ORDER = [HEADER_OCTETS, DELIVERY, MESSAGE, PROPERTIES_OCTETS, APPLICATION, DATA, FOOTER]
WHOLE = b"".join(ORDER)


def refused(payload: bytes, attribute: str = "body", read_by: type[Message] = Message) -> RemoteProtocolError:
    message = read_by.from_payload(payload)
    with pytest.raises(RemoteProtocolError) as caught:
        getattr(message, attribute)
    assert caught.value.scope == "link"
    assert message.to_payload() == payload
    return caught.value


MAPS = {
    "application_properties": ("00 53 74 c1 06 02 a1 01 61 55 01", str),
    "annotations": ("00 53 72 c1 06 02 a3 01 61 55 01", Symbol),
    "delivery_annotations": ("00 53 71 c1 06 02 a3 01 61 55 01", Symbol),
    "footer": ("00 53 78 c1 06 02 a3 01 61 55 01", Symbol),
}
