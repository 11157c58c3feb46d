"""Connections of 10.3 to a container: a message, the figures of management, and clients that go."""

from __future__ import annotations

from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.container import Container
from trio_amqp10.core.errors import Condition

from .script import Client, opened


async def test_message_goes_through_a_queue() -> None:
    async with opened() as client:
        await client.declare("q")
        await client.publish("", "q", b"hello", content_type="text/plain", headers={"n": 1})
        heard = await client.ask(spec.BasicGet(queue="q"))
        assert (heard.name, heard.body) == ("basic.get-ok", b"hello")
        assert heard.properties[:3] == [b"text/plain", None, [(b"n", ("I", 1))]]
        assert heard["message_count"] == 0
        await client.say(spec.BasicAck(delivery_tag=heard["delivery_tag"]))
        assert (await client.ask(spec.BasicGet(queue="q"))).name == "basic.get-empty"


async def test_connection_is_in_the_figures_of_the_container() -> None:
    container = Container()
    async with opened(container, name="shop") as client:
        await client.declare("q")
        await client.consume()
        (peer,) = container.connected
        assert peer.container_id == "shop"
        assert peer.statistics()["protocol"] == "AMQ Protocol 10.3"
        assert peer.statistics()["senders"] == 1
        peer.close(Condition.CONNECTION_FORCED, "over")
        assert await client.closed(await client.hear(), 0) == ("connection", 320)


async def test_client_that_goes_amid_a_content_leaves_nothing() -> None:
    container = Container()
    async with opened(container) as client:
        await client.carry(spec.BasicPublish(), b"hello", cut=2)
        assert isinstance(client, Client)
    assert not container.connected
