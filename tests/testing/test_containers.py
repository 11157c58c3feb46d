"""A container to test against."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.errors import LinkRefusedError
from trio_amqp10.container import Container
from trio_amqp10.testing import open_container
from trio_amqp10.testing.plugin import amqp_container

if TYPE_CHECKING:
    from trio.testing import MockClock

__all__ = ["amqp_container"]


async def test_open_container_has_the_queues_that_were_asked_for() -> None:
    async with (
        open_container(queues=["orders"], name="box", strict=True) as container,
        container.connect() as conn,
    ):
        assert conn.remote.container_id == "box"
        async with conn.open_sender("orders") as sender:
            await sender.send({"id": 1})
        async with conn.open_receiver("orders") as receiver:
            delivery = await receiver.receive()
            assert delivery.message.body == {"id": 1}
            delivery.accept()
        with pytest.raises(LinkRefusedError) as refused:
            async with conn.open_sender("others"):
                pass
        assert refused.value.condition == "amqp:not-found"


async def test_open_container_has_the_wall_clock_of_the_test(autojump_clock: MockClock) -> None:
    async with (
        open_container(["orders"], wall_clock=lambda: 1000.0) as container,
        container.connect() as conn,
    ):
        async with conn.open_sender("orders") as sender:
            await sender.send(amqp.Message("late", absolute_expiry_time=999_000))
            await sender.send(amqp.Message("in time", absolute_expiry_time=1_001_000))
        async with conn.open_receiver("orders") as receiver:
            assert (await receiver.receive()).message.body == "in time"


async def test_fixture_amqp_container_is_a_container_to_connect_to(amqp_container: Container) -> None:
    amqp_container.add_queue("orders")
    async with amqp_container.connect() as conn, conn.open_sender("orders") as sender:
        await sender.send("one")
    assert len(amqp_container.nodes["orders"]) == 1  # type: ignore[arg-type]


async def test_open_container_lets_an_exception_of_the_block_out_as_itself() -> None:
    with pytest.raises(KeyError):
        async with open_container(["orders"]) as container, container.connect():
            raise KeyError


async def test_connect_cancelled_in_the_block_leaves_no_task_behind(autojump_clock: MockClock) -> None:
    container = Container()
    with trio.move_on_after(1) as scope:
        async with container.connect() as conn, conn.open_receiver("orders") as receiver:
            await receiver.receive()
    assert scope.cancelled_caught
    assert "connections=0" in repr(container)
    assert isinstance(conn, amqp.Connection)


async def test_connect_raises_what_entering_raises_and_leaves_nothing(autojump_clock: MockClock) -> None:
    container = Container()
    with pytest.raises(amqp_error()):
        async with container.connect(max_frame_size=1):
            pass
    with trio.CancelScope() as scope:
        scope.cancel()
        async with container.connect():
            raise AssertionError
    assert "connections=0" in repr(container)


def amqp_error() -> type[Exception]:
    from trio_amqp10.core.errors import LocalProtocolError

    return LocalProtocolError


async def test_open_container_stands_up_in_under_a_millisecond() -> None:
    """The best of many, in processor time: what it costs, whatever else this machine does."""
    took: list[float] = []
    for _ in range(50):
        began = time.process_time()
        async with open_container(queues=["orders"]):
            took.append(time.process_time() - began)
    assert min(took) < 0.001


async def test_first_test_of_a_service_takes_under_50_milliseconds() -> None:
    took: list[float] = []
    for _ in range(5):
        began = time.process_time()
        container = Container()

        @container.function("price")
        async def price(request: amqp.Message) -> float:
            return {"tea": 3.5, "coffee": 4.0}[request.body]

        async with container.connect() as connection, connection.open_requester("price") as prices:
            assert (await prices.request("coffee")).body == 4.0
        took.append(time.process_time() - began)
    assert min(took) < 0.05
