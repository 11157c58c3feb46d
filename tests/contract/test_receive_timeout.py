"""Each client's receiver waits for at most ``timeout`` seconds, and loses nothing when it gives up."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091, amqp_10_3, amqp_fast

from .protocols import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


@asynccontextmanager
async def receiver_10(port: int) -> AsyncGenerator[Any]:
    async with (
        amqp.open_connection(f"amqp://127.0.0.1:{port}") as conn,
        conn.open_receiver("tea") as receiver,
    ):
        yield receiver


@asynccontextmanager
async def consumer(module: Any, scheme: str, port: int) -> AsyncGenerator[Any]:
    async with (
        module.open_connection(f"{scheme}://127.0.0.1:{port}") as conn,
        conn.open_channel() as channel,
        channel.queue("tea").consume() as consumer,
    ):
        yield consumer


@asynccontextmanager
async def handle_fast(port: int) -> AsyncGenerator[Any]:
    async with (
        amqp_fast.open_connection(f"amqp-fast://127.0.0.1:{port}") as conn,
        conn.open_channel() as channel,
        channel.open_handle("tea") as handle,
    ):
        await handle.consume()
        yield handle


RECEIVERS = {
    "1.0": receiver_10,
    "0-9-1": partial(consumer, amqp091, "amqp091"),
    "10.3": partial(consumer, amqp_10_3, "amqp103"),
    "amqp-fast": handle_fast,
}


@pytest.mark.parametrize("protocol", RECEIVERS)
async def test_receive_gives_up_after_its_timeout_and_loses_nothing(protocol: str) -> None:
    container = amqp.Container("shop")
    container.add_queue("tea")
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(container.serve, "amqp://127.0.0.1:0", dialects="all"))
        async with RECEIVERS[protocol](listener.port) as receiver:
            with pytest.raises(trio.TooSlowError, match=r"^no message from 'tea' within 0\.01 s$") as late:
                await receiver.receive(timeout=0.01)
            assert isinstance(late.value, amqp.AmqpError)
            assert isinstance(late.value, TimeoutError)
            assert isinstance(late.value, amqp.TimedOutError)
            assert late.value.sent is None
            await container.send("tea", b"one")
            assert await receiver.receive(timeout=20)
        nursery.cancel_scope.cancel()


def test_every_client_has_a_receiver_here() -> None:
    assert PROTOCOLS.keys() - RECEIVERS.keys() == {"1.0-draft-2010"}  # it has the client of 1.0
