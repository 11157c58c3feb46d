"""Management lists the consumers of every protocol, and ends them and their connections with a reason."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10 import AmqpError, Container, amqp091, amqp_10_3, amqp_fast

from .protocols import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from trio_amqp10.container.management.status import LinkStatus

    Receive = Callable[[], Awaitable[object]]


@asynccontextmanager
async def consuming_10(port: int, *, dialect: str) -> AsyncGenerator[Receive]:
    url = f"amqp://127.0.0.1:{port}"
    async with (
        amqp.open_connection(url, dialect=dialect, sasl=amqp.sasl.Anonymous()) as connection,
        connection.open_receiver("q") as receiver,
    ):
        yield receiver.receive


@asynccontextmanager
async def consuming_091(port: int, *, module: Any, scheme: str) -> AsyncGenerator[Receive]:
    async with (
        module.open_connection(f"{scheme}://127.0.0.1:{port}") as connection,
        connection.open_channel() as channel,
        channel.queue("q").consume(prefetch=10) as consumer,
    ):
        yield consumer.receive


@asynccontextmanager
async def consuming_fast(port: int) -> AsyncGenerator[Receive]:
    async with (
        amqp_fast.open_connection(f"amqp-fast://127.0.0.1:{port}") as connection,
        connection.open_channel() as channel,
        channel.open_handle("q") as handle,
    ):
        await handle.consume(prefetch=10)
        yield handle.receive


CONSUMING: dict[str, Callable[[int], AbstractAsyncContextManager[Receive]]] = {
    "1.0": partial(consuming_10, dialect="1.0"),
    "0-9-1": partial(consuming_091, module=amqp091, scheme="amqp091"),
    "10.3": partial(consuming_091, module=amqp_10_3, scheme="amqp103"),
    "amqp-fast": consuming_fast,
    "1.0-draft-2010": partial(consuming_10, dialect="1.0-draft-2010"),
}


@asynccontextmanager
async def consuming(protocol: str) -> AsyncGenerator[tuple[Container, Receive]]:
    """A container with a consumer at queue ``q`` that has one message of it."""
    container = Container("contract")
    container.add_queue("q")
    if protocol == "10.3":
        container.add_broker()
    dialects = [] if protocol == "1.0" else [protocol]
    await container.send("q", b"first")
    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(container.serve, "amqp://127.0.0.1:0", dialects=dialects))
        async with CONSUMING[protocol](listener.port) as receive:
            await receive()
            yield container, receive
        nursery.cancel_scope.cancel()


async def consumers(container: Container) -> list[LinkStatus]:
    return [link async for link in container.management.links(role="sender")]


def test_every_protocol_has_an_entry() -> None:
    assert set(PROTOCOLS) == set(CONSUMING)


@pytest.mark.parametrize("protocol", CONSUMING)
async def test_consumer_is_listed_with_its_channel(protocol: str) -> None:
    async with consuming(protocol) as (container, _):
        (consumer,) = await consumers(container)
        assert consumer.address is not None
        assert consumer.address.rpartition("/")[2] == "q"
        connection = await container.management.connection(consumer.connection)
        assert connection.protocol == consumer.protocol
        (channel,) = [channel async for channel in container.management.channels()]
        assert (channel.connection, channel.consumers, channel.unsettled_out) == (consumer.connection, 1, 1)


@pytest.mark.parametrize("protocol", CONSUMING)
async def test_consumer_that_is_closed_is_told_and_gets_nothing_more(protocol: str) -> None:
    async with consuming(protocol) as (container, receive):
        (consumer,) = await consumers(container)
        await container.management.close_link(consumer.identity, "enough of it")
        with pytest.raises(AmqpError), trio.fail_after(10):
            await receive()
        await container.send("q", b"second")
        await wait_all_tasks_blocked()
        assert await consumers(container) == []
        assert (await container.management.queue("q")).ready >= 1
        assert (await container.management.connection(consumer.connection)).number == consumer.connection


@pytest.mark.parametrize("protocol", CONSUMING)
async def test_connection_that_is_closed_is_told_why(protocol: str) -> None:
    async with consuming(protocol) as (container, receive):
        (consumer,) = await consumers(container)
        await container.management.close_connection(consumer.connection, "enough of it")
        with pytest.raises(AmqpError, match="enough of it"), trio.fail_after(10):
            await receive()
        await wait_all_tasks_blocked()
        assert await consumers(container) == []
