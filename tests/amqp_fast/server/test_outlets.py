"""What a consumer is given: up to its prefetch, by its selector, and again when it was not acknowledged."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

from trio_amqp10.amqp_fast import spec
from trio_amqp10.broker.stores import MemoryStore
from trio_amqp10.container import Container

from .script import TOPIC, length, opened, with_queues


async def test_messages_come_up_to_the_prefetch_and_go_on_with_an_ack() -> None:
    async with opened(with_queues()) as client:
        await client.handle("q")
        for number in range(5):
            await client.send(b"%d" % number)
        await client.consume(2)
        assert [await client.got() for _ in range(2)] == [(1, b"0"), (2, b"1")]
        assert await client.quiet()
        await client.say(spec.ChannelAck(channel_id=1, message_nbr=1))
        assert await client.got() == (3, b"2")
        reply = await client.ask(spec.ChannelAck(channel_id=1, message_nbr=99, confirm_tag=4))
        heard = [reply, await client.hear(), await client.hear()]
        assert sorted(each.name for each in heard if each is not None) == [
            "channel reply",
            "handle notify",
            "handle notify",
        ]


async def test_flow_stops_and_restarts_messages() -> None:
    async with opened(with_queues()) as client:
        await client.handle("q")
        await client.consume()
        await client.say(spec.HandleFlow(handle_id=1, flow_pause=True))
        await client.send(b"one")
        assert await client.quiet()
        await client.say(spec.HandleFlow(handle_id=1))
        assert await client.got() == (1, b"one")


async def test_message_that_is_not_acknowledged_comes_back_redelivered() -> None:
    async with opened(with_queues()) as client:
        await client.handle("q")
        await client.send(b"one")
        await client.consume()
        await client.got()
        assert (await client.ask(spec.HandleClose(handle_id=1))).name == "handle close"
        await client.handle("q", 2)
        await client.consume(handle_id=2)
        heard = await client.hear()
        assert heard is not None
        assert (heard["redelivered"], heard["delivered"], heard["dest_name"]) == (True, True, "q")


async def test_unreliable_messages_are_gone_once_they_are_sent() -> None:
    container = with_queues()
    async with opened(container) as client:
        await client.handle("q")
        await client.consume(1, unreliable=True)
        for number in range(3):
            await client.send(b"%d" % number)
        assert [(await client.got())[1] for _ in range(3)] == [b"0", b"1", b"2"]
        assert length(container, "q") == 0


async def test_unget_gives_a_message_to_another_client() -> None:
    container = with_queues()
    async with opened(container) as client, opened(container) as other:
        await client.handle("q")
        await client.consume(1)
        await client.send(b"one")
        assert await client.got() == (1, b"one")
        await other.handle("q")
        await other.consume()
        await client.say(spec.HandleFlow(handle_id=1, flow_pause=True))
        reply = await client.ask(spec.HandleUnget(handle_id=1, message_nbr=1, confirm_tag=2))
        assert reply["confirm_tag"] == 2
        assert await other.got() == (1, b"one")
        assert await client.code(spec.HandleUnget(handle_id=1, message_nbr=1)) == ("handle", 310)


def with_topic(**options: Any) -> Container:
    container = Container(strict=True, **options)
    container.add_topic("t")
    return container


async def test_topic_gives_each_message_to_every_subscription() -> None:
    container = with_topic()
    async with opened(container) as client, opened(container) as other:
        for each in (client, other):
            await each.handle("t", **TOPIC)
            await each.consume()
        await client.send(b"one")
        assert await client.got() == (1, b"one")
        assert await other.got() == (1, b"one")


async def test_no_local_leaves_out_what_the_connection_sent_itself() -> None:
    container = with_topic()
    async with opened(container) as client, opened(container) as other:
        await client.handle("t", **TOPIC)
        await client.consume(no_local=True)
        await other.handle("t", **TOPIC)
        await client.send(b"mine")
        await other.send(b"theirs")
        assert await client.got() == (1, b"theirs")


async def test_durable_subscription_gathers_while_its_client_is_away_until_it_is_cancelled() -> None:
    container = with_topic()
    async with opened(container) as sender:
        await sender.handle("t", **TOPIC)
        async with opened(container, client_name="ada") as client:
            await client.handle("t", **TOPIC)
            await client.consume(identifier="mine")
        await wait_all_tasks_blocked()
        await sender.send(b"one", confirm=1)
        await sender.hear()
        async with opened(container, client_name="ada") as client:
            await client.handle("t", **TOPIC)
            await client.consume(identifier="mine")
            assert await client.got() == (1, b"one")
            cancel = spec.HandleCancel(handle_id=1, identifier="mine", confirm_tag=2)
            assert (await client.ask(cancel))["confirm_tag"] == 2
            assert container.nodes["t"].subscriptions == {}  # type: ignore[attr-defined]
            assert await client.code(cancel) == ("handle", 404)


async def test_durable_subscription_keeps_its_selector_across_a_restart() -> None:
    store = MemoryStore()
    selector: dict[str, Any] = {"selector": b"colour=red", "mime_type": "text/x-amq-headers"}
    async with opened(with_topic(store=store), client_name="ada") as client:
        await client.handle("t", **TOPIC)
        await client.consume(identifier="mine", **selector)
        await wait_all_tasks_blocked()
    container = with_topic(store=store)
    async with opened(container) as sender:
        await sender.handle("t", **TOPIC)
        for colour in ("blue", "red"):
            await sender.send(colour.encode(), persistent=True, headers={"colour": colour}, confirm=1)
            await sender.hear()
        async with opened(container, client_name="ada") as client:
            await client.handle("t", **TOPIC)
            await client.consume(identifier="mine", **selector)
            assert (await client.got())[1] == b"red"
            assert await client.quiet()


@pytest.mark.parametrize(
    ("selector", "mime_type"),
    [(b"colour=red", "text/x-amq-headers"), (b"colour = 'red'", "text/x-amq-sql")],
)
async def test_selector_passes_what_it_names(selector: bytes, mime_type: str) -> None:
    async with opened(with_queues()) as client:
        await client.handle("q")
        await client.consume(selector=selector, mime_type=mime_type)
        await client.send(b"blue", headers={"colour": "blue"})
        await client.send(b"red", headers={"colour": "red"})
        assert await client.got() == (1, b"red")


@pytest.mark.parametrize(
    ("selector", "mime_type", "code"),
    [(b"=", "text/x-amq-headers", 502), (b"a b c", "text/x-amq-sql", 502), (b"x", "text/other", 540)],
)
async def test_selector_that_there_is_not_closes_the_handle(
    selector: bytes, mime_type: str, code: int
) -> None:
    async with opened(with_queues()) as client:
        await client.handle("q")
        command = spec.HandleConsume(handle_id=1, selector=selector, mime_type=mime_type)
        assert await client.code(command) == ("handle", code)
