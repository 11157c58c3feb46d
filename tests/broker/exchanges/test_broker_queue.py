"""Queues of the broker: who may use them, and when they go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from tests.meter import steps
from trio_amqp10.broker.exchanges.faults import LockedError, PreconditionError
from trio_amqp10.container.container import Container

from .hands import ONE, OTHER, hold, outlet
from .helpers import broker, names

if TYPE_CHECKING:
    from trio.testing import MockClock


def test_exclusive_queue_is_for_its_connection_alone() -> None:
    them = broker()
    queue, _ = them.declare_queue("q", exclusive=True, peer=ONE)
    them.bind("amq.fanout", "queue", "q", peer=ONE)
    for attempt in (
        lambda: them.declare_queue("q", exclusive=True, peer=OTHER),
        lambda: them.declare_queue("q", peer=OTHER),
        lambda: them.declare_queue("q", peer=ONE),
        lambda: them.check_queue("q", OTHER),
        lambda: them.delete_queue("q", peer=OTHER),
        lambda: them.purge_queue("q", peer=OTHER),
        lambda: them.bind("amq.fanout", "queue", "q", "k", peer=OTHER),
        lambda: them.unbind("amq.fanout", "queue", "q", peer=OTHER),
    ):
        with pytest.raises(LockedError):
            attempt()
    with pytest.raises(LockedError):
        queue.check_outlet(OTHER, copying=False, target=None, subscription_terms=None)  # type: ignore[arg-type]
    them.unbind("amq.fanout", "queue", "q", "not there", peer=OTHER)
    assert names(them, "amq.fanout", "") == ["q"], "all may publish to it"
    assert them.declare_queue("q", {"x-odd": 1}, exclusive=True, peer=ONE) == (queue, False)
    them.declare_queue("for all", peer=ONE)
    with pytest.raises(LockedError, match="cannot obtain exclusive access to locked queue 'for all'"):
        them.declare_queue("for all", exclusive=True, peer=ONE)
    them.disown(OTHER)
    assert "q" in them.queues
    them.disown(ONE)
    assert list(them.queues) == ["for all"]
    assert not list(them.bindings)


def test_end_of_a_connection_costs_the_same_however_many_queues_others_have() -> None:
    def cost(others: int) -> int:
        them = broker()
        for number in range(others):
            them.declare_queue(f"q{number}", exclusive=True, peer=OTHER)
        them.declare_queue("q", exclusive=True, peer=ONE)
        found = steps(lambda: them.disown(ONE))
        assert len(them.queues) == others
        return found

    assert cost(100) == cost(0)


def test_auto_delete_queue_goes_with_its_last_consumer_if_it_had_one() -> None:
    them = broker()
    queue, _ = them.declare_queue("q", auto_delete=True)
    them.bind("amq.fanout", "queue", "q")
    one, other = outlet(), outlet()
    queue.add_outlet(one)
    queue.add_outlet(other)
    queue.remove_outlet(one)
    assert "q" in them.queues
    queue.remove_outlet(other)
    assert "q" not in them.queues
    assert not list(them.bindings)


def test_queue_is_deleted_unless_it_is_used_or_not_empty() -> None:
    them = broker()
    queue, _ = them.declare_queue("q")
    assert them.delete_queue("not there", if_unused=True, if_empty=True) == 0
    hold(queue, 2)
    with pytest.raises(PreconditionError, match="not empty"):
        them.delete_queue("q", if_empty=True)
    consumer = outlet()
    queue.add_outlet(consumer)
    with pytest.raises(PreconditionError, match="in use"):
        them.delete_queue("q", if_unused=True)
    queue.remove_outlet(consumer)
    assert them.delete_queue("q", if_unused=True) == 2
    assert "q" not in them.queues


async def test_queue_that_is_not_used_goes_with_its_bindings(autojump_clock: MockClock) -> None:
    container = Container("c", strict=True)
    them = container.add_broker()
    arguments = {"x-expires": 1000}
    async with container.connect():
        them.declare_queue("q", arguments)
        them.bind("amq.fanout", "queue", "q")
        await trio.sleep(0.7)
        them.declare_queue("q", arguments)
        await trio.sleep(0.7)
        them.check_queue("q")
        await trio.sleep(0.7)
        assert "q" in them.queues, "to declare it is to use it"
        await trio.sleep(0.7)
        assert not them.queues
        assert not list(them.bindings)
        assert "q" not in container.nodes
