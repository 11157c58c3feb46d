"""Direct replies: straight to their consumer, which cannot acknowledge, and what becomes of those that cannot be delivered."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.server.consuming import _Replies
from trio_amqp10.container import Container

from .script import Client, consuming, delivered, filled, opened


async def test_direct_reply_goes_straight_to_its_consumer() -> None:
    container = Container()
    async with opened(container) as client, opened(container) as server:
        await filled(server)
        await consuming(client, name="amq.rabbitmq.reply-to", no_ack=True)
        await client.publish("", "q", b"ask", reply_to="amq.rabbitmq.reply-to", correlation_id="1")
        await client.ask(spec.QueueDeclare(queue="mark"))
        asked = await server.ask(spec.BasicGet(queue="q", no_ack=True))
        reply_to = asked.properties[6].decode()
        assert reply_to.startswith("amq.rabbitmq.reply-to.")
        there = await server.ask(spec.QueueDeclare(queue=reply_to, passive=True))
        assert (there["message_count"], there["consumer_count"]) == (0, 1)
        await server.publish("", reply_to, b"answer", correlation_id="1")
        (reply,) = await delivered(client, 1)
        assert (reply.body, reply.properties[5]) == (b"answer", b"1")
        await client.ask(spec.BasicCancel(consumer_tag="c"))
        assert await server.refused(spec.QueueDeclare(queue=reply_to, passive=True)) == 404


async def requested(client: Client, server: Client) -> str:
    """A request, whose reply ``client`` consumes: where the server is to publish that."""
    await filled(server)
    await consuming(client, name="amq.rabbitmq.reply-to", no_ack=True)
    await client.publish("", "q", b"ask", reply_to="amq.rabbitmq.reply-to")
    await client.ask(spec.QueueDeclare(queue="mark"))
    asked = await server.ask(spec.BasicGet(queue="q", no_ack=True))
    reply_to: str = asked.properties[6].decode()
    return reply_to


async def test_reply_whose_header_is_larger_than_a_frame_is_delivered() -> None:
    container = Container()
    async with opened(container, frame_max=4096) as client, opened(container) as server:
        reply_to = await requested(client, server)
        await server.ask(spec.ConfirmSelect())
        await server.publish("", reply_to, b"1", headers={"h": "x" * 8000})
        heard = await server.hear()
        assert heard is not None
        assert (heard.name, heard["delivery_tag"]) == ("basic.ack", 1)
        (reply,) = await delivered(client, 1)
        assert (reply["delivery_tag"], reply.body) == (1, b"1")


@pytest.mark.logs_errors
async def test_consumer_of_direct_replies_that_fails_ends_and_its_publisher_does_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: _Replies, content: Any) -> None:
        raise RuntimeError("a bug")

    container = Container()
    async with opened(container) as client, opened(container) as server:
        reply_to = await requested(client, server)
        await server.ask(spec.ConfirmSelect())
        monkeypatch.setattr(_Replies, "deliver", fail)
        await server.publish("", reply_to, b"1", mandatory=True)
        await server.publish("", reply_to, b"2")
        heard = [await server.hear() for _ in range(3)]
        assert [each.name for each in heard if each] == ["basic.return", "basic.ack", "basic.ack"]
        cancelled = await client.hear()
        assert cancelled is not None
        assert (cancelled.name, cancelled["consumer_tag"]) == ("basic.cancel", b"c")
        assert await server.refused(spec.QueueDeclare(queue=reply_to, passive=True)) == 404
        monkeypatch.undo()
        await consuming(client, tag="d", name="amq.rabbitmq.reply-to", no_ack=True)
    assert "a bug" in caplog.text


async def test_consumer_of_direct_replies_cannot_acknowledge() -> None:
    async with opened() as client:
        assert await client.refused(spec.BasicConsume(queue="amq.rabbitmq.reply-to")) == 406


async def test_publish_that_wants_direct_replies_is_refused_when_nothing_consumes_them() -> None:
    async with opened() as client:
        await client.publish("", "q", b"", reply_to="amq.rabbitmq.reply-to")
        assert await client.close_code(await client.hear()) == 406
        pseudo = spec.QueueDeclare(queue="amq.rabbitmq.reply-to", passive=True)
        assert (await client.ask(pseudo))["consumer_count"] == 1
