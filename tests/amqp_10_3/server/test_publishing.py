"""Publishes: what is returned, what needs a consumer, and what a full queue refuses."""

from __future__ import annotations

from typing import Any

from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.container import Container

from .script import bodies, opened


async def test_unroutable_message_is_returned_if_it_is_mandatory() -> None:
    async with opened() as client:
        await client.publish("", "nowhere", b"gone")
        await client.publish("", "nowhere", b"back", mandatory=True, content_type="a/b")
        heard = await client.heard("basic.return")
        assert (heard["reply_code"], heard["routing_key"], heard.body) == (312, b"nowhere", b"back")
        assert heard.properties[0] == b"a/b"
        await client.publish("nope", "", b"")
        assert await client.closed(await client.hear()) == ("channel", 404)


async def test_immediate_message_needs_a_consumer_that_is_ready() -> None:
    container = Container()
    async with opened(container) as client:
        await client.declare()
        await client.publish("", "q", b"1", immediate=True)
        assert (await client.heard("basic.return"))["reply_code"] == 313
        await client.consume(prefetch_count=1)
        await client.publish("", "q", b"2", immediate=True)
        assert await bodies(client, 1) == [b"2"]
        await client.publish("", "q", b"3", immediate=True)
        heard = await client.heard("basic.return")
        assert (heard["reply_code"], heard.body) == (313, b"3")
        await client.publish("", "nowhere", b"4", immediate=True)
        assert (await client.heard("basic.return"))["reply_code"] == 313
        assert (await client.ask(spec.QueueDeclare(queue="q", passive=True)))["message_count"] == 0


async def test_message_goes_to_a_function_also_if_it_is_immediate() -> None:
    container = Container()
    found: list[bytes] = []

    @container.function("f")
    async def f(message: Any) -> None:
        found.append(bytes(message.body))

    async with opened(container) as client:
        await client.publish("", "f", b"x", immediate=True)
        assert await client.quiet()
        assert await client.quiet()
    assert found == [b"x"]


async def test_publish_that_a_full_queue_refuses_is_told_by_an_alert() -> None:
    async with opened() as client:
        await client.declare("q", arguments={"x_max_length": 1, "x_overflow": "reject-publish"})
        await client.publish("", "q", b"1")
        await client.publish("", "q", b"2")
        alert = await client.heard("channel.alert")
        assert dict(alert["details"])[b"routing_key"] == ("S", b"q")
        assert await client.quiet()


async def test_transaction_counts_at_its_commit_and_not_after_a_rollback() -> None:
    async with opened() as client:
        await client.declare()
        assert (await client.ask(spec.TxSelect())).name == "tx.select-ok"
        await client.publish("", "q", b"1")
        assert (await client.ask(spec.QueueDeclare(queue="q", passive=True)))["message_count"] == 0
        assert (await client.ask(spec.TxCommit())).name == "tx.commit-ok"
        assert (await client.ask(spec.BasicGet(queue="q"))).body == b"1"
        await client.say(spec.BasicAck(delivery_tag=1))
        await client.publish("", "q", b"2")
        assert (await client.ask(spec.TxRollback())).name == "tx.rollback-ok"
        await client.say(spec.BasicAck(delivery_tag=1))
        assert (await client.ask(spec.TxCommit())).name == "tx.commit-ok"
        assert (await client.ask(spec.BasicGet(queue="q"))).name == "basic.get-empty"


async def test_commit_without_select_is_refused() -> None:
    async with opened() as client:
        assert await client.refused(spec.TxCommit()) == ("channel", 406)
