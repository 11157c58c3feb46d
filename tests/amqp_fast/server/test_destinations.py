"""Destinations: by name, by prefix, temporary, and of another service."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.server.protocol import AmqpFast
from trio_amqp10.amqp_fast.wire.message_number_list import read_list
from trio_amqp10.container import Container

from .script import TOPIC, length, opened, with_queues


async def test_name_of_a_destination_is_that_of_open_and_that_of_send() -> None:
    container = with_queues("alt.pets", "alt.pets.cats")
    async with opened(container) as client:
        await client.handle("alt.")
        await client.send(b"1", name="pets")
        await client.send(b"2", name="pets.cats")
        assert await client.quiet()
        assert [length(container, name) for name in ("alt.pets", "alt.pets.cats")] == [
            1,
            1,
        ]
        await client.send(b"3", name="dogs")
        assert await client.code() == ("handle", 404)


async def test_empty_name_sends_to_every_queue_and_no_topic() -> None:
    container = with_queues("a", "b")
    container.add_topic("t")
    async with opened(container) as client:
        await client.handle("t", 2, **TOPIC)
        await client.consume(handle_id=2)
        await client.handle("")
        await client.send(b"1", confirm=1)
        assert (await client.heard())["reply_code"] == 200
        assert [length(container, name) for name in "ab"] == [1, 1]
        assert await client.quiet(), "nothing came from the topic"


async def test_prefix_consumes_from_every_queue_below_it() -> None:
    container = with_queues("x.a", "x.b", "y")
    async with opened(container) as client:
        await client.handle("")
        for name in ("x.a", "x.b", "y"):
            await client.send(name.encode(), name=name)
        await client.handle("x.", 2)
        await client.consume(handle_id=2)
        assert sorted([(await client.got())[1] for _ in range(2)]) == [b"x.a", b"x.b"]
        assert await client.quiet()
        await client.handle("z", 3)
        assert await client.code(spec.HandleConsume(handle_id=3)) == ("handle", 404)


async def test_prefix_consumes_from_what_is_added_and_goes_on_without_what_is_deleted() -> None:
    container = with_queues("x.a", "x.b")
    async with opened(container) as client:
        await client.handle("")
        await client.handle("x.", 2)
        await client.consume(handle_id=2)
        container.remove_node("x.a")
        container.add_queue("x.c")
        container.add_queue("z")
        container.add_topic("x.t")
        for name in ("x.b", "x.c", "z"):
            await client.send(name.encode(), name=name)
        assert [(await client.got())[1] for _ in range(2)] == [b"x.b", b"x.c"]
        assert await client.quiet()
        await client.say(spec.HandleClose(handle_id=2, reply_code=200))
        assert (await client.heard()).name == "handle close"
        container.add_queue("x.d")
        assert not container.nodes["x.d"].outlets


async def test_temporary_destination_of_another_is_none_of_a_prefix() -> None:
    container = with_queues("x.a")
    async with opened(container) as client:
        await client.handle("x.")
        await client.consume()
        temporary = spec.HandleOpen(
            channel_id=1, handle_id=2, service_type=1, temporary=True, consumer=True, dest_name="x.mine"
        )
        await client.say(temporary)
        assert (await client.heard()).name == "handle created"
        assert not container.nodes["x.mine"].outlets


async def test_prefix_leaves_out_what_refuses_a_consumer() -> None:
    container = with_queues("x.a")
    container.add_queue("x.b", exclusive=True)
    async with opened(container) as one, opened(container, client_name="other") as two:
        await one.handle("x.b")
        await one.consume()
        await two.handle("x.")
        await two.consume()
        await two.send(b"1", name="a")
        assert (await two.got())[1] == b"1"
        assert len(container.nodes["x.b"].outlets) == 1


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_prefix_is_what_the_client_may_receive_from(asynchronous: bool) -> None:
    def permit(access: Any) -> bool:
        return access.action != "receive" or access.address in ("x.a", "x.d")

    async def permit_later(access: Any) -> bool:
        await trio.lowlevel.checkpoint()
        return permit(access)

    container = Container(strict=True, authorise=permit_later if asynchronous else permit)
    for name in ("x.a", "x.b", "y.b"):
        container.add_queue(name)
    async with opened(container) as client:
        await client.handle("")
        for name in ("x.a", "x.b"):
            await client.send(name.encode(), name=name)
        await client.handle("x.", 2)
        index = await client.ask(spec.HandleQuery(handle_id=2))
        assert (index.name, read_list(index["message_list"])) == ("handle index", [range(1, 2)])
        await client.consume(handle_id=2)
        assert (await client.got())[1] == b"x.a"
        for name in ("x.c", "x.d"):
            container.add_queue(name)
            await client.send(name.encode(), name=name)
        assert (await client.got())[1] == b"x.d"
        assert await client.quiet()
        await client.handle("y.", 3)
        assert await client.code(spec.HandleConsume(handle_id=3)) == ("handle", 403)


async def test_durable_subscription_of_a_prefix_is_cancelled_as_one() -> None:
    container = Container(strict=True)
    container.add_topic("x.a")
    async with opened(container) as client:
        await client.handle("x.", **TOPIC)
        await client.consume(identifier="mine")
        container.add_topic("x.b")
        assert [len(container.nodes[name].outlets) for name in ("x.a", "x.b")] == [1, 1]
        await client.say(spec.HandleCancel(handle_id=1, identifier="mine", confirm_tag=9))
        assert (await client.heard())["reply_code"] == 200
        container.add_topic("x.c")
        assert [len(container.nodes[name].outlets) for name in ("x.a", "x.b", "x.c")] == [0, 0, 0]
        assert await client.code(spec.HandleCancel(handle_id=1, identifier="mine")) == ("handle", 404)


async def test_destination_of_another_service_is_not_found() -> None:
    async with opened(with_queues()) as client:
        await client.handle("q", **TOPIC)
        await client.send(b"1")
        assert await client.code() == ("handle", 404)


@pytest.mark.parametrize("service", [1, 2])
@pytest.mark.parametrize("name", ["", "mine"])
async def test_temporary_destination_goes_with_its_channel(service: int, name: str) -> None:
    container = Container(strict=True)
    async with opened(container) as client:
        command = spec.HandleOpen(
            channel_id=1,
            handle_id=1,
            service_type=service,
            temporary=True,
            consumer=True,
            producer=True,
            dest_name=name,
            confirm_tag=1,
        )
        created = await client.ask(command)
        assert created.name == "handle created"
        assert created["dest_name"] == name or not name
        reply = await client.hear()
        assert reply is not None
        assert reply.name == "handle reply"
        await client.consume()
        await client.send(b"one")
        assert (await client.got())[1] == b"one"
        assert created["dest_name"] in container.nodes
        assert (await client.ask(spec.ChannelClose(channel_id=1))).name == "channel close"
        assert created["dest_name"] not in container.nodes


async def test_temporary_queue_is_its_clients_alone() -> None:
    container = with_queues()
    dialect = AmqpFast(container)
    ada = opened(container, dialect=dialect, client_name="ada")
    eve = opened(container, dialect=dialect, client_name="eve")
    async with ada as client, eve as other:
        await client.handle("mine", temporary=True)
        assert (await client.heard())["dest_name"] == "mine"
        await other.handle("mine")
        await other.send(b"one", confirm=1)
        assert (await other.heard())["reply_code"] == 200
        assert await other.code(spec.HandleConsume(handle_id=1)) == ("handle", 403)
        await other.handle("mine", 2, temporary=True)
        assert await other.code() == ("handle", 403)
        await other.handle("q", 3, temporary=True)
        assert await other.code() == ("handle", 403)
        await client.handle("mine", 2, temporary=True)  # purged
        assert (await client.heard())["dest_name"] == "mine"
        await client.consume(handle_id=2)
        assert await client.quiet()
