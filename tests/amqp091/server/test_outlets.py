"""What a consumer is given: by priority, prefetch and flow, and with the count of attempts."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from trio_amqp10.amqp091 import spec
from trio_amqp10.container import Container

from .script import bodies_of, consuming, delivered, filled, is_quiet, opened


async def test_prefetch_reaches_consumers_that_run() -> None:
    async with opened() as client:
        await filled(client, b"1", b"2", b"3")
        await client.ask(spec.BasicQos(prefetch_count=1))
        await consuming(client)
        await delivered(client, 1)
        await client.say(spec.BasicQos(prefetch_count=3))
        heard = [await client.hear() for _ in range(3)]
        assert sorted(each.name for each in heard if each is not None) == [
            "basic.deliver",
            "basic.deliver",
            "basic.qos-ok",
        ]


async def test_consumer_of_higher_priority_goes_first() -> None:
    container = Container()
    async with opened(container) as one, opened(container) as two:
        await filled(one)
        await consuming(one)
        await consuming(two, arguments={"x-priority": 5})
        await one.publish("", "q", b"1")
        assert bodies_of(await delivered(two, 1)) == [b"1"]
        assert await two.refused(spec.BasicConsume(queue="q", arguments={"x-priority": "5"})) == 406


async def test_flow_stops_deliveries() -> None:
    async with opened() as client:
        await filled(client)
        await consuming(client)
        assert (await client.ask(spec.ChannelFlow(active=False))).name == "channel.flow-ok"
        await client.publish("", "q", b"1")
        assert await is_quiet(client)
        await client.say(spec.ChannelFlow(active=True))
        heard = [await client.hear(), await client.hear()]
        assert sorted(each.name for each in heard if each is not None) == ["basic.deliver", "channel.flow-ok"]


async def test_quorum_queue_counts_what_comes_back_and_gives_up_in_the_end() -> None:
    async with opened() as client:
        await filled(client, b"1", **{"x-queue-type": "quorum", "x-delivery-limit": 2})
        counts: list[Any] = []
        for tag in (1, 2, 3):
            got = await client.ask(spec.BasicGet(queue="q"))
            counts.append(dict(got.properties[2] or []).get(b"x-delivery-count"))
            await client.say(spec.BasicReject(delivery_tag=tag, requeue=True))
        assert counts == [None, ("l", 1), ("l", 2)]
        assert (await client.ask(spec.BasicGet(queue="q"))).name == "basic.get-empty"


@pytest.mark.parametrize("lost", [False, True])
async def test_message_that_comes_back_waits_where_the_queue_says_so(
    lost: bool, autojump_clock: trio.testing.MockClock
) -> None:
    _ = autojump_clock
    container = Container()
    container.add_queue("q", redelivery_delay=10)
    async with opened(container) as client:
        await client.publish("", "q", b"1")
        if lost:
            async with opened(container) as other:
                await consuming(other)
                await delivered(other, 1)
        else:
            await client.ask(spec.BasicGet(queue="q"))
            await client.say(spec.BasicNack(delivery_tag=1, requeue=True))
        began = trio.current_time()
        await consuming(client, no_ack=True)
        (again,) = await delivered(client, 1)
        assert (again.body, again["redelivered"]) == (b"1", True)
        assert trio.current_time() - began == pytest.approx(10, abs=1)


async def test_topic_gives_each_consumer_its_own_subscription() -> None:
    container = Container()
    container.add_topic("news")
    async with opened(container) as one, opened(container) as two:
        await consuming(one, name="news")
        await consuming(two, name="news")
        await one.publish("", "news", b"x")
        for client in (one, two):
            assert bodies_of(await delivered(client, 1)) == [b"x"]


async def test_get_takes_what_is_ready_beside_an_exclusive_or_a_single_active_consumer() -> None:
    async with opened() as client:
        for name, arguments, exclusive in (("e", {}, True), ("s", {"x-single-active-consumer": True}, False)):
            await filled(client, b"1", b"2", name=name, **arguments)
            await client.ask(spec.BasicQos(prefetch_count=1))
            await consuming(client, tag=f"c-{name}", name=name, exclusive=exclusive)
            assert bodies_of(await delivered(client, 1)) == [b"1"]
            assert (await client.ask(spec.BasicGet(queue=name))).body == b"2"
            assert (await client.ask(spec.BasicGet(queue=name))).name == "basic.get-empty"


async def test_full_channel_holds_its_no_ack_consumers_back_too() -> None:
    async with opened() as client:
        await filled(client, b"1", name="a")
        await filled(client, name="n")
        await client.ask(spec.BasicQos(prefetch_count=1, global_=True))
        await consuming(client, tag="a", name="a")
        await delivered(client, 1)
        await consuming(client, tag="n", name="n", no_ack=True)
        await client.publish("", "n", b"2")
        assert await is_quiet(client)
        await client.say(spec.BasicAck(delivery_tag=1))
        assert bodies_of(await delivered(client, 1)) == [b"2"]


async def test_message_whose_time_is_over_at_once_is_given_to_a_consumer_that_waits_only() -> None:
    async with opened() as client:
        await filled(client)
        await client.publish("", "q", b"lost", expiration="0")
        assert (await client.ask(spec.BasicGet(queue="q"))).name == "basic.get-empty"
        await consuming(client, no_ack=True)
        await client.publish("", "q", b"given", expiration="0")
        assert bodies_of(await delivered(client, 1)) == [b"given"]
