"""The short ways to read and write sections equal the general ones, in values, errors and faults."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.amqp10.wire.strategies import SCALARS, same, scalars
from trio_amqp10.amqp10.message import Data, Message, Sequence, Value, fields, sections
from trio_amqp10.amqp10.message.readers_shortcut import USUAL_READERS, short_body
from trio_amqp10.amqp10.message.sections import NAMES, PLACES, only_body, scan
from trio_amqp10.amqp10.message.tolerant import message_class
from trio_amqp10.amqp10.wire import codes
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.core.peer_rules import Strict

from .messages import FULL, general, tried

MAPS = ("delivery_annotations", "annotations", "application_properties", "footer")
ATTRIBUTES = (*fields.HEADER_FIELDS, *fields.PROPERTY_FIELDS, *MAPS, "body", "sections", "bare")
CLASSES = [Message, message_class(Strict(duplicate_map_keys=False, section_order=False))]


def seen(payload: bytes, cls: type[Message]) -> list[Any]:
    """All that a reader of this message finds, each attribute in a message of its own."""
    return [plain(tried(lambda name=name: getattr(cls.from_payload(payload), name))) for name in ATTRIBUTES]


def plain(found: Any) -> Any:
    """Bodies in a form that ``same`` looks into."""
    if isinstance(found, tuple):
        return [plain(each) for each in found]
    if isinstance(found, (Data, Sequence, Value)):
        return [found.__class__.__name__, getattr(found, found.__slots__[0])]
    return found


def check_reading(payload: bytes) -> None:
    for cls in CLASSES:
        shortly = seen(payload, cls)
        with general():
            assert same(shortly, seen(payload, cls))


# Values in encodings that are not the shortest, or of which there are several, and some that are none.
UNUSUAL = [
    bytes.fromhex(octets)
    for octets in (
        "40",
        "56 00",
        "56 01",
        "56 02",
        "43",
        "52 00",
        "70 00 00 00 05",
        "44",
        "53 00",
        "80 00 00 00 00 00 00 00 05",
        "54 05",
        "71 00 00 00 05",
        "55 80",
        "81 ff ff ff ff ff ff ff ff",
        "a1 00",
        "a1 02 c3 28",
        "b1 00 00 00 02 68 69",
        "a3 01 ff",
        "b3 00 00 00 01 61",
        "b0 00 00 00 01 61",
        "98 " + "ab" * 16,
        "45",
        "c0 01 00",
        "c1 01 00",
        "e0 02 01 44",
        "00 53 24 45",
        "5f",
        "a1 09 61",
    )
]
any_value = scalars.map(encode) | st.sampled_from(UNUSUAL)
MESSAGE_IDS = st.one_of([SCALARS[name] for name in ("ulong", "uuid", "binary", "string")])
FIELDS = {
    0x70: [SCALARS[name] for name in ("boolean", "ubyte", "uint", "boolean", "uint")],
    0x73: [
        each if isinstance(each, st.SearchStrategy) else SCALARS[each]
        for each in (
            MESSAGE_IDS,
            *("binary", "string", "string", "string"),
            MESSAGE_IDS,
            *("symbol", "symbol", "timestamp", "timestamp", "string", "uint", "string"),
        )
    ],
}
SHORT_KEYS = {code: "string" if code == 0x74 else "symbol" for code in (0x71, 0x72, 0x74, 0x78)}


@st.composite
def section(draw: st.DrawFn, code: int) -> bytes:
    """A section that is well formed, or nearly."""
    if code in FIELDS:
        own = FIELDS[code]
        count = draw(st.integers(0, len(own) + 1))
        items = [
            draw((st.none() | own[index]).map(encode) | any_value if index < len(own) else any_value)
            for index in range(count)
        ]
        code8, code32 = codes.LIST8, codes.LIST32
    elif code in SHORT_KEYS:
        keys = (
            SCALARS[SHORT_KEYS[code]].map(encode) | st.sampled_from([b"\xa1\x01k", b"\xa3\x01k"]) | any_value
        )
        items = [octets for _ in range(draw(st.integers(0, 4))) for octets in (draw(keys), draw(any_value))]
        code8, code32 = codes.MAP8, codes.MAP32
    else:
        return b"\0S" + bytes((code,)) + draw(any_value | st.binary(max_size=300).map(encode))
    content = b"".join(items)
    count = len(items) + draw(st.sampled_from([0, 0, 0, 0, 0, 1, -1, 2]))
    size = len(content) + draw(st.sampled_from([0, 0, 0, 0, 0, 1, -1]))
    content += draw(st.sampled_from([b"", b"", b"", b"\x40", b"\0"]))
    head = draw(st.sampled_from([b"\0S" + bytes((code,))] * 6 + [b"\0\x80" + code.to_bytes(8, "big")]))
    if size + 1 < 256 and 0 <= count < 256 and draw(st.integers(0, 5)):
        return head + bytes((code8, size + 1, count)) + content
    return (
        head
        + bytes((code32,))
        + (max(size, 0) + 4).to_bytes(4, "big")
        + max(count, 0).to_bytes(4, "big")
        + content
    )


payloads = st.lists(st.sampled_from(sorted(PLACES)), unique=True, min_size=1, max_size=6).flatmap(
    lambda chosen: st.tuples(*[section(code) for code in sorted(chosen)]).map(b"".join)
)


@given(payload=payloads)
def test_message_is_read_as_in_the_general_way(payload: bytes) -> None:
    check_reading(payload)


@given(payload=payloads, cut=st.integers(0, 400))
def test_message_cut_short_is_read_as_in_the_general_way(payload: bytes, cut: int) -> None:
    check_reading(payload[:cut])


WHOLE = Message(
    **FULL,
    user_id=b"u",
    content_encoding="gzip",
    creation_time=5,
    group_id="g",
    group_sequence=300,
    reply_to_group_id="r",
    ttl=70_000,
    annotations={"x-opt-a": 1, "x-opt-b": "two"},
    footer={"x-opt-c": None},
).to_payload()


@given(place=st.integers(0, len(WHOLE) - 1), octet=st.integers(0, 255))
def test_message_with_one_octet_changed_is_read_as_in_the_general_way(place: int, octet: int) -> None:
    check_reading(WHOLE[:place] + bytes((octet,)) + WHOLE[place + 1 :])


@given(place=st.integers(0, len(WHOLE)), octets=st.binary(min_size=1, max_size=3))
def test_message_with_octets_put_in_is_read_as_in_the_general_way(place: int, octets: bytes) -> None:
    check_reading(WHOLE[:place] + octets + WHOLE[place:])


@pytest.mark.parametrize("place", range(7))
def test_usual_section_is_read_in_the_short_way(place: int) -> None:
    made = Message(
        **{**FULL, "application_properties": FULL["application_properties"] | {"half": 0.5, "small": -1}},
        delivery_annotations={"x": 1},
        annotations={"x-opt-y": "z"},
        footer={"x": True},
    )
    payload = made.to_payload()
    span = scan(payload)[place]
    assert span is not None
    short = USUAL_READERS[place](payload, *span)
    assert short is not None
    with general():
        assert same(short, sections.read_section(place, payload, span))


@pytest.mark.parametrize("code", sorted(SHORT_KEYS))
def test_key_that_comes_twice_is_left_to_the_general_way(code: int) -> None:
    key = b"\xa1\x01k" if code == 0x74 else b"\xa3\x01k"
    pairs = key + b"\x41" + key + b"\x42"
    payload = bytes((0, 0x53, code, 0xC1, len(pairs) + 1, 4)) + pairs
    assert USUAL_READERS[PLACES[code]](payload, 0, len(payload)) is None
    attribute = MAPS[sorted(SHORT_KEYS).index(code)]
    with pytest.raises(RemoteProtocolError, match="appears twice"):
        getattr(Message.from_payload(payload), attribute)
    assert list(getattr(CLASSES[1].from_payload(payload), attribute).values()) == [False]


@pytest.mark.parametrize("code", [0x70, 0x71, 0x72, 0x73, 0x74, 0x78])
def test_section_of_another_shape_is_left_to_the_general_way(code: int) -> None:
    read = USUAL_READERS[PLACES[code]]
    for head in (bytes((0, 0x80)) + bytes(7) + bytes((code,)), bytes((0, 0x53, code))):
        for value in ("45", "d0 00 00 00 04 00 00 00 00", "d1 00 00 00 04 00 00 00 00"):
            payload = head + bytes.fromhex(value)
            assert read(payload, 0, len(payload)) is None, NAMES[code]


@given(body=st.binary(max_size=300) | st.text(max_size=300), after=st.binary(max_size=2))
def test_body_is_read_in_the_short_way_where_it_is_alone(body: Any, after: bytes) -> None:
    payload = Message(body).to_payload()
    short = short_body(b"--" + payload + after, 2, 2 + len(payload))
    assert same(short, body) or (isinstance(body, str) and len(body.encode()) > 255 and short is None)
    assert same(only_body(payload), short)
    assert short_body(payload, 0, len(payload) + 1) is None
