"""Exchanges and queues of 10.3: what is declared, bound, purged and deleted, and what is refused (C 654-880)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.container.mortal import Disk, answered_after_commit
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.server.protocol import Amqp103
from trio_amqp10.broker.stores import MemoryStore
from trio_amqp10.container import Container

from .script import opened


@pytest.mark.parametrize(
    ("method", "refused"),
    [
        (spec.ExchangeDeclare(exchange="amq.mine"), ("channel", 403)),
        (spec.ExchangeDeclare(exchange="e", type="topic"), ("connection", 530)),
        (spec.ExchangeDeclare(exchange="f", type="nope"), ("connection", 503)),
        (spec.ExchangeDeclare(exchange="nope", passive=True), ("channel", 404)),
        (spec.QueueDeclare(queue="amq.mine"), ("connection", 403)),
        (spec.QueueDeclare(queue="nope", passive=True), ("channel", 404)),
        (spec.QueueBind(queue="nope", exchange="e"), ("channel", 404)),
        (spec.QueueBind(queue="q", exchange="nope"), ("channel", 404)),
        (spec.QueueBind(queue="q", exchange="inner"), ("connection", 530)),
        (spec.QueueBind(queue="q", exchange=""), ("connection", 541)),
        (spec.QueueBind(queue="lasting", exchange="e"), ("channel", 406)),
        (spec.QueuePurge(queue="nope"), ("channel", 404)),
        (spec.QueueDelete(queue="nope"), ("channel", 404)),
        (spec.QueueDeclare(queue="q", arguments={"x_max_length": 3}), ("channel", 406)),
    ],
    ids=lambda each: str(each)[:60],
)
async def test_what_cannot_be_is_refused(method: Any, refused: tuple[str, int]) -> None:
    async with opened() as client:
        await client.ask(spec.ExchangeDeclare(exchange="e"))
        await client.ask(spec.ExchangeDeclare(exchange="inner", internal=True))
        await client.declare("q")
        await client.declare("lasting", durable=True)
        assert await client.refused(method) == refused


@pytest.mark.parametrize(
    "again",
    [{"durable": True}, {"auto_delete": True}, {"durable": True, "auto_delete": True}, {}],
    ids=str,
)
async def test_bits_of_what_is_there_are_ignored(again: dict[str, bool]) -> None:
    async with opened() as client:
        await client.ask(spec.ExchangeDeclare(exchange="e"))
        await client.declare("q")
        assert (await client.ask(spec.ExchangeDeclare(exchange="e", **again))).name == "exchange.declare-ok"
        await client.declare("q", **again)


async def test_queue_of_the_program_is_found() -> None:
    container = Container()
    container.add_queue("mine")
    async with opened(container) as client:
        await client.declare("mine", durable=True)
        heard = await client.ask(spec.QueueDeclare(queue="mine", passive=True))
        assert (heard["queue"], heard["consumer_count"]) == (b"mine", 0)


async def test_exclusive_queue_is_its_connections() -> None:
    container = Container()
    async with opened(container) as one, opened(container) as two:
        await one.declare("q", exclusive=True)
        await one.declare("q", exclusive=True)
        await one.declare("q")
        assert await two.refused(spec.QueueDeclare(queue="q", exclusive=True)) == ("channel", 405)
        assert await two.refused(spec.BasicConsume(queue="q")) == ("channel", 405)


async def test_queue_without_a_name_gets_one_and_is_the_one_meant_by_no_name() -> None:
    async with opened() as client:
        name = (await client.ask(spec.QueueDeclare()))["queue"].decode()
        assert name.startswith("amq.gen-")
        assert (
            await client.ask(spec.QueueBind(exchange="amq.topic", routing_key="a.#"))
        ).name == "queue.bind-ok"
        assert (
            await client.ask(spec.QueueBind(exchange="amq.topic", routing_key="a.#"))
        ).name == "queue.bind-ok"
        await client.publish("amq.topic", "a.b", b"x")
        assert (await client.ask(spec.BasicGet())).body == b"x"
        assert (await client.ask(spec.QueueDelete()))["message_count"] == 0


async def test_purge_is_answered_when_it_is_stored() -> None:
    disk = Disk()
    container = Container(store=disk, keeps_all=True)
    async with opened(container) as client:
        await client.declare(durable=True)
        await container.send("q", b"1")
        purged = await answered_after_commit(disk, lambda: client.ask(spec.QueuePurge(queue="q")))
        assert purged["message_count"] == 1


async def test_purge_leaves_what_is_out() -> None:
    async with opened() as client:
        await client.declare()
        for body in (b"1", b"2", b"3"):
            await client.publish("", "q", body)
        assert (await client.ask(spec.BasicGet(queue="q"))).body == b"1"
        assert (await client.ask(spec.QueuePurge(queue="q")))["message_count"] == 2
        await client.say(spec.BasicAck(delivery_tag=1))
        assert await client.quiet()


async def test_delete_obeys_its_conditions() -> None:
    async with opened() as client:
        await client.declare()
        await client.publish("", "q", b"x")
        assert await client.refused(spec.QueueDelete(queue="q", if_empty=True)) == ("channel", 406)
        await client.consume()
        await client.heard("basic.deliver")
        assert await client.refused(spec.QueueDelete(queue="q", if_unused=True)) == ("channel", 406)
        assert (await client.ask(spec.ExchangeDeclare(exchange="e"))).name == "exchange.declare-ok"
        await client.ask(spec.QueueBind(queue="q", exchange="e"))
        assert await client.refused(spec.ExchangeDelete(exchange="e", if_unused=True)) == ("channel", 406)
        assert (await client.ask(spec.ExchangeDelete(exchange="e"))).name == "exchange.delete-ok"


async def test_queue_of_auto_delete_goes_after_some_time_of_disuse(autojump_clock: Any) -> None:

    container = Container()
    async with opened(container, dialect=Amqp103(container, tickets=False, grace=60)) as client:
        await client.declare("q", auto_delete=True)
        await trio.sleep(50)
        await client.consume()
        await client.ask(spec.BasicCancel(consumer_tag="c"))
        await trio.sleep(50)
        assert "q" in container.nodes
        await trio.sleep(20)
        assert "q" not in container.nodes


async def test_passive_exchange_is_found_whatever_its_type() -> None:
    async with opened() as client:
        heard = await client.ask(spec.ExchangeDeclare(exchange="amq.topic", passive=True))
        assert heard.name == "exchange.declare-ok"


async def test_exchange_of_auto_delete_goes_some_time_after_its_last_binding(autojump_clock: Any) -> None:

    container = Container()
    async with opened(container, dialect=Amqp103(container, tickets=False, grace=60)) as client:
        await client.ask(spec.ExchangeDeclare(exchange="e", auto_delete=True))
        await trio.sleep(100)  # it was never used
        await client.declare("q")
        await client.ask(spec.QueueBind(queue="q", exchange="e"))
        await client.ask(spec.QueueDelete(queue="q"))
        await trio.sleep(50)
        await client.declare("q")
        await client.ask(spec.QueueBind(queue="q", exchange="e"))
        await trio.sleep(50)
        await client.publish("e", "", b"still there")
        assert (await client.ask(spec.BasicGet(queue="q"))).body == b"still there"
        await client.ask(spec.QueueDelete(queue="q"))
        await trio.sleep(61)
        assert await client.refused(spec.ExchangeDeclare(exchange="e", passive=True)) == ("channel", 404)


async def test_grace_of_a_durable_exchange_survives_a_restart(autojump_clock: Any) -> None:

    store = MemoryStore()
    container = Container(store=store)
    async with opened(container, dialect=Amqp103(container, tickets=False, grace=60)) as client:
        await client.ask(spec.ExchangeDeclare(exchange="e", durable=True, auto_delete=True))
    container = Container(store=store)
    async with opened(container, dialect=Amqp103(container, tickets=False)) as client:
        await client.declare("q")
        await client.ask(spec.QueueBind(queue="q", exchange="e"))
        await client.ask(spec.QueueDelete(queue="q"))
        await trio.sleep(50)
        heard = await client.ask(spec.ExchangeDeclare(exchange="e", passive=True))
        assert heard.name == "exchange.declare-ok"
        await trio.sleep(20)
        assert await client.refused(spec.ExchangeDeclare(exchange="e", passive=True)) == ("channel", 404)


@pytest.mark.parametrize("stored", [False, True])
async def test_what_is_pending_in_a_queue_that_is_deleted_becomes_dead_letters(stored: bool) -> None:
    store = MemoryStore() if stored else None
    container = Container(store=store)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    dialect = Amqp103(container, tickets=False, queue_arguments=arguments)
    async with opened(container, dialect=dialect) as client:
        await client.declare("q", durable=True)
        await client.declare("dead", durable=True, arguments={"x_dead_letter_routing_key": "none"})
        for body in (b"out", b"1", b"2"):
            await client.publish("", "q", body, delivery_mode=2)
        assert (await client.ask(spec.BasicGet(queue="q"))).body == b"out"
        assert (await client.ask(spec.QueueDelete(queue="q")))["message_count"] == 2
        heard = await client.ask(spec.QueueDeclare(queue="dead", passive=True))
        assert heard["message_count"] == 2
        assert await client.refused(spec.QueueDeclare(queue="q", passive=True)) == ("channel", 404)
        if stored:
            await container.flush(5)
    if stored:
        container = Container(store=store)
        container.add_broker()
        async with opened(container, dialect=Amqp103(container, tickets=False)) as client:
            bodies = [(await client.ask(spec.BasicGet(queue="dead"))).body for _ in range(2)]
            assert bodies == [b"1", b"2"]
            assert await client.refused(spec.QueueDeclare(queue="q", passive=True)) == ("channel", 404)


async def test_queue_without_dead_letters_is_deleted_with_its_messages() -> None:
    async with opened() as client:
        await client.declare("q")
        await client.publish("", "q", b"1")
        assert (await client.ask(spec.QueueDelete(queue="q")))["message_count"] == 1
        assert await client.quiet()
