"""A stored message: what its sender and its receivers may set of it, and its octets for a receiver."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import trio_amqp10 as amqp
from trio_amqp10.amqp10.wire.values import Symbol, Timestamp
from trio_amqp10.testing.azure_emulator.constants import LOCKED_UNTIL, SCHEDULED, SEQUENCE_NUMBER
from trio_amqp10.testing.azure_emulator.stored_message import StoredMessage


def rendered(stored: StoredMessage, *arguments: Any) -> amqp.Message:
    return amqp.Message.from_payload(stored.render(*arguments))


@given(st.text(), st.integers(0, 9), st.booleans(), st.integers(0, 1 << 31), st.integers(0, 99))
def test_receiver_gets_what_was_sent_with_number_time_and_failures(
    body: str, priority: int, durable: bool, ttl: int, failures: int
) -> None:
    sent = amqp.Message(body, message_id="7", priority=priority, durable=durable, ttl=ttl, group_id="g")
    stored = StoredMessage(sent)
    assert (stored.session, stored.ttl, stored.due) == ("g", ttl, None)
    stored.number, stored.origin, stored.enqueued, stored.failures = 5, 3, 1000, failures
    got = rendered(stored, 1, 2000)
    assert (got.body, got.message_id, got.group_id) == (body, "7", "g")
    assert (got.priority, got.durable, got.ttl, got.delivery_count) == (priority, durable, ttl, failures)
    assert {str(key): value for key, value in got.annotations.items()} == {
        "x-opt-sequence-number": 5,
        "x-opt-enqueue-sequence-number": 3,
        "x-opt-enqueued-time": 1000,
        "x-opt-locked-until": 2000,
        "x-opt-message-state": 1,
    }


def test_message_without_an_id_gets_one_that_stays() -> None:
    stored = StoredMessage(amqp.Message("x"))
    first, second = (rendered(stored, 0).message_id for _ in range(2))
    assert isinstance(first, str)
    assert len(first) == 32
    assert first == second != rendered(StoredMessage(amqp.Message("x")), 0).message_id


def test_sender_sets_when_it_is_due_and_no_annotation_of_the_service() -> None:
    said = {SCHEDULED: Timestamp(5000), SEQUENCE_NUMBER: 99, Symbol("x-own"): "kept"}
    stored = StoredMessage(amqp.Message("x", annotations=said))
    assert stored.due == 5000
    got = rendered(stored, 2).annotations
    assert (got[SEQUENCE_NUMBER], got[Symbol("x-own")]) == (0, "kept")
    assert LOCKED_UNTIL not in got


def test_receiver_adds_properties_of_simple_types() -> None:
    stored = StoredMessage(amqp.Message("x", application_properties={"a": 1, "b": 2}))
    stored.change({"b": "new", "c": True, "list": [1], "none": None})
    assert stored.message.application_properties == {"a": 1, "b": "new", "c": True}


def test_copy_has_a_number_and_properties_of_its_own() -> None:
    stored = StoredMessage(amqp.Message("x", application_properties={"a": 1}))
    other = stored.copy()
    other.number = 8
    other.change({"a": 2})
    assert stored.number == 0
    assert stored.message.application_properties == {"a": 1}
    assert rendered(other, 0).body == "x"
