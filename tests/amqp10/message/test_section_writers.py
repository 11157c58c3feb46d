"""Sections are written as the generic codec writes them, and refuse what they may not hold (3.2)."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.message import Message, Value, encode_message
from trio_amqp10.amqp10.spec.messaging import Header, Properties
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import Array, Char, Described, Symbol, Timestamp, UInt, ULong
from trio_amqp10.core.errors import LocalProtocolError

from .parts import (
    DEFAULTS,
    ID,
    UTC,
    optional_headers,
    optional_properties,
    received,
    scalars,
    symbols,
    text,
    values,
)


@given(fields=optional_headers)
def test_header_by_hand_equals_the_generic_codec(fields: dict[str, Any]) -> None:
    payload = Message("x", **fields).to_payload()
    said = any(value != DEFAULTS.get(name) for name, value in fields.items())
    assert payload == (encode(Header(**fields)) if said else b"") + encode_message("x")
    assert {name: getattr(received(payload), name) for name in fields} == fields


@given(fields=optional_properties)
def test_properties_by_hand_equal_the_generic_codec(fields: dict[str, Any]) -> None:
    payload = Message("x", **fields).to_payload()
    assert payload == (encode(Properties(**fields)) if fields else b"") + encode_message("x")
    assert {name: getattr(received(payload), name) for name in fields} == fields


@pytest.mark.parametrize("name", ["annotations", "delivery_annotations", "footer"])
def test_annotation_keys_travel_as_symbols_and_ulongs(name: str) -> None:
    message = Message(
        None, **{name: {"x-opt-a": "text", 5: [1], Symbol("s" * 300): {"k": None}, ULong(6): b""}}
    )
    back = getattr(received(message.to_payload()), name)
    assert back == {"x-opt-a": "text", 5: [1], "s" * 300: {"k": None}, 6: b""}
    assert [type(key) for key in back] == [Symbol, ULong, Symbol, ULong]
    assert type(back["x-opt-a"]) is str


@pytest.mark.parametrize("key", [True, 1.5, b"k", None, "ü", -1])
def test_annotation_key_of_another_type_is_refused_when_sent(key: Any) -> None:
    with pytest.raises(LocalProtocolError):
        Message(None, annotations={key: 1}).to_payload()


@pytest.mark.parametrize(
    "error", [Error(condition="a:b"), Described(Symbol("amqp:error:list"), [Symbol("a:b")])]
)
def test_annotation_rejected_goes_out_when_it_is_an_error(error: Any) -> None:
    back = received(Message("x", delivery_annotations={"rejected": error}).to_payload())
    assert back.delivery_annotations["rejected"].value == ["a:b"]
    back.delivery_annotations["hop"] = 2
    assert received(back.to_payload()).delivery_annotations == back.delivery_annotations


@pytest.mark.parametrize("value", [None, "a:b", {"condition": "a:b"}, Described(ULong(0x24), []), Header()])
def test_annotation_rejected_is_refused_when_it_is_no_error(value: Any) -> None:
    for name in ("annotations", "footer"):
        Message("x", **{name: {"rejected": value}}).to_payload()
    with pytest.raises(LocalProtocolError, match="rejected"):
        Message("x", delivery_annotations={"rejected": value}).to_payload()


SIMPLE = [
    None,
    True,
    False,
    1,
    2**64 - 1,
    1.5,
    "s",
    "x" * 300,
    b"b",
    bytearray(b"b"),
    ID,
    Symbol("s"),
    Char("c"),
    UInt(5),
]


@pytest.mark.parametrize("value", [*SIMPLE, datetime.datetime(2024, 1, 1, tzinfo=UTC)])
def test_application_property_of_a_simple_type_is_sent(value: Any) -> None:
    back = received(Message(None, application_properties={"k": value, "ü" * 200: 1}).to_payload())
    expected = Timestamp.from_datetime(value) if isinstance(value, datetime.datetime) else value
    assert back.application_properties["k"] == expected
    assert list(back.application_properties) == ["k", "ü" * 200]


def test_application_property_of_a_subclass_is_sent_as_its_base() -> None:
    class Text(str):
        __slots__ = ()

    back = received(Message(None, application_properties={Symbol("k"): Text("v")}).to_payload())
    assert back.application_properties == {"k": "v"}
    assert type(next(iter(back.application_properties))) is str


@pytest.mark.parametrize(
    "value", [[], (), {}, Array([1], "ubyte"), Described(ULong(1), 2), Header(durable=True), object()]
)
def test_application_property_of_another_type_is_refused_when_sent(value: Any) -> None:
    with pytest.raises(LocalProtocolError, match=r"application_properties\['k'\] is a .*3\.2\.5"):
        Message(None, application_properties={"k": value}).to_payload()


@pytest.mark.parametrize("key", [1, None, b"k"])
def test_application_property_key_of_another_type_is_refused_when_sent(key: Any) -> None:
    with pytest.raises(LocalProtocolError, match="is not a str"):
        Message(None, application_properties={key: 1}).to_payload()


@pytest.mark.parametrize("text_", ["\ud800", "x" * 300 + "\ud800"])
def test_application_property_with_a_lone_surrogate_is_refused_when_sent(text_: str) -> None:
    for wrong in ({text_: 1}, {"k": text_}):
        with pytest.raises(LocalProtocolError, match="lone surrogate"):
            Message(None, application_properties=wrong).to_payload()


@given(properties=st.dictionaries(text, scalars, max_size=6))
def test_application_properties_by_hand_equal_the_generic_codec(properties: dict[str, Any]) -> None:
    payload = Message(None, application_properties=properties).to_payload()
    expected = encode(Described(ULong(0x74), properties)) if properties else b""
    assert payload == expected + encode_message(None)
    assert received(payload).application_properties == properties


@given(annotations=st.dictionaries(symbols, values, max_size=6))
def test_annotations_by_hand_equal_the_generic_codec(annotations: dict[Symbol, Any]) -> None:
    payload = Message(None, annotations=annotations).to_payload()
    expected = encode(Described(ULong(0x72), annotations)) if annotations else b""
    assert payload == expected + encode_message(None)


def test_map_of_very_many_entries_is_written_in_the_long_form() -> None:
    properties = {str(i): i for i in range(300)}
    assert (
        received(Message(None, application_properties=properties).to_payload()).application_properties
        == properties
    )


class Order:
    """A class of a program, which AMQP does not know."""


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (Order, "body: AMQP has no type for a .*Order: encode it, for example as JSON"),
        (lambda: Message(Value(Order())), "body: AMQP has no type for a "),
        (lambda: Message({"a": [Order()]}), r"body\['a'\]\[0\]: AMQP has no type for a "),
        (lambda: Message(2**70), "body: 1180591620717411303424 is out of the range of a ulong"),
        (
            lambda: Message(b"", annotations={"x-a": Order()}),
            r"annotations\['x-a'\]: AMQP has no type for a ",
        ),
        (
            lambda: Message(b"", delivery_annotations={"x-a": [Order()]}),
            r"delivery_annotations\['x-a'\]\[0\]: ",
        ),
        (lambda: Message(b"", footer={"x-a": Order()}), r"footer\['x-a'\]: AMQP has no type for a "),
        (
            lambda: Message(b"", application_properties={"n": 2**70}),
            r"application_properties\['n'\]: 1180591620717411303424 is out of the range",
        ),
        (lambda: Message(b"", message_id=-1), "message_id is an int of 0 to 18446744073709551615, not -1"),
        (
            lambda: Message(b"", correlation_id=2**64),
            "correlation_id is an int of 0 to .*, not 18446744073709551616",
        ),
    ],
)
def test_value_that_cannot_be_sent_is_named_with_its_field(made: Any, said: str) -> None:
    with pytest.raises(LocalProtocolError, match=f"^{said}"):
        encode_message(made())
