"""The peers of a container: counted while they are connected, forgotten afterwards, and awaited at the end."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import trio

from tests.broker.peers import Guest
from trio_amqp10.container import Container, Quotas

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_peer_of_another_dialect_is_counted_while_it_is_connected() -> None:
    container = Container()
    guest = Guest(container)
    async with trio.open_nursery() as nursery:
        container.enter(guest, nursery)
        assert container.connected == (guest,)
        assert container.conversations == ()
        assert container.statistics()["connections"] == 1
        container.leave(guest)
    assert container.connected == ()
    assert guest.over
    assert (container.past["octets_in"], container.past["messages_in"]) == (5, 2)
    container.leave(guest)  # the second time does nothing
    assert container.past["octets_in"] == 5


async def test_peer_is_forgotten_when_its_last_task_is_done() -> None:
    container = Container()
    guest = Guest(container)
    done = trio.Event()
    async with trio.open_nursery() as nursery:
        container.enter(guest, nursery)
        guest.start_soon(done.wait)
        container.leave(guest)
        assert container.statistics()["connections"] == container.statistics()["working"] == 1
        done.set()
    assert container.statistics()["connections"] == container.statistics()["working"] == 0


async def test_finish_waits_for_tasks_and_leases_of_a_peer(autojump_clock: MockClock) -> None:
    container = Container()
    guest = Guest(container)
    async with trio.open_nursery() as nursery:
        container.enter(guest, nursery)

        async def work() -> None:
            guest.add_unsettled(100)
            await trio.sleep(2)
            nursery.start_soon(settle)

        async def settle() -> None:
            await trio.sleep(1)
            assert guest.resting
            guest.remove_unsettled(100)

        guest.start_soon(work)
        began = trio.current_time()
        assert await container.finish(10)
        assert trio.current_time() - began == 3
        container.leave(guest)


async def test_peer_that_enters_while_the_container_finishes_rests() -> None:
    container = Container()
    await container.finish(0)
    guest = Guest(container)
    async with trio.open_nursery() as nursery:
        container.enter(guest, nursery)
        assert guest.resting
        container.leave(guest)


async def test_peer_that_was_admitted_and_never_entered_is_forgotten() -> None:
    container = Container(quotas=Quotas(connections=1))
    guest = Guest(container)
    assert container.admit(guest) is None
    assert container.admit(guest) is None
    assert container.admit(Guest(container)) is not None
    del guest
    gc.collect()
    assert container.admit(Guest(container)) is None
