"""The short ways to write sections equal the general ones, in octets and errors."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.amqp10.wire.strategies import modest_values, scalars
from trio_amqp10.amqp10.message import Data, Message
from trio_amqp10.amqp10.message.message import usual_payload
from trio_amqp10.amqp10.wire.values import Symbol, ULong
from trio_amqp10.core.errors import LocalProtocolError

from .messages import FULL, general, tried

any_text = st.sampled_from(["", "a", "\ud800", "é" * 127, "é" * 128, "x" * 255, "x" * 256]) | st.text(
    max_size=9
)
ascii_text = st.sampled_from(["", "a", "s" * 255, "s" * 256]) | st.text(st.characters(max_codepoint=127))
uints = st.sampled_from([0, 255, 256, 2**32 - 1])
moments = st.integers(-(2**63), 2**63 - 1) | st.datetimes(timezones=st.just(datetime.UTC))
ids = any_text | st.binary(max_size=300) | st.uuids() | st.sampled_from([0, 1, 255, 256, 2**64 - 1, ULong(7)])
maps = st.dictionaries(
    any_text | ascii_text.map(Symbol) | st.integers(-1, 1),
    scalars
    | modest_values
    | any_text
    | st.sampled_from([2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, -129, -128, 127, 128]),
    max_size=5,
)
arguments: dict[str, st.SearchStrategy[Any]] = {
    "body": modest_values | any_text | st.binary(max_size=300) | st.builds(Data, st.binary()),
    "durable": st.booleans(),
    "priority": st.integers(0, 255),
    "ttl": uints,
    "first_acquirer": st.booleans(),
    "delivery_count": uints,
    "message_id": ids,
    "user_id": st.binary(max_size=300),
    "to": any_text,
    "subject": any_text,
    "reply_to": any_text,
    "correlation_id": ids,
    "content_type": ascii_text,
    "content_encoding": ascii_text,
    "absolute_expiry_time": moments,
    "creation_time": moments,
    "group_id": any_text,
    "group_sequence": uints,
    "reply_to_group_id": any_text,
    "delivery_annotations": maps,
    "annotations": maps,
    "application_properties": maps
    | st.builds(dict, st.lists(st.tuples(st.text(max_size=2), st.none()), max_size=200)),
    "footer": maps,
}
short_properties = st.dictionaries(
    st.text(max_size=40),
    st.text(max_size=40) | st.integers(-300, 300) | st.booleans() | st.floats(),
    max_size=8,
)


@given(given_=st.fixed_dictionaries({}, optional=arguments))
def test_message_is_written_as_in_the_general_way(given_: dict[str, Any]) -> None:
    try:
        made = Message(**given_)
    except LocalProtocolError:  # a date outside the range of a timestamp
        return
    short = tried(made.to_payload)
    with general():
        assert short == tried(made.to_payload)


@given(
    given_=st.fixed_dictionaries({}, optional=arguments | {"application_properties": short_properties}),
    before=st.integers(1_000, 2_100),
)
def test_message_with_many_octets_before_its_body_is_written_as_in_the_general_way(
    given_: dict[str, Any], before: int
) -> None:
    """Where the compiled writer has no more room for the next value, at each value that there is."""
    try:
        made = Message(
            **given_ | {"body": b"body", "footer": None, "annotations": {"x-opt-long": bytes(before)}}
        )
    except LocalProtocolError:  # a date outside the range of a timestamp
        return
    short = tried(made.to_payload)
    with general():
        assert short == tried(made.to_payload)


def test_usual_message_is_written_in_the_short_way() -> None:
    made = Message(**FULL)
    short = usual_payload(made._sections)  # type: ignore[arg-type]
    with general():
        assert short == made.to_payload()


@pytest.mark.parametrize(
    "unusual",
    [
        {"subject": "x" * 256},
        {"message_id": "x" * 256},
        {"application_properties": {"k": "x" * 256}},
        {"application_properties": {"k": uuid.UUID(int=1)}},
        {"application_properties": {Symbol("k"): 1}},
        {"application_properties": {f"{number:03}": 1 for number in range(128)}},
        {"application_properties": {"k": 2**63}},
        {"annotations": {"x": object()}},
    ],
)
def test_message_with_something_unusual_is_left_to_the_general_way(unusual: dict[str, Any]) -> None:
    made = Message(**{**FULL, **unusual})
    assert usual_payload(made._sections) is None  # type: ignore[arg-type]
    short = tried(made.to_payload)
    with general():
        assert short == tried(made.to_payload)


def test_values_that_python_cannot_tell_apart_are_written_as_what_they_are() -> None:
    """Octets are remembered by text alone: so text of each kind has its own memo."""
    for _ in range(2):
        one = Message("x", to="same", content_type="same", message_id=1, application_properties={"same": 1})
        other = Message("x", priority=1, application_properties={"same": True, "other": 1.0})
        for made in (one, other):
            with general():
                octets = made.to_payload()
            assert made.to_payload() == octets
