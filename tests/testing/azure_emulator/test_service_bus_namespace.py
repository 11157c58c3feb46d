"""A namespace of Service Bus: its entities, its transactions, and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.testing.azure_emulator import ServiceBus

from .helpers import bus_of, later, locking, open_client, put

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_entities_have_names_of_their_own() -> None:
    bus = ServiceBus()
    bus.add_queue("orders")
    with pytest.raises(LocalProtocolError, match="in another case"):
        bus.add_queue("Orders")
    with pytest.raises(LocalProtocolError, match="exists already"):
        bus.add_topic("orders")
    with pytest.raises(LocalProtocolError, match="add it first"):
        bus.add_subscription("prices", "all")


async def test_service_ends_while_somebody_waits(autojump_clock: MockClock) -> None:
    bus = bus_of(q=None)
    async with open_client(bus) as conn:
        await put(conn, "q", later("tea", 1000))
        async with locking(conn, "q"):
            await wait_all_tasks_blocked()
            began = trio.current_time()
            assert await bus.container.finish(5)
            assert trio.current_time() == began
            await trio.sleep(2000)
            assert bus.entities["q"].statistics()["locked"] == 0


async def test_transaction_sends_and_settles_at_its_end(autojump_clock: MockClock) -> None:
    bus = bus_of(q=None)
    entity = bus.entities["q"]
    async with open_client(bus) as conn:
        async with conn.open_sender("q") as sender, conn.open_transaction() as txn:
            await sender.send("tea", transaction=txn)
            assert len(entity) == 0
        assert len(entity) == 1
        async with conn.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            async with conn.open_transaction() as txn:
                delivery.accept(transaction=txn)
                await wait_all_tasks_blocked()
                assert len(entity) == 1
            assert len(entity) == 0
