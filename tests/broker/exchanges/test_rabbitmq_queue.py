"""Declared queues that expire and drop messages as RabbitMQ's queues do.

``tests/interop/test_exchanges.py`` asks a live RabbitMQ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

import trio_amqp10 as amqp
from tests.amqp091.server.script import bodies_of, opened
from trio_amqp10.amqp091 import spec
from trio_amqp10.container import Container

if TYPE_CHECKING:
    from tests.amqp091.server.script import Client, Heard


def container(*, like_rabbitmq: bool = True) -> Container:
    made = Container("b", strict=True)
    made.add_broker(like_rabbitmq=like_rabbitmq)
    return made


async def declare(client: Client, **arguments: Any) -> Heard:
    found = {name.replace("_", "-"): value for name, value in arguments.items()}
    return await client.ask(spec.QueueDeclare(queue="q", arguments=found))


async def got(client: Client) -> Heard:
    return await client.ask(spec.BasicGet(queue="q", no_ack=True))


async def test_message_expires_only_at_the_head_of_the_queue(autojump_clock: Any) -> None:
    for like_rabbitmq, expected in ((True, 3), (False, 2)):
        async with opened(container(like_rabbitmq=like_rabbitmq)) as client:
            await declare(client)
            for body, life in ((b"long", "60000"), (b"short", "100"), (b"brief", "200000")):
                await client.publish("", "q", body, expiration=life)
            await trio.sleep(1)
            assert (await declare(client))["message_count"] == expected
            assert (await got(client)).body == b"long"
            assert (await declare(client))["message_count"] == 1, "the one behind it is gone with it"
            assert (await got(client)).body == b"brief"


async def test_message_expires_when_it_comes_to_the_head_in_time(autojump_clock: Any) -> None:
    async with opened(container()) as client:
        await declare(client)
        for body, life in ((b"first", "1000"), (b"second", "500"), (b"last", "5000")):
            await client.publish("", "q", body, expiration=life)
        assert (await declare(client))["message_count"] == 3
        await trio.sleep(0.7)
        assert (await declare(client))["message_count"] == 3
        await trio.sleep(0.7)
        assert (await declare(client))["message_count"] == 1
        await trio.sleep(5)
        assert (await declare(client))["message_count"] == 0


async def test_expired_message_behind_the_head_goes_to_no_consumer(autojump_clock: Any) -> None:
    async with opened(container()) as client:
        await declare(client)
        for body, life in ((b"long", "60000"), (b"short", "100"), (b"last", "60000")):
            await client.publish("", "q", body, expiration=life)
        await declare(client)
        await trio.sleep(1)
        await client.ask(spec.BasicConsume(queue="q", consumer_tag="c", no_ack=True))
        found = [await client.hear() for _ in range(2)]
        assert bodies_of([each for each in found if each is not None]) == [b"long", b"last"]


async def test_first_message_dies_if_the_queue_is_full() -> None:
    for like_rabbitmq, expected in ((True, [b"3", b"1"]), (False, [b"5", b"3"])):
        async with opened(container(like_rabbitmq=like_rabbitmq)) as client:
            await declare(client, x_max_priority=5, x_max_length=2)
            for priority in (5, 1, 3):
                await client.publish("", "q", b"%d" % priority, priority=priority)
            assert [(await got(client)).body for _ in range(2)] == expected


async def test_octets_of_a_queue_are_those_of_bodies() -> None:
    for like_rabbitmq, expected in ((True, 2), (False, 1)):
        async with opened(container(like_rabbitmq=like_rabbitmq)) as client:
            await declare(client, x_max_length_bytes=20)
            for n in range(3):
                await client.publish("", "q", b"%d" % n * 10, headers={"long": "x" * 100})
            assert (await declare(client, x_max_length_bytes=20))["message_count"] == expected
            for n in range(expected):
                assert (await got(client)).body == b"%d" % (n + 3 - expected) * 10
            await client.publish("", "q", b"0123456789" * 3)
            count = (await declare(client, x_max_length_bytes=20))["message_count"]
            assert count == (0 if like_rabbitmq else 1), "a container takes one, however large it is"


async def test_returned_and_purged_messages_count_by_their_bodies() -> None:
    async with opened(container()) as client:
        await declare(client, x_max_length_bytes=20)
        for n in range(2):
            await client.publish("", "q", b"%d" % n * 10, headers={"long": "x" * 100})
        await client.ask(spec.BasicGet(queue="q"))
        await client.say(spec.BasicReject(delivery_tag=1, requeue=True))
        assert (await declare(client, x_max_length_bytes=20))["message_count"] == 2
        assert (await client.ask(spec.QueuePurge(queue="q")))["message_count"] == 2
        for n in range(2):
            await client.publish("", "q", b"%d" % n * 10)
        assert (await declare(client, x_max_length_bytes=20))["message_count"] == 2


async def test_first_delivery_says_that_nobody_had_the_message() -> None:
    made = container()
    assert made.broker is not None
    made.broker.declare_queue("q")
    async with made.connect() as conn, conn.open_sender("q") as sender, conn.open_receiver("q") as receiver:
        for message in (amqp.Message("a"), amqp.Message("b", durable=True, first_acquirer=True)):
            await sender.send(message)
            first = await receiver.receive()
            assert (first.message.body, first.message.first_acquirer) == (message.body, True)
            first.release()
            again = await receiver.receive()
            assert (again.message.first_acquirer, again.message.durable) == (False, message.durable)
            again.accept()
