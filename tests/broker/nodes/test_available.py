"""The messages of a queue that are not leased: which is first for whom, in which order, and their octets."""

from __future__ import annotations

from typing import Any

import trio_amqp10 as amqp
from trio_amqp10.broker.nodes.available import AvailableMessages
from trio_amqp10.broker.nodes.entry import BEFORE_ALL, unpack_sequence
from trio_amqp10.broker.nodes.form_registry import content_of
from trio_amqp10.broker.nodes.sorted_blocks import all_after


def filled(*messages: amqp.Message) -> AvailableMessages:
    """What is available in a queue that got these."""
    queue: Any = amqp.Container("hub").add_queue("q")
    for message in messages:
        queue.put(content_of(0, message.to_payload()), None)
    available: AvailableMessages = queue.held.available
    return available


def bodies(available: AvailableMessages) -> list[Any]:
    """All bodies, in the order in which consumers get them."""
    return [entry.content.as_message().body for entry in all_after(available.all_blocks, BEFORE_ALL)]


def test_messages_are_in_order_of_priority_and_then_of_arrival() -> None:
    available = filled(
        amqp.Message(b"a"), amqp.Message(b"b", priority=9), amqp.Message(b"c"), amqp.Message(b"d", priority=9)
    )
    assert bodies(available) == [b"b", b"d", b"a", b"c"]
    assert len(available) == 4


def test_octets_are_those_of_what_is_there() -> None:
    available = filled(amqp.Message(b"a" * 10), amqp.Message(b"b" * 100))
    first, second = list(all_after(available.all_blocks, BEFORE_ALL))
    whole = available.octets
    assert whole == first.length + second.length
    available.remove(first)
    assert available.octets == second.length
    assert not first.available
    available.add(first)
    assert available.octets == whole
    assert bodies(available) == [b"a" * 10, b"b" * 100]


def test_oldest_is_the_first_of_the_lowest_priority() -> None:
    available = filled(
        amqp.Message(b"a", priority=9), amqp.Message(b"b", priority=2), amqp.Message(b"c", priority=2)
    )
    oldest = available.oldest()
    assert oldest is not None
    assert oldest.content.as_message().body == b"b"
    assert AvailableMessages().oldest() is None


def test_message_that_came_before_another_is_found_whatever_its_priority() -> None:
    available = filled(amqp.Message(b"a"), amqp.Message(b"b", priority=9))
    urgent, usual = list(all_after(available.all_blocks, BEFORE_ALL))
    assert available.first_before(unpack_sequence(urgent.order)) is usual
    assert available.first_before(unpack_sequence(usual.order)) is None


def test_clear_gives_out_all_and_leaves_nothing() -> None:
    available = filled(amqp.Message(b"a"), amqp.Message(b"b", priority=9))
    removed = available.clear()
    assert sum(map(len, removed)) == 2
    assert (len(available), available.octets, bodies(available)) == (0, 0, [])
