"""The anonymous terminus, and messages from within the service."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies
from trio_amqp10.amqp10.peer.errors import DeliveryRejectedError, LinkDetachedError
from trio_amqp10.amqp10.spec.messaging import Accepted
from trio_amqp10.container import Container
from trio_amqp10.testing import open_container


async def test_anonymous_terminus_routes_each_message_by_its_to() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        async with conn.open_sender(None) as sender:
            assert sender.address is None
            for number in range(100):
                await sender.send(amqp.Message(number, to=f"q{number % 40}"))
            await sender.send(amqp.Message("x", to="q"))
        async with conn.open_receiver("q0") as receiver:
            assert await bodies(receiver, 3) == [0, 40, 80]
        async with conn.open_receiver("q") as receiver:
            assert await bodies(receiver, 1) == ["x"]


@pytest.mark.parametrize("to", [None, "unknown"])
async def test_anonymous_terminus_rejects_what_has_nowhere_to_go(to: str | None) -> None:
    async with (
        open_container(["q"], strict=True) as container,
        container.connect() as conn,
        conn.open_sender(None) as sender,
    ):
        with pytest.raises(DeliveryRejectedError) as rejected:
            await sender.send(amqp.Message("x", to=to))
        assert rejected.value.condition == "amqp:not-found"
        assert isinstance(await sender.send(amqp.Message("x", to="q")), Accepted)
        with pytest.raises(DeliveryRejectedError) as rejected:
            await sender.send(amqp.Message.from_payload(b"?"))
        assert rejected.value.condition == "amqp:decode-error"


async def test_anonymous_terminus_refuses_the_link_where_a_settled_message_has_nowhere_to_go() -> None:
    async with (
        open_container(strict=True) as container,
        container.connect() as conn,
        conn.open_sender(None, guarantee="at-most-once") as sender,
    ):
        await sender.send(amqp.Message("x", to="unknown"))
        await wait_all_tasks_blocked()
        with pytest.raises(LinkDetachedError) as detached:
            await sender.send("x")
        assert detached.value.condition == "amqp:not-found"


async def test_anonymous_terminus_rejects_for_a_node_that_takes_nothing_and_goes_on_when_one_is_gone() -> (
    None
):
    container = Container()

    @container.producer("ticks")
    async def ticks(link: amqp.Sender) -> None: ...

    async with container.connect() as conn, conn.open_sender(None) as sender:
        with pytest.raises(DeliveryRejectedError) as rejected:
            await sender.send(amqp.Message("x", to="ticks"))
        assert rejected.value.condition == "amqp:not-allowed"
        container.add_queue("q")
        await sender.send(amqp.Message("x", to="q"))
        container.remove_node("q")
        await sender.send(amqp.Message("y", to="q"))
        async with conn.open_receiver("q") as receiver:
            assert await bodies(receiver, 1) == ["y"]


async def test_row_64_anonymous_terminus_makes_its_peer_wait_for_a_node_that_is_slow() -> None:
    container = Container()
    gate = trio.Event()
    handled: list[Any] = []

    @container.consumer("slow")
    async def slow(delivery: amqp.Delivery) -> None:
        await gate.wait()
        handled.append(delivery.message.body)

    container.add_queue("q")
    async with container.connect() as conn, conn.open_sender(None) as sender:
        sent = 0
        with pytest.raises(trio.WouldBlock):
            for _ in range(10_000):
                await wait_all_tasks_blocked()
                sender.send_nowait(amqp.Message(sent, to="slow"))
                sent += 1
        assert 100 < sent <= 301
        last = sent
        gate.set()
        await sender.flush()
        await sender.send(amqp.Message("quick", to="q"))
        assert handled == list(range(last))


async def test_anonymous_terminus_gives_back_what_a_node_had_not_taken_when_it_goes() -> None:
    container = Container()
    container.add_queue("q", max_length=1)
    async with container.connect() as conn, conn.open_sender(None) as sender:
        deliveries = [await sender.transmit(amqp.Message(n, to="q")) for n in range(2)]
        await wait_all_tasks_blocked()
        assert deliveries[0].state == Accepted()
        container.remove_node("q")
        assert type(await deliveries[1].outcome()).__name__ == "Released"
    async with container.connect() as conn:
        sender = await conn.open_sender(None).__aenter__()
        container.add_queue("q", max_length=1)
        for n in range(2):
            await sender.transmit(amqp.Message(n, to="q"))
        await wait_all_tasks_blocked()
        conn.pump.cancel()
    await wait_all_tasks_blocked()
    assert not container.nodes["q"].inlets
