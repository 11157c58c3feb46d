"""Message: sections to payload and back (3.2)."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.performatives import parse_sections
from trio_amqp10.amqp10.message import Data, Message, Sequence, Value, encode_around, encode_message, sections
from trio_amqp10.amqp10.message.sections import HEADER, PROPERTIES, read_section, scan
from trio_amqp10.amqp10.spec.messaging import Header, Properties
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.pair_map import PairMap
from trio_amqp10.amqp10.wire.values import Described, Symbol, Timestamp, UInt, ULong
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

from .parts import (
    APPLICATION,
    DATA,
    DEFAULTS,
    DELIVERY,
    HEADER_OCTETS,
    MAPS,
    MESSAGE,
    ORDER,
    PROPERTIES_OCTETS,
    VALUE,
    WHOLE,
    optional_headers,
    optional_properties,
    received,
    refused,
    scalars,
    text,
    values,
)

# Maps that no dict can hold (1.6.23)


TWINS = PairMap([(Symbol("k"), 1), ("k", 2), (UInt(1), 3), (True, 4), ([1], 5)])
SECTIONS = (
    ("delivery_annotations", "71"),
    ("annotations", "72"),
    ("application_properties", "74"),
    ("body", "77"),
    ("footer", "78"),
)


@pytest.mark.parametrize(("name", "code"), SECTIONS)
def test_map_that_no_dict_can_hold_is_read_and_goes_on_octet_for_octet(name: str, code: str) -> None:
    payload = bytes.fromhex("0053" + code) + encode(TWINS)
    message = received(payload)
    assert getattr(message, name) == TWINS
    assert message.to_payload() == payload
    message.durable = True
    assert message.to_payload() == HEADER_OCTETS + payload
    getattr(message, name)["k"] = 9
    changed = received(message.to_payload())
    assert [*getattr(changed, name).values()] == [1, 9, 3, 4, 5]
    assert message == changed
    assert message != received(payload)
    assert "PairMap" in repr(message)


@pytest.mark.parametrize(("name", "code"), SECTIONS)
def test_map_that_no_dict_can_hold_is_sent_as_it_is(name: str, code: str) -> None:
    message = Message(**{"body": "x", name: TWINS})
    octets = bytes.fromhex("0053" + code) + encode(TWINS)
    assert octets in message.to_payload()
    other = Message("x")
    setattr(other, name, TWINS)
    assert octets in other.to_payload()
    if name != "body":
        getattr(message, name).clear()
        assert len(TWINS) == 5


# Bodies


@pytest.mark.parametrize(
    ("body", "payload"),
    [
        (b"hi", DATA),
        (bytearray(b"hi"), DATA),
        (memoryview(b"hi"), DATA),
        ("hi", VALUE),
        (None, bytes.fromhex("00 53 77 40")),
        (7, bytes.fromhex("00 53 77 55 07")),
        ([1], bytes.fromhex("00 53 77 c0 03 01 55 01")),
        ({}, bytes.fromhex("00 53 77 c1 01 00")),
        (Value(b"hi"), bytes.fromhex("00 53 77 a0 02 6869")),
        (Data(b"a", b"b"), bytes.fromhex("00 53 75 a0 01 61  00 53 75 a0 01 62")),
        (Data(), bytes.fromhex("00 53 75 a0 00")),
        (Sequence([1], []), bytes.fromhex("00 53 76 c0 03 01 55 01  00 53 76 45")),
        (Sequence(), bytes.fromhex("00 53 76 45")),
    ],
)
def test_body_travels_in_the_section_of_its_type(body: Any, payload: bytes) -> None:
    assert encode_message(body) == payload
    assert encode_message(Message(body)) == payload
    assert Message(body).to_payload() == payload


@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000])
def test_body_of_octets_comes_back_for_any_size(size: int) -> None:
    body = bytes(size)
    assert encode_message(body) == Message(body).to_payload() == encode(Described(ULong(0x75), body))
    assert received(encode_message(body)).body == body


@pytest.mark.parametrize("body", ["", "x" * 255, "x" * 256, "ü" * 127, "ü" * 128, "€" * 300])
def test_body_of_text_comes_back_for_any_size(body: str) -> None:
    assert encode_message(body) == encode(Described(ULong(0x77), body))
    assert received(encode_message(body)).body == body


@given(body=values)
def test_body_equals_what_was_sent(body: Any) -> None:
    payload = encode_message(body)
    message = received(payload)
    assert message.body == body
    assert type(message.body) is type(body)
    assert message == Message(body)
    assert encode_message(message.body) == payload
    assert received(Message(Value(body)).to_payload()).body == body


@given(chunks=st.lists(st.binary(max_size=9), min_size=1, max_size=5))
def test_body_joins_data_sections_and_sections_keeps_them(chunks: list[bytes]) -> None:
    for message in (Message(Data(*chunks)), received(Message(Data(*chunks)).to_payload())):
        assert message.body == b"".join(chunks)
        assert message.sections == tuple(Data(chunk) for chunk in chunks)


@given(lists=st.lists(st.lists(values, max_size=3), min_size=1, max_size=4))
def test_body_joins_sequences_and_sections_keeps_them(lists: list[list[Any]]) -> None:
    for message in (Message(Sequence(*lists)), received(Message(Sequence(*lists)).to_payload())):
        assert message.body == [item for items in lists for item in items]
        assert message.sections == tuple(Sequence(items) for items in lists)


def test_sections_tell_octets_as_a_value_from_data() -> None:
    assert received(encode_message(Value(b"hi"))).sections == (Value(b"hi"),)
    assert received(encode_message(b"hi")).sections == (Data(b"hi"),)
    assert received(encode_message("hi")).sections == (Value("hi"),)
    assert received(encode_message(None)).sections == (Value(None),)


def test_body_without_a_section_reads_as_none_and_stays_away() -> None:
    message = received(PROPERTIES_OCTETS)
    assert message.body is None
    assert message.sections == ()
    assert message.message_id == "i"
    message.durable = True
    assert message.to_payload() == HEADER_OCTETS + PROPERTIES_OCTETS
    assert received(b"").body is None
    assert received(b"") != Message(None)


def test_body_of_described_values_stays_described() -> None:
    body = Described(ULong(0x24), [])
    assert received(encode_message(body)).body == body


def test_body_may_be_set() -> None:
    message = received(WHOLE)
    message.body = "hi"
    assert message.body == "hi"
    assert message.to_payload() == WHOLE.replace(DATA, VALUE)
    message.body = bytearray(b"hi")
    assert message.to_payload() == WHOLE


def test_body_changed_in_place_is_written_as_it_is_now() -> None:
    message = received(encode_message({"a": [1]}))
    message.body["a"].append(2)
    assert received(message.to_payload()).body == {"a": [1, 2]}
    message = received(encode_message(Sequence([{"a": 1}])))
    message.body[0]["a"] = 2
    assert received(message.to_payload()).body == [{"a": 2}]


@pytest.mark.parametrize("body", [object(), {1, 2}, "\ud800", 2**64])
def test_body_that_amqp_cannot_hold_is_refused_when_sent(body: Any) -> None:
    with pytest.raises(LocalProtocolError):
        encode_message(body)
    with pytest.raises(LocalProtocolError):
        encode_message(Message(body))


# Header and properties


@pytest.mark.parametrize(
    "body", [b"octets", Data(b"a", b"b"), Sequence([1]), Value("v"), "text", {"k": 1}, None]
)
def test_message_says_nothing_of_its_content_when_its_program_does_not(body: Any) -> None:
    for message in (received(encode_message(body)), received(Message(body, subject="s").to_payload())):
        assert (message.content_type, message.content_encoding) == (None, None)


@pytest.mark.parametrize("body", [b"octets", Data(b"a", b"b"), "text", None])
@pytest.mark.parametrize(
    ("name", "value"),
    [("content_type", "text/plain"), ("content_encoding", "gzip"), ("message_id", "m"), ("group_id", "g")],
)
def test_message_says_one_thing_of_its_content_and_no_other(body: Any, name: str, value: str) -> None:
    message = received(Message(body, **{name: value}).to_payload())
    said = {each: getattr(message, each) for each in ("content_type", "content_encoding")}
    assert said == {"content_type": None, "content_encoding": None} | ({name: value} if name in said else {})


def test_body_is_left_as_it_is_when_a_content_encoding_says_how_to_read_it() -> None:
    made = Message(b"packed", content_type="text/plain", content_encoding="gzip")
    for message in (made, received(made.to_payload())):
        assert (message.body, message.content_type, message.content_encoding) == (
            b"packed",
            "text/plain",
            "gzip",
        )


def test_header_of_defaults_said_outright_is_kept_as_it_came() -> None:
    octets = bytes.fromhex("00 53 70 c0 07 05 42 50 04 40 42 43")
    message = received(octets + DATA)
    assert (message.durable, message.priority, message.ttl, message.delivery_count) == (False, 4, None, 0)
    assert message.to_payload() == octets + DATA
    assert message == Message(b"hi")


@pytest.mark.parametrize(
    ("octets", "attribute", "condition"),
    [
        ("00 53 70 c0 03 01 a1 00", "durable", "amqp:invalid-field"),
        ("00 53 73 c0 03 01 54 05", "message_id", "amqp:invalid-field"),  # an int is no id
        ("00 53 73 a1 01 61", "message_id", "amqp:decode-error"),
        ("00 53 70 c0 07 06 40 40 40 40 40 40", "priority", "amqp:decode-error"),
    ],
)
def test_row_31_field_of_a_wrong_type_is_refused_when_read(
    octets: str, attribute: str, condition: str
) -> None:
    payload = bytes.fromhex(octets) + DATA
    assert refused(payload, attribute).condition == condition
    assert received(payload).body == b"hi"


def test_field_read_by_the_composite_is_the_same() -> None:
    payload = encode(Properties(message_id="i", creation_time=Timestamp(5), group_sequence=6)) + DATA
    (span,) = [each for each in scan(payload)[PROPERTIES : PROPERTIES + 1] if each]

    fields = sections._read_fields(PROPERTIES, payload, span[0], "properties")
    assert fields == read_section(PROPERTIES, payload, span)
    assert [type(field) for field in fields if field is not None][1] is Timestamp
    header = encode(Header(durable=True, ttl=5))
    assert sections._read_fields(HEADER, header, 0, "header") == [True, 4, 5, False, 0]


# Order


def test_row_27_body_of_more_values_than_the_budget_is_refused_when_read() -> None:
    fits = (
        b"\x00\x53\x77\xd0" + (65_535 + 4).to_bytes(4, "big") + (65_535).to_bytes(4, "big") + b"\x40" * 65_535
    )
    assert len(received(fits).body) == 65_535
    over = (
        b"\x00\x53\x77\xd0" + (65_536 + 4).to_bytes(4, "big") + (65_536).to_bytes(4, "big") + b"\x40" * 65_536
    )
    assert refused(over).condition == "amqp:resource-limit-exceeded"


def test_row_27_body_of_more_sections_than_the_budget_is_refused_when_read() -> None:
    empty = bytes.fromhex("00 53 75 a0 00")
    assert received(empty * 65_536).body == b""
    assert refused(empty * 65_537).condition == "amqp:resource-limit-exceeded"


def test_row_27_sequences_share_one_budget() -> None:
    half = (
        b"\x00\x53\x76\xd0" + (33_000 + 4).to_bytes(4, "big") + (33_000).to_bytes(4, "big") + b"\x40" * 33_000
    )
    assert len(received(half).body) == 33_000
    assert refused(half + half).condition == "amqp:resource-limit-exceeded"


def test_row_28_chain_of_descriptors_is_refused_in_linear_time() -> None:
    assert refused(b"\x00\x53\x77" + b"\x00" * 100_000).condition == "amqp:decode-error"
    chain = b"\x00\x53\x77" + b"\x00\x40" * 40 + b"\x40"
    assert refused(chain).condition == "amqp:decode-error"
    assert received(MESSAGE + chain).annotations == {"m": 2}


@given(
    data=st.binary(max_size=40)
    | st.lists(st.sampled_from(ORDER) | st.binary(max_size=9), max_size=7).map(b"".join)
)
def test_message_of_garbage_raises_nothing_else(data: bytes) -> None:
    for name in ("body", "sections", "subject", "durable", *MAPS):
        try:
            getattr(received(data), name)
        except RemoteProtocolError as error:
            assert error.scope == "link"  # noqa: PT017 - both ends are right
    assert received(data).to_payload() == data
    assert isinstance(repr(received(data)), str)


@given(position=st.integers(0, len(WHOLE) - 1), octet=st.integers(0, 255))
def test_message_with_one_octet_changed_raises_nothing_else(position: int, octet: int) -> None:
    data = WHOLE[:position] + bytes([octet]) + WHOLE[position + 1 :]
    message = received(data)
    try:
        assert message == received(data)
    except RemoteProtocolError as error:
        assert error.scope == "link"  # noqa: PT017 - both ends are right
    assert message.to_payload() == data


# Laziness, and octets that pass through


def test_body_is_read_without_reading_the_application_properties() -> None:
    broken = APPLICATION.replace(b"\xa1\x01a", b"\xa1\x01\xff")
    message = received(HEADER_OCTETS + broken + VALUE)
    assert message.body == "hi"
    assert message.durable
    with pytest.raises(RemoteProtocolError, match="application-properties:map: octets of a string"):
        _ = message.application_properties


def test_payload_is_not_looked_at_before_an_attribute_is_read() -> None:
    assert received(b"anything").to_payload() == b"anything"
    assert Message.from_payload(b"anything", 0x80013700).message_format == 0x80013700
    assert Message().message_format == 0


@given(fields=optional_properties, body=values, properties=st.dictionaries(text, scalars, max_size=3))
def test_message_that_was_only_read_gives_back_its_octets(
    fields: dict[str, Any], body: Any, properties: dict[str, Any]
) -> None:
    payload = Message(body, application_properties=properties, annotations={"a": body}, **fields).to_payload()
    message = received(payload)
    assert message == received(payload)
    for name in ("body", "sections", "subject", "durable", *MAPS):
        getattr(message, name)
    assert message.to_payload() == payload


# Legal, but not as we would write it: what an intermediary must leave as it is.
STRANGE = (
    bytes.fromhex("00 80 0000000000000073 d0 0000000a 00000001 b1 00000001 69")
    + bytes.fromhex("00 53 74 d1 0000000f 00000002 b1 00000001 61 71 00000003")
    + bytes.fromhex("00 53 77 d0 00000006 00000001 56 01")
    + bytes.fromhex("00 53 78 d1 00000004 00000000")
)


def test_intermediary_changes_the_header_and_leaves_the_bare_message() -> None:
    message = received(bytes.fromhex("00 53 70 45") + DELIVERY + STRANGE)
    assert (message.message_id, message.application_properties, message.body) == ("i", {"a": 3}, [True])
    message.delivery_count += 1
    message.delivery_annotations["hop"] = 2
    assert message.footer == {}
    assert message.to_payload() == (
        bytes.fromhex("00 53 70 c0 07 05 40 40 40 40 52 01")
        + bytes.fromhex("00 53 71 c1 0d 04 a3 01 64 54 01 a3 03 686f70 55 02")
        + STRANGE
    )
    message.delivery_annotations = {}
    message.delivery_count = 0
    message.annotations = {"m": UInt(2)}
    assert message.to_payload() == bytes.fromhex("00 53 72 c1 06 02 a3 01 6d 52 02") + STRANGE


def test_map_changed_in_place_is_written_as_it_is_now() -> None:
    message = received(STRANGE)
    before, after = (STRANGE[start:end] for start, end in ((0, 25), (25 + 23, None)))
    message.application_properties["b"] = 1
    assert message.to_payload() == (
        before + bytes.fromhex("00 53 74 c1 0b 04 a1 01 61 54 03 a1 01 62 55 01") + after
    )


def test_map_changed_in_place_to_another_type_is_written() -> None:
    message = received(APPLICATION + DATA)
    message.application_properties["a"] = 3  # was an int of 32 bits, is a long
    assert message.to_payload() == APPLICATION.replace(b"\x54\x03", b"\x55\x03") + DATA


def test_map_that_we_may_not_send_passes_through_unless_changed() -> None:
    listed = bytes.fromhex("00 53 74 c1 05 02 a1 01 61 45")  # a list in application-properties
    message = received(listed + DATA)
    assert message.application_properties == {"a": []}
    assert message.to_payload() == listed + DATA
    message.application_properties["b"] = 1
    with pytest.raises(LocalProtocolError, match="expected a simple value"):
        message.to_payload()


# The object


@pytest.mark.parametrize("size", [0, 1, 255, 256, 65_536, 0xFFFFF, 0x100000])
def test_encode_message_writes_octets_of_any_size_like_a_message(size: int) -> None:
    body = bytes(size)
    payload = encode_message(body)
    assert payload == encode_message(Message(Data(body)))
    assert Message.from_payload(payload).body == body


def test_encode_message_takes_a_subclass() -> None:
    class Mine(Message):
        __slots__ = ()

    assert encode_message(Mine("hi")) == VALUE
    assert type(Mine.from_payload(VALUE)) is Mine


def test_message_equals_another_by_its_sections() -> None:
    message = Message(b"hi", subject="s", application_properties={"a": 1})
    assert message == Message(
        Data(b"hi"), subject="s", application_properties={"a": 1}, priority=4, footer={}
    )
    assert message != Message("hi", subject="s", application_properties={"a": 1})
    assert message != Message(b"hi", application_properties={"a": 1})
    assert message != Message(b"hi", subject="s")
    assert message != b"hi"
    with pytest.raises(TypeError):
        hash(message)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda message: pickle.loads(pickle.dumps(message))]
)
@pytest.mark.parametrize(
    "message", [received(WHOLE), Message("x", subject="s", annotations={"a": [1]}), received(b"")]
)
def test_copy_of_a_message_is_apart(copied: Any, message: Message) -> None:
    _ = message.durable
    other = copied(message)
    assert other == message
    before = message.to_payload()
    other.subject = "other"
    other.annotations["new"] = 1
    assert message.to_payload() == before
    assert message.subject != "other"


def test_repr_shows_what_is_there() -> None:
    assert repr(Message("hi", subject="greeting", priority=9, annotations={"x": 1})) == (
        "Message('hi', subject='greeting', priority=9, annotations={'x': 1})"
    )
    assert repr(Message()) == "Message(None)"
    assert repr(received(DATA)) == "Message(b'hi')"


def test_repr_is_bounded() -> None:
    message = Message(
        bytes(10**6), subject="s" * 10**6, application_properties={str(i): i for i in range(10**4)}
    )
    assert len(repr(message)) < 600
    assert "(1000000 octets)" in repr(message)


def test_repr_changes_nothing_and_never_raises() -> None:
    message = received(STRANGE)
    repr(message)
    assert message.to_payload() == STRANGE
    assert repr(received(b"\x00\x53")).startswith("<Message of 2 octets, undecodable: ")


# As another codec sees it


@given(fields=optional_properties, headers=optional_headers, chunk=st.binary(max_size=300))
def test_payload_says_the_same_to_the_second_codec(
    fields: dict[str, Any], headers: dict[str, Any], chunk: bytes
) -> None:
    message = Message(
        chunk, annotations={"a": 1}, application_properties={"k": "v"}, footer={5: None}, **fields, **headers
    )
    said = {name: value for name, value in headers.items() if value != DEFAULTS.get(name)}
    assert dict(parse_sections(message.to_payload())) == {
        **({"header": said} if said else {}),
        "message-annotations": {"a": 1},
        **({"properties": fields} if fields else {}),
        "application-properties": {"k": "v"},
        "data": chunk,
        "footer": {5: None},
    }


# -- around a body that is sent apart ---------------------------------------------------------------


def test_encode_around_gives_the_sections_on_both_sides_of_the_body() -> None:
    head, footer = encode_around(Message(subject="s", ttl=5, footer={"f": 1}))
    whole = Message.from_payload(head + b"\x00\x53\x75\xa0\x01x" + footer)
    assert whole == Message(b"x", subject="s", ttl=5, footer={"f": 1})
    assert encode_around(Message()) == (b"", b"")


def test_encode_around_refuses_a_message_with_a_body() -> None:
    with pytest.raises(LocalProtocolError, match="has a body of type bytes"):
        encode_around(Message(b""))


def test_bare_of_a_message_that_was_made_here_is_what_will_be_sent() -> None:
    message = Message("hello", subject="a", priority=7, footer={"x": 1}, application_properties={"k": 1})
    received = Message.from_payload(message.to_payload())
    assert message.bare == received.bare
    assert message.bare == Message("hello", subject="a", application_properties={"k": 1}).to_payload()


def test_bare_is_what_it_is_now_when_it_was_changed() -> None:
    message = Message.from_payload(Message("hello", subject="a", durable=True).to_payload())
    message.subject = "b"
    assert message.bare == Message("hello", subject="b").to_payload()


def test_bare_of_a_message_without_a_body_is_its_properties() -> None:
    payload = Message(None, subject="a").to_payload().removesuffix(Message(None).to_payload())
    assert Message.from_payload(payload).bare == payload
