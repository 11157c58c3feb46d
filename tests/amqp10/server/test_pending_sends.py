"""Messages that wait until the store has their lease, and are sent in their order then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.engine.sender import SenderLink
from trio_amqp10.amqp10.server.link_store import UNSETTLED
from trio_amqp10.broker.stores import StoreFullError

from .kept_links import Life, lasting

if TYPE_CHECKING:
    from tests.container.mortal import Disk


@pytest.mark.logs_errors
async def test_message_goes_out_when_its_lease_is_stored_and_not_before(disk: Disk) -> None:
    life = Life(disk)
    queue = life.queue()
    await life.container.send("q", "one")
    async with life.program() as conn:
        async with conn.open_receiver("q", **lasting(credit=0)) as receiver:
            await wait_all_tasks_blocked()
            disk.failure = StoreFullError("full")
            receiver.grant(1)
            with pytest.raises(amqp.LinkDetachedError, match="the store is full"):
                await receiver.receive()
        await wait_all_tasks_blocked()
        assert queue.available == 1
        disk.failure = None
        async with conn.open_receiver("q", **lasting()) as receiver:
            delivery = await receiver.receive()
            disk.failure = StoreFullError("full")
            delivery.accept()
            with pytest.raises(amqp.LinkDetachedError):
                await delivery.wait_settled()
            assert not delivery.settled
            disk.failure = None
            await receiver.resume()
            await delivery.wait_settled()
    await wait_all_tasks_blocked()
    assert not disk.rows(UNSETTLED)


async def test_messages_keep_their_order_whether_they_are_stored_or_not(disk: Disk) -> None:
    life = Life(disk)
    for number in range(1200):
        await life.container.send("some", amqp.Message(number, durable=number % 3 == 0))
    async with life.program() as conn, conn.open_receiver("some", **lasting(credit=2000)) as receiver:
        for number in range(1200):
            delivery = await receiver.receive()
            assert delivery.message.body == number
            delivery.accept()
        await delivery.wait_settled()
        assert await receiver.drain() == []


async def test_large_messages_wait_for_their_turn(disk: Disk) -> None:
    life = Life(disk)
    life.queue()
    bodies = [bytes([number]) * 700_000 for number in range(4)]
    for body in bodies:
        await life.container.send("q", body)
    async with life.program() as conn, conn.open_receiver("q", **lasting()) as receiver:
        for body in bodies:
            delivery = await receiver.receive()
            assert delivery.message.body == body
            delivery.accept()
        await delivery.wait_settled()


async def test_link_that_is_lost_while_a_lease_is_written_gives_its_message_to_others(disk: Disk) -> None:
    life = Life(disk)
    queue = life.queue()
    await life.container.send("q", "one")
    async with life.program() as conn:
        receiver = await conn.open_receiver("q", **lasting(credit=0)).__aenter__()
        await wait_all_tasks_blocked()
        held = disk.held = []
        receiver.grant(1)
        await wait_all_tasks_blocked()
        assert (queue.available, len(held)) == (0, 1)
        await receiver.detach()
        await wait_all_tasks_blocked()
        disk.held = None
        held[0]()
        await wait_all_tasks_blocked()
    assert queue.available == 1
    assert not disk.rows(UNSETTLED)


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.logs_errors
async def test_messages_of_a_link_that_is_kept_go_to_another_when_it_cannot_send_them(
    durable: bool, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SenderLink.send

    def failing(self: SenderLink, *args: Any, **options: Any) -> Any:
        if self.name == "x":
            raise RuntimeError("no")
        return real(self, *args, **options)

    life = Life(disk)
    queue = life.container.add_queue("q", durable=durable)
    async with life.program() as conn, life.program("other") as other:
        async with other.open_sender("q") as sender:
            for number in range(3):
                await sender.send(number)
            monkeypatch.setattr(SenderLink, "send", failing)
            with pytest.raises(amqp.LinkDetachedError) as detached:
                async with conn.open_receiver("q", **lasting()) as receiver:
                    await receiver.receive()
            assert detached.value.condition == "amqp:internal-error"
            monkeypatch.undo()
            await wait_all_tasks_blocked()
            assert (queue.available, queue.leased) == (3, 0)
            async with other.open_receiver("q") as reader:
                for number in range(3):
                    delivery = await reader.receive()
                    assert (delivery.message.body, delivery.message.delivery_count) == (number, 0)
                    delivery.accept()
        await life.end(conn, other)
