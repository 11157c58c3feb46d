"""Exchanges, queues and bindings by the methods of 0-9-1."""

from __future__ import annotations

import pytest

from tests.container.mortal import Disk, answered_after_commit
from trio_amqp10.amqp091 import spec
from trio_amqp10.container import Container

from .script import Client, opened


async def declared(client: Client, name: str = "q", **options: object) -> str:
    answer = await client.ask(spec.QueueDeclare(queue=name, **options))  # type: ignore[arg-type]
    assert answer.name == "queue.declare-ok", answer
    return str(answer["queue"].decode())


async def test_queue_is_declared_and_counted_when_declared_again() -> None:
    async with opened() as client:
        await declared(client)
        await client.publish("", "q", b"1")
        again = await client.ask(spec.QueueDeclare(queue="q"))
        assert (again["message_count"], again["consumer_count"]) == (1, 0)


async def test_queue_gets_a_name_when_the_client_has_none() -> None:
    async with opened() as client:
        name = await declared(client, "")
        assert name.startswith("amq.gen-")
        assert len(name) == len("amq.gen-") + 22
        # An empty name is that of the queue that was declared last.
        assert (await client.ask(spec.QueuePurge())).name == "queue.purge-ok"
        assert (await client.ask(spec.QueueDeclare(queue=name, passive=True)))["queue"] == name.encode()
        assert await client.refused(spec.QueueDeclare(queue=name)) == 403


@pytest.mark.parametrize(
    ("method", "code"),
    [
        (spec.QueueDeclare(queue="nope", passive=True), 404),
        (spec.ExchangeDeclare(exchange="nope", passive=True), 404),
        (spec.QueueDeclare(queue="amq.mine"), 403),
        (spec.ExchangeDeclare(exchange="amq.mine"), 403),
        (spec.ExchangeDeclare(exchange=""), 403),
        (spec.ExchangeDelete(exchange="amq.direct"), 403),
        (spec.ExchangeDeclare(exchange="e", type="odd"), 406),
        (spec.ExchangeDeclare(exchange="amq.direct", type="fanout", durable=True), 406),
        (spec.QueueDeclare(queue="q", arguments={"x-max-length": -1}), 406),
        (spec.QueueDeclare(queue="q", arguments={"x-queue-type": "odd"}), 406),
        (spec.QueueDeclare(queue="q", arguments={"x-queue-type": "quorum"}), 406),
        (spec.QueueDeclare(queue="q", arguments={"x-queue-type": "stream"}), 540),
        (spec.QueueBind(queue="nope", exchange="amq.direct"), 404),
        (spec.QueueBind(queue="here", exchange="nope"), 404),
        (spec.QueueBind(queue="here", exchange=""), 403),
        (spec.QueueBind(queue="here", exchange="amq.headers", arguments={"x-match": "odd"}), 406),
        (spec.QueueDeclare(queue="here", durable=True), 406),
        (spec.QueueDeclare(queue="here", exclusive=True), 405),
        (spec.QueuePurge(queue="nope"), 404),
        (spec.BasicGet(queue="nope"), 404),
        (spec.BasicConsume(queue="nope"), 404),
    ],
    ids=lambda each: each.plan.name if isinstance(each, spec.Method) else None,
)
async def test_method_is_refused_with_the_code_that_it_has(method: spec.Method, code: int) -> None:
    async with opened() as client:
        await declared(client, "here")
        assert await client.refused(method) == code


async def test_inequivalent_argument_is_named_when_a_queue_is_declared_again() -> None:
    async with opened() as client:
        await declared(client)
        heard = await client.ask(spec.QueueDeclare(queue="q", durable=True))
        assert heard["reply_text"].startswith(
            b"PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q'"
        )
        assert (heard["class_id"], heard["method_id"]) == (50, 10)


async def test_exclusive_queue_is_refused_to_others_and_gone_with_its_connection() -> None:
    container = Container()
    async with opened(container) as other:
        async with opened(container) as owner:
            await declared(owner, "mine", exclusive=True)
            for method in (
                spec.QueueDeclare(queue="mine", passive=True),
                spec.QueueDeclare(queue="mine", exclusive=True),
                spec.BasicConsume(queue="mine"),
                spec.BasicGet(queue="mine"),
                spec.QueuePurge(queue="mine"),
                spec.QueueDelete(queue="mine"),
                spec.QueueBind(queue="mine", exchange="amq.direct"),
            ):
                assert await other.refused(method) == 405
            await other.publish("", "mine", b"free for all")
            assert (await other.ask(spec.QueueDeclare(queue="mark"))).name == "queue.declare-ok"
            assert (await owner.ask(spec.BasicGet(queue="mine"))).body == b"free for all"
        assert await other.refused(spec.QueueDeclare(queue="mine", passive=True)) == 404


