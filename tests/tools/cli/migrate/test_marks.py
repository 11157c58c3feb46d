"""Marks: equal for messages that a broker has passed on, and counted where they are equal."""

from __future__ import annotations

from collections import Counter
from copy import copy

from hypothesis import given
from hypothesis import strategies as st

import trio_amqp10 as amqp
from trio_amqp10.tools.cli.migrate.marks import digest_of, marked, marks_of, unsent


def test_digest_is_not_changed_by_what_brokers_change() -> None:
    message = amqp.Message("tea", message_id="1", durable=True, priority=7)
    other = copy(message)
    other.ttl, other.delivery_count, other.first_acquirer = 5, 3, True
    other.annotations = {"x-exchange": ""}
    assert digest_of(other) == digest_of(message)
    for name, value in (("body", "milk"), ("message_id", "2"), ("durable", False), ("priority", 1)):
        changed = copy(message)
        setattr(changed, name, value)
        assert digest_of(changed) != digest_of(message), name


def test_mark_is_added_and_all_else_stays() -> None:
    message = amqp.Message(
        {"cup": 1}, annotations={"x-opt-mine": 1}, footer={"x-sum": b"1"}, delivery_count=2, ttl=1000
    )
    found = marked(message, "b1")
    assert found.annotations == {"x-opt-mine": 1, "x-opt-migrated": f"b1/{digest_of(message)}"}
    assert (found.bare, found.footer, found.ttl, found.delivery_count) == (
        message.bare,
        message.footer,
        1000,
        0,
    )
    assert message.annotations == {"x-opt-mine": 1}


def test_mark_of_an_earlier_migration_is_replaced() -> None:
    twice = marked(marked(amqp.Message("tea"), "b1"), "b2")
    assert marks_of([twice.annotations], "b1").total() == 0
    assert marks_of([twice.annotations], "b2").total() == 1


@given(st.lists(st.sampled_from("abc")), st.data())
def test_what_was_sent_and_what_was_not_are_the_batch(batch: list[str], data: st.DataObject) -> None:
    messages = [amqp.Message(body) for body in batch]
    sent = data.draw(st.sets(st.sampled_from(range(len(batch)))) if batch else st.just(set[int]()))
    at_target = [marked(messages[place], "b") for place in sent] + [marked(amqp.Message("a"), "other")]
    left = unsent(messages, marks_of((each.annotations for each in at_target), "b"))
    assert Counter(each.body for each in left) + Counter(batch[place] for place in sent) == Counter(batch)


def test_first_of_equal_messages_is_the_one_that_was_sent() -> None:
    messages = [amqp.Message("a", ttl=1), amqp.Message("b"), amqp.Message("a", ttl=2)]
    left = unsent(messages, marks_of([marked(messages[0], "b").annotations], "b"))
    assert [each.ttl for each in left] == [None, 2]
