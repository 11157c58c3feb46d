"""Queues and credit: drains, back-pressure, limits; browsing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from trio.testing import wait_all_tasks_blocked

from tests.container.helpers import bodies, fill, queue_of, two
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.amqp10.spec.transport import SenderSettleMode
from trio_amqp10.container import Container
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.testing import open_container

if TYPE_CHECKING:
    import trio_amqp10 as amqp

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


async def test_row_62_queue_gives_no_more_to_a_peer_that_leaves_too_much_unsettled_until_it_settles() -> None:
    container = Container(max_unsettled_octets=10_000)
    container.add_queue("q", delivery_limit=1)
    async with two(container) as (one, other):
        await fill(one, "q", *[bytes(1000)] * 20)
        async with other.open_receiver("q", credit=0) as receiver:
            receiver.grant(100)
            held: list[amqp.Delivery] = []
            while queue_of(container).available:
                await wait_all_tasks_blocked()
                got = [await receiver.receive() for _ in range(receiver.buffered)]
                assert sum(len(each.payload) for each in got) <= 11_000
                held += got
                for each in got:
                    each.accept()
            await wait_all_tasks_blocked()
            held += [await receiver.receive() for _ in range(receiver.buffered)]
            assert len(held) == 20
            assert receiver.credit == 80
            assert {each.message.delivery_count for each in held} == {0}


async def test_queue_gives_a_message_larger_than_may_be_unsettled_when_nothing_else_is() -> None:
    container = Container(max_unsettled_octets=10_000)
    container.add_queue("q")
    async with two(container) as (one, other):
        await fill(one, "q", b"1", bytes(50_000), b"3")
        async with other.open_receiver("q") as receiver:
            deliveries = [await receiver.receive() for _ in range(2)]
            await wait_all_tasks_blocked()
            assert not receiver.buffered
            deliveries[0].accept()
            await wait_all_tasks_blocked()
            assert queue_of(container).available == 1  # the large one is still too much
            deliveries[1].accept()
            assert await bodies(receiver, 1) == [b"3"]


async def test_queue_gives_credit_back_to_a_receiver_that_drains_while_it_holds_too_much() -> None:
    container = Container(max_unsettled_octets=5_000)
    container.add_queue("q")
    async with two(container) as (one, other):
        await fill(one, "q", *[bytes(1000)] * 20)
        async with other.open_receiver("q", credit=0) as receiver:
            receiver.grant(20)
            held = [await receiver.receive() for _ in range(4)]
            held += await receiver.drain()
            assert len(held) == 5
            assert receiver.credit == 0
            for delivery in held:
                delivery.accept()
            receiver.grant(20)
            assert len(await bodies(receiver, 5)) == 5


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


async def test_answer_to_a_browser_says_that_nothing_is_kept_and_another_link_sees_all_again() -> None:
    source = Source(address="q", distribution_mode="copy", expiry_policy="never", timeout=60)
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", 1, 2)
        for _ in range(2):
            async with conn.open_receiver("q", name="n", source=source) as browser:
                answer = browser.remote.source
                assert (answer.expiry_policy, answer.timeout, answer.durable) == ("session-end", 0, 0)
                assert await bodies(browser, 2) == [1, 2]


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
