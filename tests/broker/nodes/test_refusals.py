"""Receivers that refuse messages for themselves, at a queue: what it remembers of them, and for how long (3.4.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio
import trio.testing

import trio_amqp10 as amqp
from trio_amqp10.broker.nodes import refusals
from trio_amqp10.broker.nodes.entry import ANYONE, BEFORE_ALL, Entry
from trio_amqp10.broker.nodes.form_registry import content_of
from trio_amqp10.broker.nodes.refusals import MOST_REFUSERS, OutletKey, Refusals
from trio_amqp10.broker.nodes.sorted_blocks import all_after

if TYPE_CHECKING:
    import pytest

ATTEMPTS = 10_000


def queue_with(messages: int) -> tuple[Any, list[Entry]]:
    """A queue alone, and what it holds."""
    queue: Any = amqp.Container("hub").add_queue("q")
    for number in range(messages):
        queue.put(_content(number), None)
    return queue, list(all_after(queue.held.available.all_blocks, BEFORE_ALL))


def _content(number: int) -> Any:
    return content_of(0, amqp.Message(b"%d" % number).to_payload())


def refuse(queue: Any, entry: Entry, key: object) -> None:
    """Have the receiver of this key get a message and refuse it for itself."""
    queue.held.available.remove(entry)
    entry.outlet_key = key
    entry.modified(failed=False, undeliverable_here=True, annotations=None)


async def test_receivers_that_end_leave_nothing_behind() -> None:
    queue, (entry,) = queue_with(1)
    for _ in range(ATTEMPTS):
        key = OutletKey()
        refuse(queue, entry, key)
        assert not entry.eligibility.admits(key)
        key.end()
    assert entry.eligibility is ANYONE
    assert len(queue.held.available.all_blocks) == 1
    assert not len(queue._refusals)


async def test_receiver_that_lasts_keeps_nothing_of_messages_that_are_gone() -> None:
    queue, entries = queue_with(100)
    key = OutletKey()
    for entry in entries:
        refuse(queue, entry, key)
    assert queue.purge() == 100
    assert not len(queue._refusals)
    assert not key._queues


async def test_message_forgets_those_that_refused_it_when_they_are_too_many() -> None:
    queue, (entry,) = queue_with(1)
    keys = [OutletKey() for _ in range(MOST_REFUSERS + 1)]
    for key in keys:
        assert entry.eligibility.admits(key)
        refuse(queue, entry, key)
    assert entry.eligibility.excluded == {keys[-1]}
    assert len(queue._refusals) == 1
    keys[0].end()
    keys[-1].end()
    assert entry.eligibility is ANYONE


async def test_message_that_another_receiver_has_when_one_ends_is_for_all_afterwards() -> None:
    queue, (entry,) = queue_with(1)
    one, other = OutletKey(), OutletKey()
    refuse(queue, entry, one)
    refuse(queue, entry, other)
    queue.held.available.remove(entry)
    one.end()
    assert entry.eligibility.excluded == {other}
    queue.put_back(entry)
    assert queue.available == 1
    other.end()
    assert entry.eligibility is ANYONE


async def test_receiver_that_has_ended_refuses_no_more() -> None:
    queue, (entry,) = queue_with(1)
    key = OutletKey()
    key.end()
    refuse(queue, entry, key)
    assert entry.eligibility is ANYONE


async def test_many_messages_are_readmitted_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    monkeypatch.setattr(refusals, "_AT_ONCE", 3)
    queue, entries = queue_with(10)
    key = OutletKey()
    for entry in entries:
        refuse(queue, entry, key)
    key.end()
    assert sum(entry.eligibility is ANYONE for entry in entries) == 3
    assert queue._next_due() <= trio.current_time()
    queue.held.available.remove(entries[0])
    queue.drop(entries[0])  # one that has gone meanwhile
    for _ in range(3):
        queue.sweep()
    assert all(entry.eligibility is ANYONE for entry in entries[1:])
    assert len(queue.held.available.all_blocks) == 1


async def test_deleted_queue_forgets_receivers() -> None:
    queue, (one, other) = queue_with(2)
    key = OutletKey()
    refuse(queue, one, key)
    queue.held.available.remove(other)
    other.outlet_key = key
    queue.close()
    assert not key._queues
    other.modified(failed=False, undeliverable_here=True, annotations=None)
    assert other.eligibility is ANYONE


async def test_key_of_a_node_of_the_user_is_kept_with_the_message() -> None:
    queue, (entry,) = queue_with(1)
    refuse(queue, entry, "mine")
    assert entry.eligibility.excluded == {"mine"}
    queue.purge()
    assert not len(queue._refusals)


async def test_link_that_comes_back_to_its_terminus_does_not_get_what_it_refused() -> None:
    """A detach without closed keeps the terminus, and with it the refusal, until it expires or is closed."""
    container = amqp.Container("hub")
    container.add_queue("q")
    terminus = amqp.MemoryTerminusStore()
    options: dict[str, Any] = {"name": "sub", "store": terminus, "expiry_policy": "never"}
    async with container.connect(container_id="me") as connection:
        async with connection.open_sender("q") as sender:
            await sender.send("x")
        async with connection.open_receiver("q", **options) as receiver:
            (await receiver.receive()).modify(undeliverable_here=True)
            await receiver.detach()
        async with connection.open_receiver("q", **options) as receiver:
            with trio.move_on_after(0.2) as waited:
                await receiver.receive()
            assert waited.cancelled_caught
        async with connection.open_receiver("q", name="sub") as receiver:  # closed above: another link
            assert (await receiver.receive()).message.body == "x"


def test_refusals_of_a_key_without_a_message_are_none() -> None:
    queue, _ = queue_with(0)
    known = Refusals(queue, queue.held.available)
    known.forget(OutletKey())
    assert not known.unfinished
