"""Histories of deaths from 0-9-1 to 1.0 and back: types, and entries in error."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp091.conversion.death_translation import deaths_from_standard, deaths_to_standard
from trio_amqp10.amqp091.conversion.translate import to_publication, to_sections
from trio_amqp10.amqp091.wire.content import BasicProperties
from trio_amqp10.amqp091.wire.fields import USUAL, Timestamp, from_seconds
from trio_amqp10.amqp091.wire.typed_values import Int64, LongString
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire import values as standard
from trio_amqp10.amqp10.wire.values import Array, Symbol

TIME = datetime.fromtimestamp(1_700_000_000, UTC)
ENTRY: dict[str, Any] = {
    "count": Int64(2),
    "reason": "delivery_limit",
    "queue": "q",
    "time": TIME,
    "exchange": "",
    "routing-keys": ["k", "l"],
    "original-expiration": "60000",
}
STANDARD: dict[Symbol, Any] = {
    Symbol("queue"): "q",
    Symbol("reason"): Symbol("delivery_limit"),
    Symbol("count"): standard.ULong(2),
    Symbol("first-time"): standard.Timestamp(1_700_000_000_000),
    Symbol("last-time"): standard.Timestamp(1_700_000_000_000),
    Symbol("exchange"): "",
    Symbol("routing-keys"): Array(["k", "l"], "string"),
    Symbol("ttl"): standard.UInt(60000),
}
WRONG: list[dict[str, Any]] = [
    {"queue": 1},
    {"reason": None},
    {"exchange": b"\xff"},
    {"count": -1},
    {"count": 2**32},
    {"count": "many"},
    {"routing-keys": [1]},
    {"routing-keys": None},
]


def types_of(entry: dict[Any, Any]) -> dict[str, type]:
    return {str(key): type(value) for key, value in entry.items()}


def test_history_of_0_9_1_has_the_types_of_rabbitmq_in_1_0() -> None:
    made = deaths_to_standard([ENTRY])
    assert made == [STANDARD]
    assert (made.type, types_of(made[0])) == ("map", types_of(STANDARD))
    assert made[0][Symbol("routing-keys")].type == "string"
    assert {type(key) for key in made[0]} == {Symbol}


def test_history_of_1_0_has_the_types_of_rabbitmq_in_0_9_1() -> None:
    made = deaths_from_standard([STANDARD])
    assert made == [ENTRY]
    assert types_of(made[0]) == types_of(ENTRY)


def test_name_that_is_not_utf_8_is_shown_with_replacement_characters() -> None:
    entry = {**ENTRY, "queue": LongString(b"q\xff"), "routing-keys": [LongString(b"\xfe")]}
    assert deaths_to_standard([entry]) == [
        {**STANDARD, Symbol("queue"): "q\ufffd", Symbol("routing-keys"): Array(["\ufffd"], "string")}
    ]


def test_history_without_a_ttl_has_none_on_the_other_side() -> None:
    mine = {key: value for key, value in ENTRY.items() if key != "original-expiration"}
    other = {key: value for key, value in STANDARD.items() if key != "ttl"}
    assert deaths_to_standard([mine]) == [other]
    assert deaths_from_standard([other]) == [mine]


@pytest.mark.parametrize(
    "change",
    [
        *WRONG,
        {"time": None},
        {"time": -1},
        {"time": 2**53},
        {"reason": "\u00e4"},
        {"original-expiration": "x"},
    ],
)
def test_entry_of_0_9_1_that_is_no_death_is_left_out(change: dict[str, Any]) -> None:
    assert deaths_to_standard([7, {**ENTRY, **change}, ENTRY]) == [STANDARD]
    assert deaths_to_standard([{**ENTRY, **change}]) is None


@pytest.mark.parametrize("change", [*WRONG, {"first-time": -1}, {"first-time": 2**53}, {"ttl": -1}])
def test_entry_of_1_0_that_is_no_death_is_left_out(change: dict[str, Any]) -> None:
    wrong = {**STANDARD, **{Symbol(key): value for key, value in change.items()}}
    assert deaths_from_standard([None, wrong, STANDARD]) == [ENTRY]
    assert deaths_from_standard([wrong]) is None


@pytest.mark.parametrize("value", [None, "x", 7, {"queue": "q"}, []])
def test_what_is_no_list_of_deaths_is_no_history(value: Any) -> None:
    assert deaths_to_standard(value) is None
    assert deaths_from_standard(value) is None


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
DEATHS = st.lists(
    st.fixed_dictionaries(
        {
            "count": st.integers(0, 2**32 - 1).map(Int64),
            "reason": st.sampled_from(["rejected", "expired", "maxlen", "delivery_limit"]),
            "queue": TEXT,
            "time": st.integers(0, 2**40).map(from_seconds),
            "exchange": TEXT,
            "routing-keys": st.lists(TEXT, max_size=3),
        },
        optional={"original-expiration": st.integers(0, 2**32 - 1).map(str)},
    ),
    min_size=1,
    max_size=4,
)


@given(DEATHS)
def test_history_comes_back_through_1_0_as_it_was(deaths: list[dict[str, Any]]) -> None:
    properties = BasicProperties(headers={"x-death": deaths, "x-first-death-queue": "q"})
    payload = to_sections(properties, b"tea", exchange="e", routing_key="k")
    message = Message.from_payload(payload)
    assert {str(key) for key in message.annotations} >= {"x-opt-deaths", "x-first-death-queue"}
    assert "x-death" not in message.annotations
    back = to_publication(message).properties
    assert back.headers == properties.headers
    assert BasicProperties.decode(back.encode(USUAL), 0, USUAL).headers == properties.headers


@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.binary() | st.floats(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from([*ENTRY, "first-time", "ttl"]), inner)
        ),
    )
)
def test_no_value_that_a_peer_may_send_raises(value: Any) -> None:
    for each in (value, [value]):
        deaths_to_standard(each)
        deaths_from_standard(each)


def test_time_above_the_last_year_of_python_is_a_number() -> None:
    made = deaths_from_standard([{**STANDARD, Symbol("first-time"): standard.Timestamp(2**51)}])
    assert made is not None
    assert isinstance(made[0]["time"], Timestamp)
