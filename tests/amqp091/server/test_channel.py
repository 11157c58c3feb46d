"""A channel of the server: methods in order, and what becomes of those behind a refused one."""

from __future__ import annotations

from trio_amqp10.amqp091 import spec
from trio_amqp10.container import Container, Rules

from .script import opened


async def test_method_without_a_queue_is_refused_when_none_was_declared() -> None:
    async with opened() as client:
        for method in (spec.BasicGet(), spec.BasicConsume(), spec.QueuePurge(), spec.QueueDelete()):
            assert await client.refused(method) == 404


async def test_refused_method_closes_the_channel_when_it_needs_no_answer() -> None:
    async with opened() as client:
        assert await client.refused(spec.QueueDeclare(queue="amq.mine", no_wait=True)) == 403


async def test_methods_behind_a_refused_one_are_dropped() -> None:
    async with opened() as client:
        await client.say(spec.QueueDeclare(queue="nope", passive=True), spec.QueueDeclare(queue="after"))
        assert await client.close_code(await client.hear()) == 404
        assert await client.refused(spec.QueueDeclare(queue="after", passive=True)) == 404


async def test_declare_needs_the_right_to_create() -> None:
    container = Container(authorise=Rules(("*", "send receive", "*")))
    async with opened(container) as client:
        assert await client.refused(spec.QueueDeclare(queue="q")) == 403
        assert await client.refused(spec.ExchangeDeclare(exchange="e")) == 403
