"""Queues and credit: drains, back-pressure, limits; browsing."""

from __future__ import annotations

import pytest
from trio.testing import wait_all_tasks_blocked

from tests.container.helpers import bodies, fill, queue_of, two
from trio_amqp10.container import Container
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.peer.errors import LinkDetachedError
from trio_amqp10.spec.messaging import Source
from trio_amqp10.spec.transport import SenderSettleMode
from trio_amqp10.testing import open_container

COPY = Source(address="q", distribution_mode="copy")


async def test_queue_answers_a_drain_when_it_is_empty_and_gives_what_it_has_first() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", 1, 2, 3)
        async with conn.open_receiver("q", credit=0) as receiver:
            receiver.grant(10)
            drained = await receiver.drain()
            assert [each.message.body for each in drained] == [1, 2, 3]
            assert receiver.credit == 0
            assert await receiver.drain() == []


async def test_queue_tells_how_many_more_it_has() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", *range(5))
        async with conn.open_receiver("q", credit=0) as receiver:
            receiver.grant(2)
            await receiver.drain()
            assert receiver.available == 3


async def test_row_64_queue_of_bounded_length_makes_senders_wait() -> None:
    container = Container()
    container.add_queue("q", max_length=3)
    async with two(container) as (one, other), one.open_sender("q") as sender:
        deliveries = [await sender.transmit(number) for number in range(5)]
        await wait_all_tasks_blocked()
        assert [each.settled for each in deliveries] == [True] * 3 + [False] * 2
        assert len(queue_of(container)) == 3
        async with other.open_receiver("q", credit=0) as receiver:
            assert await bodies(receiver, 5) == list(range(5))
        await sender.flush()


async def test_queue_refuses_a_length_that_is_none() -> None:
    with pytest.raises(LocalProtocolError):
        Container().add_queue("q", max_length=0)


async def test_row_62_queue_detaches_a_link_that_leaves_too_much_unsettled() -> None:
    container = Container(max_unsettled_octets=10_000)
    container.add_queue("q")
    async with two(container) as (one, other):
        await fill(one, "q", *[bytes(1000)] * 20)
        async with other.open_receiver("q", credit=0) as receiver:
            receiver.grant(100)
            with pytest.raises(LinkDetachedError) as detached:
                async for _ in receiver:
                    pass
        assert detached.value.condition == "amqp:resource-limit-exceeded"
        assert "max_unsettled_octets=10000" in str(detached.value)
        assert len(queue_of(container)) == 20
        async with one.open_receiver("q", credit=5) as receiver:
            assert len(await bodies(receiver, 20)) == 20


async def test_queue_shows_all_messages_in_order_and_keeps_them_when_copied() -> None:
    async with open_container(["q"]) as container, two(container) as (one, other):
        await fill(one, "q", *range(30))
        async with other.open_receiver("q", source=COPY, credit=4) as browser:
            assert browser.remote.source.distribution_mode == "copy"
            assert await bodies(browser, 30) == list(range(30))
            await fill(one, "q", "new")
            assert await bodies(browser, 1) == ["new"]
        assert len(queue_of(container)) == 31
        async with one.open_receiver("q") as receiver:
            assert await bodies(receiver, 31) == [*range(30), "new"]


async def test_queue_shows_no_message_that_another_has_taken_meanwhile() -> None:
    async with open_container(["q"]) as container, two(container) as (one, other):
        await fill(one, "q", *range(6))
        async with (
            other.open_receiver("q", source=COPY, credit=0) as browser,
            one.open_receiver("q", credit=0) as receiver,
        ):
            assert await bodies(browser, 1) == [0]
            receiver.grant(3)
            held = [await receiver.receive() for _ in range(3)]
            held[2].release()
            await wait_all_tasks_blocked()
            browser.grant(5)
            assert await bodies(browser, 4) == [2, 3, 4, 5]


async def test_queue_answers_the_drain_of_a_browser_that_has_seen_all() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", 1, 2)
        async with conn.open_receiver("q", source=COPY, credit=0) as browser:
            browser.grant(10)
            assert [each.message.body for each in await browser.drain()] == [1, 2]


async def test_queue_remembers_unsettled_copies_and_does_not_care_what_becomes_of_them() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", 1)
        async with conn.open_receiver(
            "q", source=COPY, snd_settle_mode=SenderSettleMode.UNSETTLED
        ) as browser:
            delivery = await browser.receive()
            assert not delivery.settled
            delivery.reject("app:whatever")
        assert len(queue_of(container)) == 1
