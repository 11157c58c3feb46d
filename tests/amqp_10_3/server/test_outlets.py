"""What a consumer is given: windows, rejected messages, and what comes again."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.server.protocol import Amqp103
from trio_amqp10.container import Container

from .script import bodies, opened


@pytest.mark.parametrize(
    ("window", "channel", "first"),
    [
        ({}, 0, 4),
        ({"prefetch_count": 2}, 0, 2),
        ({"prefetch_size": 250}, 0, 2),
        ({"prefetch_size": 1}, 0, 1),
        ({}, 250, 2),
        ({"prefetch_size": 250, "no_ack": True}, 250, 4),
        ({"prefetch_count": 3, "prefetch_size": 250}, 0, 2),
    ],
    ids=str,
)
async def test_window_holds_back_what_does_not_fit(window: Any, channel: int, first: int) -> None:
    async with opened(prefetch_max=channel) as client:
        await client.declare()
        for each in b"1234":
            await client.publish("", "q", bytes([each]) * 100)
        await client.consume(**window)
        heard = await bodies(client, first)
        assert heard == [bytes([each]) * 100 for each in b"1234"[:first]]
        assert await client.quiet()
        if first < 4:
            await client.say(spec.BasicAck(delivery_tag=0, multiple=True))
            rest = await bodies(client, min(first, 4 - first))
            assert rest == [bytes([each]) * 100 for each in b"1234"[first : first + len(rest)]]


async def test_message_that_waits_for_a_window_is_not_lost_when_its_consumer_is_cancelled() -> None:
    container = Container()
    async with opened(container) as client:
        await client.declare()
        for body in (b"a" * 100, b"b" * 100):
            await client.publish("", "q", body)
        await client.consume(prefetch_size=1)
        await bodies(client, 1)
        await client.ask(spec.BasicCancel(consumer_tag="c"))
        assert (await client.ask(spec.BasicGet(queue="q"))).body == b"b" * 100


async def test_window_of_the_channel_is_that_of_all_its_consumers() -> None:
    async with opened(prefetch_max=250) as client:
        await client.declare("q")
        await client.declare("r")
        await client.consume(consumer_tag="1")
        await client.consume(consumer_tag="2", queue="r")
        await client.publish("", "q", b"a" * 150)
        await client.publish("", "r", b"b" * 150)
        assert await bodies(client, 1) == [b"a" * 150]
        assert await client.quiet()
        await client.say(spec.BasicAck(delivery_tag=1))
        assert await bodies(client, 1) == [b"b" * 150]


async def test_message_that_is_rejected_comes_to_another_channel_and_dies_at_the_fifth_failure() -> None:
    container = Container()
    arguments = {"x-dead-letter-exchange": "amq.fanout"}
    dialect = Amqp103(container, tickets=False, queue_arguments=arguments)
    async with opened(container, dialect=dialect) as client:
        await client.declare("dead")
        await client.ask(spec.QueueBind(queue="dead", exchange="amq.fanout"))
        await client.declare()
        await client.publish("", "q", b"x")
        for number in range(2, 7):
            await client.ask(spec.ChannelOpen(), number)
            heard = await client.ask(spec.BasicGet(queue="q"), number)
            assert (heard.body, heard["redelivered"]) == (b"x", number > 2)
            await client.say(spec.BasicReject(delivery_tag=1), channel=number)
            assert (await client.ask(spec.BasicGet(queue="q"), number)).name == "basic.get-empty"
        assert (await client.ask(spec.BasicGet(queue="q"))).name == "basic.get-empty"
        assert (await client.ask(spec.BasicGet(queue="dead"))).body == b"x"


async def test_message_that_is_rejected_for_good_is_gone() -> None:
    async with opened() as client:
        await client.declare()
        await client.publish("", "q", b"x")
        await client.ask(spec.BasicGet(queue="q"))
        await client.say(spec.BasicReject(delivery_tag=1, requeue=False))
        assert (await client.ask(spec.QueueDeclare(queue="q", passive=True)))["message_count"] == 0


async def test_what_is_not_acknowledged_comes_again_when_its_channel_ends() -> None:
    async with opened() as client:
        await client.declare()
        await client.publish("", "q", b"x")
        await client.consume()
        await bodies(client, 1)
        assert (await client.ask(spec.ChannelClose())).name == "channel.close-ok"
        await client.ask(spec.ChannelOpen())
        heard = await client.ask(spec.BasicGet(queue="q"))
        assert (heard.body, heard["redelivered"]) == (b"x", True)
