"""Consumers and producers, through real links."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.errors import DeliveryRejectedError, LinkRefusedError
from trio_amqp10.amqp10.spec.messaging import Accepted
from trio_amqp10.container import Container
from trio_amqp10.core.errors import LocalProtocolError

from .helpers import fill

SECRET = "the password is swordfish"


async def test_consumer_gets_deliveries_in_order_and_accepts_them() -> None:
    container = Container()
    got: list[Any] = []

    @container.consumer("audit")
    async def audit(delivery: amqp.Delivery) -> None:
        await trio.lowlevel.checkpoint()
        got.append(delivery.message.body)

    async with container.connect() as conn:
        await fill(conn, "audit", *range(20))
        async with conn.open_sender("audit") as sender:
            deliveries = [await sender.transmit(number) for number in range(20, 320)]
            await sender.flush()
            assert {type(each.state) for each in deliveries} == {Accepted}
    assert got == list(range(320))


@pytest.mark.logs_errors
async def test_consumer_may_settle_in_another_way() -> None:
    container = Container()

    @container.consumer("audit")
    async def audit(delivery: amqp.Delivery) -> None:
        if delivery.message.body == "accept":
            delivery.accept()
        else:
            delivery.reject("app:no", "thanks")
            if delivery.message.body == "both":
                raise ValueError(SECRET)

    async with container.connect() as conn, conn.open_sender("audit") as sender:
        assert await sender.send("accept") == Accepted()
        for body in ("no", "both"):
            with pytest.raises(DeliveryRejectedError) as rejected:
                await sender.send(body)
            assert rejected.value.condition == "app:no"


@pytest.mark.logs_errors
async def test_row_67_consumer_that_raises_rejects_that_delivery_and_nothing_else() -> None:
    container = Container()

    @container.consumer("audit")
    async def audit(delivery: amqp.Delivery) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 0)
            if delivery.message.body == "bad":
                raise ValueError(SECRET)

    async with (
        container.connect() as conn,
        container.connect() as other,
        conn.open_sender("audit") as sender,
        other.open_sender("audit") as bystander,
    ):
        for _ in range(2):
            with pytest.raises(DeliveryRejectedError) as rejected:
                await sender.send("bad")
            assert rejected.value.condition == "amqp:internal-error"
            assert SECRET not in str(rejected.value)
            await bystander.send("good")
            await sender.send("good")


async def test_handler_says_why_it_refuses(caplog: pytest.LogCaptureFixture) -> None:
    container = Container()

    @container.consumer("audit")
    async def audit(delivery: amqp.Delivery) -> None:
        raise amqp.RefusedError("app:bad", f"not {delivery.message.body}")

    @container.function("upper")
    async def upper(message: amqp.Message) -> str:
        raise amqp.RefusedError("app:bad", f"not {message.body}")

    async with container.connect() as conn:
        async with conn.open_sender("audit") as sender:
            with pytest.raises(DeliveryRejectedError) as rejected:
                await sender.send("tea")
        async with conn.open_requester("upper") as requester:
            with pytest.raises(DeliveryRejectedError) as refused:
                await requester.request("tea")
    for said in (rejected.value, refused.value):
        assert said.condition == "app:bad"
        assert "not tea" in str(said)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_row_64_consumer_that_is_slow_makes_its_peer_wait() -> None:
    container = Container()
    gate = trio.Event()

    @container.consumer("audit")
    async def audit(delivery: amqp.Delivery) -> None:
        await gate.wait()

    async with container.connect() as conn, conn.open_sender("audit") as sender:
        sent = 0
        with pytest.raises(trio.WouldBlock):
            for _ in range(10_000):
                await wait_all_tasks_blocked()
                sender.send_nowait("x")
                sent += 1
        assert 100 <= sent <= 102
        gate.set()
        await sender.flush()


async def test_consumer_is_not_cancelled_when_its_peer_goes() -> None:
    container = Container()
    gate = trio.Event()
    done: list[Any] = []

    @container.consumer("audit")
    async def audit(delivery: amqp.Delivery) -> None:
        await gate.wait()
        done.append(delivery.message.body)

    async with trio.open_nursery() as nursery:

        async def visit() -> None:
            async with container.connect() as conn:
                sender = await conn.open_sender("audit").__aenter__()
                await sender.transmit("x")
                await wait_all_tasks_blocked()
                conn.pump.cancel()

        nursery.start_soon(visit)
        await wait_all_tasks_blocked()
        gate.set()
    assert done == ["x"]


async def test_connect_cancels_handlers_that_outlast_the_patience(autojump_clock: MockClock) -> None:
    container = Container()

    @container.consumer("audit")
    async def audit(delivery: amqp.Delivery) -> None:
        await trio.sleep_forever()

    start = trio.current_time()
    async with container.connect(close_timeout=2.0) as conn, conn.open_sender("audit") as sender:
        await sender.transmit("x")
        await wait_all_tasks_blocked()
    assert 1.9 < trio.current_time() - start < 6.1
    with pytest.raises(KeyError):
        async with container.connect() as conn, conn.open_sender("audit") as sender:
            await sender.transmit("x")
            await wait_all_tasks_blocked()
            start = trio.current_time()
            raise KeyError
    assert trio.current_time() == start


async def test_nodes_refuse_links_in_the_wrong_direction() -> None:
    container = Container()

    @container.producer("ticks")
    async def ticks(link: amqp.Sender) -> None: ...

    @container.consumer("audit")
    async def audit(delivery: amqp.Delivery) -> None: ...

    async with container.connect() as conn:
        with pytest.raises(LinkRefusedError) as refused:
            async with conn.open_sender("ticks"):
                pass
        assert refused.value.condition == "amqp:not-allowed"
        with pytest.raises(LinkRefusedError) as refused:
            async with conn.open_receiver("audit"):
                pass
        assert refused.value.condition == "amqp:not-allowed"
    with pytest.raises(LocalProtocolError):
        container.consumer("ticks")(audit)
