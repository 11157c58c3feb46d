"""Headers and dead letters across protocols: the same at RabbitMQ 4 as in what stands in for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091
from trio_amqp10.amqp10.wire.values import Symbol, UByte, ULong
from trio_amqp10.testing import rabbitmq

from .ours import within

if TYPE_CHECKING:
    from .rabbitmq import Broker

BINDINGS: dict[str, dict[str, Any]] = {
    "text": {"a": "tea"},
    "octets": {"a": b"tea"},
    "number": {"a": 7},
    "true": {"a": True},
    "float": {"a": 2.5},
    "there": {"a": None},
    "with-x": {"x-match": "all-with-x", "x-note": "n"},
    "without-x": {"x-match": "any", "x-note": "n"},
}
VALUES: list[Any] = ["tea", Symbol("tea"), b"tea", 7, UByte(7), ULong(7), True, 2.5, None]


async def _taken(queue: amqp091.Queue) -> amqp091.Delivery:
    for _ in range(500):
        if (got := await queue.get()) is not None:
            return got
        await trio.sleep(0.02)
    raise AssertionError(f"{queue.name} stays empty")


FROM_1_0 = amqp.Message(
    b"from 1.0",
    ttl=60_000,
    application_properties={"p": 1},
    annotations={Symbol("x-mine"): "a", Symbol("x-opt-mine"): "b", Symbol("x-basic-mine"): "c"},
)


async def _across(url: str) -> list[Any]:
    seen: list[Any] = []
    async with (
        amqp091.open_connection(url) as old,
        old.open_channel() as channel,
        amqp.open_connection(url) as new,
    ):
        for name in ("across-h", "across-d"):
            await channel.delete_exchange(name)
        await channel.declare_exchange("across-h", "headers")
        queues: dict[str, amqp091.Queue] = {}
        for name, arguments in BINDINGS.items():
            await channel.queue(f"across-{name}").delete()
            queues[name] = await channel.declare_queue(f"across-{name}", durable=True)
            await queues[name].bind("across-h", arguments=arguments)

        messages = [amqp.Message(b"m", application_properties={"a": value}) for value in VALUES]
        async with new.open_sender("/exchanges/across-h") as sender:
            for message in (*messages, amqp.Message(b"m", annotations={"x-note": "n"})):
                await sender.send(message)
                seen.append([name for name, queue in queues.items() if await queue.purge()])

        await channel.declare_exchange("across-d", "topic")
        for name in ("across-w", "across-dead"):
            await channel.queue(name).delete()
        dies = {"x-dead-letter-exchange": "across-d"}
        work = await channel.declare_queue("across-w", durable=True, arguments=dies)
        back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "across-w"}
        dead = await channel.declare_queue("across-dead", durable=True, arguments=back)
        await dead.bind("across-d", "#")
        async with new.open_sender("/queues/across-w") as sender:
            await sender.send(FROM_1_0)
        await channel.publish("", "across-w", b"from 0-9-1", expiration="60000", headers={"p": 1})
        for _ in range(2):
            (await _taken(work)).reject(requeue=False)
        for _ in range(2):
            got = await _taken(dead)
            seen.append(_told(got.body, got.headers))
            got.reject(requeue=False)
        for _ in range(2):
            (await _taken(work)).reject(requeue=False)
        async with new.open_receiver("/queues/across-dead") as receiver:
            for _ in range(2):
                delivery = await receiver.receive()
                seen.append(_told(delivery.message.body, delivery.message.annotations))
                delivery.accept()
    return seen


def _told(body: bytes, notes: Any) -> tuple[Any, ...]:
    """All of a history that is the same in every run, with its types."""
    histories = {
        str(name): [
            {str(key): (type(value).__name__, value) for key, value in each.items() if "time" not in str(key)}
            for each in notes[name]
        ]
        for name in notes
        if str(name) in ("x-death", "x-opt-deaths")
    }
    rest = {str(name): value for name, value in notes.items() if str(name) not in histories}
    return body, histories, rest


def test_headers_and_dead_letters_of_both_protocols_are_as_in_rabbitmq(rabbitmq4: Broker) -> None:
    there = within(_across, rabbitmq4.url)
    with rabbitmq() as url:
        here = within(_across, url)
    for mine, its in zip(here, there, strict=True):
        assert mine == its