async def test_queue_is_not_deleted_when_it_is_used_or_not_empty() -> None:
    async with opened() as client:
        await declared(client)
        await client.publish("", "q", b"1")
        assert await client.refused(spec.QueueDelete(queue="q", if_empty=True)) == 406
        assert (await client.ask(spec.BasicConsume(queue="q", consumer_tag="c"))).name == "basic.consume-ok"
        assert (await client.hear()).name == "basic.deliver"  # type: ignore[union-attr]
        assert await client.refused(spec.QueueDelete(queue="q", if_unused=True)) == 406
        deleted = await client.ask(spec.QueueDelete(queue="q"))
        assert deleted["message_count"] == 1
        assert (await client.ask(spec.QueueDelete(queue="q")))["message_count"] == 0


async def test_purge_counts_what_is_ready() -> None:
    async with opened() as client:
        await declared(client)
        for _ in range(3):
            await client.publish("", "q")
        await client.ask(spec.BasicGet(queue="q"))
        assert (await client.ask(spec.QueuePurge(queue="q")))["message_count"] == 2


async def test_auto_delete_queue_goes_with_its_last_consumer_and_not_with_a_get() -> None:
    async with opened() as client:
        await declared(client, auto_delete=True)
        assert (await client.ask(spec.BasicGet(queue="q"))).name == "basic.get-empty"
        await client.ask(spec.BasicConsume(queue="q", consumer_tag="c"))
        assert (await client.ask(spec.BasicCancel(consumer_tag="c"))).name == "basic.cancel-ok"
        assert await client.refused(spec.QueueDeclare(queue="q", passive=True)) == 404


async def test_message_is_routed_by_exchanges_of_all_kinds() -> None:
    async with opened() as client:
        await declared(client)
        for exchange, key, arguments in (
            ("amq.direct", "d", {}),
            ("amq.fanout", "", {}),
            ("amq.topic", "a.#", {}),
            ("amq.headers", "", {"x-match": "any", "colour": "red"}),
        ):
            bind = spec.QueueBind(queue="q", exchange=exchange, routing_key=key, arguments=arguments)
            assert (await client.ask(bind)).name == "queue.bind-ok"
        await client.publish("amq.direct", "d", b"direct")
        await client.publish("amq.direct", "other", b"lost")
        await client.publish("amq.fanout", "x", b"fanout")
        await client.publish("amq.topic", "a.b.c", b"topic")
        await client.publish("amq.headers", "", b"headers", headers={"colour": "red"})
        await client.publish("amq.headers", "", b"lost", headers={"colour": "blue"})
        got = [await client.ask(spec.BasicGet(queue="q", no_ack=True)) for _ in range(5)]
        assert [each.body for each in got] == [b"direct", b"fanout", b"topic", b"headers", b""]
        assert [each["exchange"] for each in got[:-1]] == [
            b"amq.direct",
            b"amq.fanout",
            b"amq.topic",
            b"amq.headers",
        ]
        unbind = spec.QueueUnbind(queue="q", exchange="amq.direct", routing_key="d")
        assert (await client.ask(unbind)).name == "queue.unbind-ok"
        await client.publish("amq.direct", "d", b"lost")
        assert (await client.ask(spec.BasicGet(queue="q"))).name == "basic.get-empty"


async def test_exchange_is_bound_to_an_exchange_and_unbound() -> None:
    async with opened() as client:
        await declared(client)
        await client.ask(spec.ExchangeDeclare(exchange="inner", type="fanout", internal=True))
        await client.ask(spec.QueueBind(queue="q", exchange="inner"))
        bind = spec.ExchangeBind(destination="inner", source="amq.topic", routing_key="#")
        assert (await client.ask(bind)).name == "exchange.bind-ok"
        await client.publish("amq.topic", "k", b"through two")
        assert (await client.ask(spec.BasicGet(queue="q", no_ack=True))).body == b"through two"
        unbind = spec.ExchangeUnbind(destination="inner", source="amq.topic", routing_key="#")
        assert (await client.ask(unbind)).name == "exchange.unbind-ok"
        await client.publish("inner", "k")
        assert await client.close_code(await client.hear()) == 403


async def test_purge_is_answered_when_it_is_stored() -> None:
    disk = Disk()
    container = Container(store=disk, keeps_all=True)
    async with opened(container) as client:
        await declared(client, durable=True)
        await container.send("q", b"1")
        purged = await answered_after_commit(disk, lambda: client.ask(spec.QueuePurge(queue="q")))
        assert purged["message_count"] == 1
