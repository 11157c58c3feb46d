"""The history of a dead message in annotations, and what is read again of it (3.2.3)."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.server.death_annotations import deaths_of, to_annotations
from trio_amqp10.amqp10.wire.values import Array, Symbol, Timestamp, UInt, ULong
from trio_amqp10.broker.nodes.content import Publication

WHERE = Publication("logs", ("eu", "us"))
DEATHS = Symbol("x-opt-deaths")


def entry(**changes: Any) -> dict[Any, Any]:
    whole: dict[str, Any] = {
        "queue": "q",
        "reason": Symbol("rejected"),
        "count": ULong(1),
        "first-time": Timestamp(1_000),
        "last-time": Timestamp(2_500),
        "exchange": "logs",
        "routing-keys": Array(["eu"], "string"),
    } | {name.replace("_", "-"): value for name, value in changes.items()}
    return {Symbol(name): value for name, value in whole.items() if value is not None}


def test_first_death_is_written_with_all_that_is_known() -> None:
    notes = to_annotations({}, "q", "expired", WHERE, 12.3456, 500)
    (death,) = notes[DEATHS]
    assert death == {
        "queue": "q",
        "reason": "expired",
        "count": 1,
        "first-time": 12_346,
        "last-time": 12_346,
        "exchange": "logs",
        "routing-keys": Array(["eu", "us"], "string"),
        "ttl": 500,
    }
    assert (type(death["reason"]), type(death["count"]), type(death["ttl"])) == (Symbol, ULong, UInt)
    assert notes["x-first-death-queue"] == notes["x-last-death-queue"] == "q"
    assert notes["x-first-death-reason"] == "expired"


def test_death_of_the_same_kind_is_counted_and_others_come_in_front() -> None:
    notes: dict[Any, Any] = {}
    for queue in ("q", "q", "r"):
        notes = notes | to_annotations(notes, queue, "rejected", WHERE, 1.0, None)
    assert [(each.queue, each.count) for each in deaths_of(notes)] == [("r", 1), ("q", 2)]
    assert notes["x-first-death-queue"] == "q"
    assert notes["x-last-death-queue"] == "r"
    assert "ttl" not in notes[DEATHS][0]


def test_names_that_are_not_utf_8_become_text_that_can_be_sent() -> None:
    notes = to_annotations({}, "q\udcff", "expired", Publication("e\udcff", ("k\udcff",)), 1.0, None)
    sent = Message.from_payload(Message("x", annotations=notes).to_payload())
    (death,) = deaths_of(sent.annotations)
    assert (death.queue, death.exchange, death.routing_keys) == ("q\ufffd", "e\ufffd", ("k\ufffd",))


def test_death_comes_back_as_it_was_written() -> None:
    (death,) = deaths_of({DEATHS: [entry(ttl=UInt(70))]})
    assert (death.queue, death.reason, death.count) == ("q", "rejected", 1)
    assert (death.time, death.last_time) == (1.0, 2.5)
    assert (death.exchange, death.routing_keys, death.original_expiration) == ("logs", ("eu",), "70")


@pytest.mark.parametrize(
    "broken",
    [
        entry(queue=None),
        entry(count=-1),
        entry(count=2**40),
        entry(count="many"),
        entry(first_time=2**60),
        entry(last_time=None),
        entry(routing_keys=5),
        entry(reason="é"),
        entry(ttl=-1),
        "no map",
        None,
    ],
)
def test_entry_that_is_impossible_is_left_out(broken: Any) -> None:
    assert [each.queue for each in deaths_of({DEATHS: [broken, entry()]})] == ["q"]


@pytest.mark.parametrize("value", [None, "x", {"queue": "q"}, 5])
def test_value_that_is_no_history_is_none(value: Any) -> None:
    assert deaths_of({DEATHS: value}) == []
