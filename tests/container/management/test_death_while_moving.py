"""A container that dies at any commit of a move, and restarts: each message is at exactly one of the queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from tests.container.management.test_moving import bodies
from trio_amqp10.broker.stores import MemoryStore
from trio_amqp10.container import Container

if TYPE_CHECKING:
    from trio.testing import MockClock

    from trio_amqp10.broker.stores.base import Batch, Done

pytestmark = pytest.mark.whole

COUNT = 450
LETTERS = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


class Mortal(MemoryStore):
    """Rows that survive; after so many commits, the process is dead: nothing is written, and nothing is answered."""

    def __init__(self) -> None:
        super().__init__()
        self.left: int | None = None
        self.died = trio.Event()

    def write(self, batch: Batch, done: Done) -> None:
        if self.left is not None:
            if not self.left:
                self.died.set()
                return
            self.left -= 1
        super().write(batch, done)


def opened(store: MemoryStore) -> Container:
    container = Container(store=store, keeps_all=True)
    container.add_queue("a", dead_letter="dead")
    container.add_queue("b")
    container.add_queue("dead")
    return container


async def begun(store: Mortal, *, dead: bool) -> None:
    """Put the messages into ``a``; with ``dead`` half of them die there, half in a declared queue."""
    container = opened(store)
    async with container.connect() as conn:
        if dead:
            container.add_broker()
            await container.management.declare_queue("declared", LETTERS)
        for half, address in enumerate(("a", "declared" if dead else "a")):
            async with conn.open_sender(address) as sender:
                for number in range(half * COUNT // 2, (half + 1) * COUNT // 2):
                    await sender.send(number)
            if dead:
                await container.management.get(address, COUNT, outcome="reject")
    await container.flush()


@pytest.mark.parametrize("operation", ["move", "redrive"])
@pytest.mark.parametrize("commits", range(8))
async def test_every_message_is_at_one_queue_after_a_death_at_any_commit(
    operation: str, commits: int, autojump_clock: MockClock
) -> None:
    store = Mortal()
    dead = operation == "redrive"
    await begun(store, dead=dead)
    for life in (commits, commits // 2, None):
        store.left, store.died = life, trio.Event()
        container = opened(store)
        if dead:
            container.add_broker()
        with trio.move_on_after(5) as scope:
            async with trio.open_nursery() as nursery:

                async def work(container: Container = container, scope: trio.CancelScope = scope) -> None:
                    async with container.connect():
                        management = container.management
                        await (management.redrive("dead") if dead else management.move("a", "b"))
                    scope.cancel()

                nursery.start_soon(work)
                await store.died.wait()
                scope.cancel()
    container = opened(store)
    if dead:
        container.add_broker()
    async with container.connect():
        places = ("a", "b", "dead", *(["declared"] if dead else []))
        found = {place: await bodies(container, place) for place in places}
    assert sorted(number for each in found.values() for number in each) == list(range(COUNT))
    assert found["dead" if dead else "a"] == []
    if dead:
        assert (len(found["a"]), len(found["declared"])) == (COUNT // 2, COUNT // 2)
