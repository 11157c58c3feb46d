"""Messages of the draft and of the final standard, both ways (Book IV, 2)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trio_amqp10.amqp10.draft_2010.registries import TYPES, read, write
from trio_amqp10.amqp10.draft_2010.sections import draft_message, final_message
from trio_amqp10.amqp10.draft_2010.spec import messaging as draft
from trio_amqp10.amqp10.draft_2010.spec.messaging import SectionCode
from trio_amqp10.amqp10.message import Data, Message, Sequence, Value
from trio_amqp10.amqp10.spec.messaging import Properties
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.decode_budget import Budget
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import Described, Symbol, Timestamp, UInt
from trio_amqp10.core.errors import RemoteProtocolError

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


ascii_texts = st.text("abc/-", min_size=1, max_size=6)


keys = st.text("abc-", min_size=1, max_size=5).map(Symbol)


attributes = st.dictionaries(keys, texts | st.integers(-5, 5), max_size=3)


bodies = st.one_of(
    st.binary(max_size=20),
    st.lists(st.binary(max_size=5), min_size=2, max_size=3).map(lambda chunks: Data(*chunks)),
    st.lists(st.lists(texts | st.integers(-300, 300), max_size=3), min_size=1, max_size=3).map(
        lambda lists: Sequence(*lists)
    ),
    texts,
    st.integers(-(2**63), 2**63 - 1),
    st.dictionaries(texts, st.booleans(), max_size=3),
)


@st.composite
def messages(draw: Any) -> Message:
    some: dict[str, Any] = {
        "message_id": st.binary(max_size=5),
        "user_id": st.binary(max_size=5),
        "to": texts,
        "subject": texts,
        "reply_to": texts,
        "correlation_id": st.binary(max_size=5),
        "content_type": ascii_texts.map(Symbol),
        "content_encoding": ascii_texts.map(Symbol),
        "absolute_expiry_time": st.integers(0, 2**40).map(Timestamp),
        "creation_time": st.integers(0, 2**40).map(Timestamp),
        "group_id": texts,
        "group_sequence": st.integers(0, 2**32 - 1),
        "reply_to_group_id": texts,
        "durable": st.booleans(),
        "priority": st.integers(0, 255),
        "ttl": st.integers(0, 2**32 - 1),
        "first_acquirer": st.booleans(),
        "delivery_count": st.integers(0, 2**32 - 1),
        "application_properties": st.dictionaries(texts, texts | st.integers(-5, 5), max_size=3),
        "annotations": attributes,
        "delivery_annotations": attributes,
        "footer": attributes,
    }
    chosen = draw(st.sets(st.sampled_from(sorted(some))))
    return Message(draw(bodies), **{name: draw(some[name]) for name in sorted(chosen)})


def in_the_draft(payload: bytes, message_format: int = 0) -> list[tuple[int, bytes]]:
    """Return the sections of a message, and check each against its code."""
    sections = draft_message(payload, message_format)
    codes = [code for code, _ in sections]
    assert codes[:2] == [SectionCode.HEADER, SectionCode.PROPERTIES]
    assert codes[-1] == SectionCode.FOOTER
    return sections


@given(messages())
@example(Message(b"x", application_properties={"a": 1}))
def test_message_comes_back(message: Message) -> None:
    back = Message.from_payload(final_message(in_the_draft(message.to_payload()), strict=True).payload)
    for name in ("sections", *NAMES):
        before, after = getattr(message, name), getattr(back, name)
        if name in ("application_properties", "annotations", "delivery_annotations", "footer"):
            before, after = before or {}, after or {}
        assert after == before, name


NAMES = (
    *("message_id", "user_id", "to", "subject", "reply_to", "correlation_id", "content_type"),
    *("content_encoding", "absolute_expiry_time", "creation_time", "group_id", "group_sequence"),
    *("reply_to_group_id", "durable", "priority", "ttl", "delivery_count"),
    *("application_properties", "annotations", "delivery_annotations", "footer"),
)


@pytest.mark.parametrize(
    ("given_id", "octets"),
    [("é", "é".encode()), (7, b"7"), (uuid.UUID(int=1), str(uuid.UUID(int=1)).encode()), (b"\xff", b"\xff")],
)
def test_ids_are_octets(given_id: Any, octets: bytes) -> None:
    sections = in_the_draft(Message(b"", message_id=given_id, correlation_id=given_id).to_payload())
    properties = read(sections[1][1], TYPES)
    assert properties.message_id == properties.correlation_id == octets


def test_content_length_is_that_of_the_application_data() -> None:
    sections = in_the_draft(Message(Data(b"abc", b"de"), subject="s").to_payload())
    assert read(sections[1][1], TYPES).content_length == 5


def test_message_with_nothing_to_say_has_empty_sections() -> None:
    assert in_the_draft(Message(b"x").to_payload()) == [(0, b""), (1, b""), (3, b"x"), (2, b"")]


def test_first_acquirer_is_one_that_nobody_acquired_before() -> None:
    for first in (False, True):
        sections = in_the_draft(Message(b"", first_acquirer=first, durable=True).to_payload())
        assert read(sections[0][1], TYPES).former_acquirers == int(not first)
        assert Message.from_payload(final_message(sections).payload).first_acquirer is first


def test_octets_of_another_format_are_data_and_keep_their_format() -> None:
    sections = in_the_draft(b"\x01\x02", 7)
    made = final_message(sections)
    assert (made.payload, made.message_format) == (b"\x01\x02", 7)


@pytest.mark.parametrize("octets", [b"garbage", b"\x00\x53\x75\xa0\x05a", b"\x00"])
def test_octets_that_are_no_message_are_data(octets: bytes) -> None:
    assert in_the_draft(octets)[2:-1] == [(SectionCode.DATA, octets)]


def test_message_without_a_body_has_none_there() -> None:
    assert [code for code, _ in in_the_draft(encode(Properties(subject="s")))] == [0, 1, 2]


# What only the draft has ----------------------------------------------------------------------------


def body_of(*sections: tuple[int, bytes]) -> Any:
    return Message.from_payload(final_message(list(sections)).payload).sections


@pytest.mark.parametrize(
    ("sections", "body"),
    [
        ([], Value(None)),
        ([(3, b"a")], b"a"),
        ([(3, b"a"), (3, b"")], Data(b"a", b"")),
        ([(4, write("x"))], "x"),
        ([(4, b"")], Sequence([])),
        ([(4, write(1) + write("b"))], Sequence([1, "b"])),
        ([(4, write(1)), (4, write(2))], Sequence([1, 2])),
        ([(5, write({"a": 1}))], {"a": 1}),
        ([(5, b"")], {}),
        ([(6, write([1]))], Sequence([1])),
        ([(6, b"")], Sequence([])),
        ([(6, write([1])), (6, write([]))], Sequence([1], [])),
        ([(3, b"a"), (4, write("x")), (5, b""), (6, write([1]))], Sequence([b"a", "x", {}, [1]])),
        ([(4, bytes.fromhex("a2020041"))], "A"),
    ],
)
def test_application_data_as_a_body(sections: Any, body: Any) -> None:
    assert body_of((0, b""), (1, b""), *sections, (2, b"")) == Message(body).sections


def test_sections_at_the_edges_may_be_missing() -> None:
    assert body_of((3, b"a")) == body_of((1, b""), (3, b"a")) == (Data(b"a"),)


@pytest.mark.parametrize(
    "sections",
    [
        [(7, b"")],
        [(0, b""), (0, b"")],
        [(1, b""), (0, b"")],
        [(3, b""), (1, b"")],
        [(2, b""), (3, b"")],
        [(2, b""), (2, b"")],
        [(0, write("text"))],
        [(0, write(draft.Footer()))],
        [(0, write(draft.Header()) + b"\x40")],
        [(5, write([1]))],
        [(6, write({}))],
        [(6, write([1]) + write([2]))],
        [(5, write(1)), (3, b"")],
    ],
)
def test_section_in_another_place_or_of_another_kind_is_refused(sections: Any) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        final_message(sections)
    assert caught.value.condition == "amqp:invalid-field"


@pytest.mark.parametrize("code", [0, 4, 5, 6])
def test_octets_that_are_no_value_are_refused(code: int) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        final_message([(code, b"\xff")])
    assert caught.value.condition == "amqp:decode-error"


def test_time_to_live_counts_from_the_time_of_transmission() -> None:
    header = draft.Header(transmit_time=1_000, ttl=2**40)
    message = Message.from_payload(final_message([(0, write(header)), (3, b"")]).payload)
    assert message.absolute_expiry_time == 1_000 + 2**40
    assert message.ttl == 0xFFFFFFFF
    only = Message.from_payload(final_message([(0, write(draft.Header(transmit_time=1))), (3, b"")]).payload)
    assert only.absolute_expiry_time is None


def test_addresses_of_any_type_are_text() -> None:
    properties = draft.MessageProperties(to=UInt(3), reply_to="q")
    message = Message.from_payload(final_message([(1, write(properties))]).payload)
    assert (message.to, message.reply_to) == ("3", "q")


def test_footer_has_one_map_of_both() -> None:
    footer = draft.Footer(message_attrs={Symbol("a"): 1, Symbol("b"): 1}, delivery_attrs={Symbol("b"): 2})
    message = Message.from_payload(final_message([(3, b""), (2, write(footer))]).payload)
    assert message.footer == {"a": 1, "b": 2}


def test_attributes_are_given_with_the_message_and_those_of_another_type_are_dropped() -> None:
    attrs = {Symbol("x-opt-group-id"): 5, Symbol("x-opt-content-encoding"): "gzip", Symbol("mine"): 1}
    header = draft.Header(message_attrs=attrs, delivery_attrs={Symbol("x-req-a"): 1})
    made = final_message([(0, write(header)), (3, b"")])
    assert (made.message_attrs, made.delivery_attrs) == (attrs, {Symbol("x-req-a"): 1})
    message = Message.from_payload(made.payload)
    assert message.annotations == {"mine": 1}
    assert message.group_id is None
    assert message.content_encoding == "gzip"


# Transactions ---------------------------------------------------------------------------------------


def test_unknown_described_value_stays_as_it_is() -> None:
    assert body_of((4, encode(Described("x:y", "z")))) == (Value(Described("x:y", "z")),)


@pytest.mark.parametrize("description", [None, "no such tea"])
def test_error_of_a_rejected_message_is_under_rejected_and_comes_back(description: str | None) -> None:
    annotations: dict[Any, Any] = {"x-opt-deadletter-condition": "shop:no-tea", "x-opt-mine": 1}
    if description is not None:
        annotations["x-opt-deadletter-description"] = description
    payload = Message(b"x", annotations=annotations).to_payload()
    sections = draft_message(payload)
    header: Any = decode(sections[0][1], 0, Budget(types=TYPES))[0]
    error = header.message_attrs[Symbol("rejected")]
    assert (error.condition, error.description) == ("shop:no-tea", description)
    assert set(header.message_attrs) == {Symbol("rejected"), Symbol("x-opt-mine")}
    assert Message.from_payload(final_message(sections).payload).annotations == annotations


@pytest.mark.parametrize(
    "annotations",
    [
        {"x-opt-deadletter-condition": 5},
        {"x-opt-deadletter-condition": "t\xe9"},
        {"x-opt-deadletter-condition": "a:b", "x-opt-deadletter-description": 5},
        {"rejected": "by hand"},
    ],
    ids=repr,
)
def test_what_is_no_error_stays_among_the_attributes(annotations: Any) -> None:
    sections = draft_message(Message(b"x", annotations=annotations).to_payload())
    header: Any = decode(sections[0][1], 0, Budget(types=TYPES))[0]
    assert header.message_attrs == annotations
    assert Message.from_payload(final_message(sections).payload).annotations == annotations
