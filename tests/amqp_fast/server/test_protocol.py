"""AMQP/Fast as a dialect of a container: virtual paths, names of clients, and permissions."""

from __future__ import annotations

from functools import partial

import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.server.protocol import AmqpFast
from trio_amqp10.container import Container, Quotas

from .script import Client, dialled, negotiated, opened


async def test_virtual_path_that_there_is_not_is_refused() -> None:
    async with dialled(Container()) as client:
        await negotiated(client)
        assert await client.code(spec.ConnectionOpen(virtual_path="/other")) == ("connection", 402)


async def test_client_name_is_active_once_at_a_time() -> None:
    container = Container()
    dialect = AmqpFast(container)
    async with opened(container, dialect=dialect, client_name="ada"):
        async with dialled(container, dialect=dialect) as second:
            await negotiated(second)
            opening = spec.ConnectionOpen(virtual_path="/", client_name="ada")
            assert await second.code(opening) == ("connection", 320)
        async with opened(container, dialect=dialect), opened(container, dialect=dialect) as nameless:
            assert await nameless.quiet()
    async with opened(container, dialect=dialect, client_name="ada") as again:
        assert await again.quiet()


async def test_connection_that_is_not_permitted_is_refused() -> None:
    async with dialled(Container(authorise=lambda access: access.action != "open")) as client:
        await negotiated(client)
        assert await client.code(spec.ConnectionOpen()) == ("connection", 403)


async def test_quota_of_connections_is_held() -> None:
    container = Container(quotas=Quotas(connections=1))
    async with opened(container), dialled(container) as client:
        await negotiated(client)
        assert (await client.code(spec.ConnectionOpen()))[0] == "connection"


async def test_container_serves_the_dialect_by_name_beside_amqp_1_0() -> None:
    container = Container()
    container.add_queue("q")
    async with trio.open_nursery() as nursery:
        serve = partial(container.serve, "amqp://127.0.0.1:0", dialects=["amqp-fast"])
        (listener,) = await nursery.start(serve)
        async with amqp.open_connection(listener.url) as connection:
            async with connection.open_sender("q") as sender:
                await sender.send("from 1.0")
            stream = await trio.open_tcp_stream("127.0.0.1", listener.port)
            client = Client(stream)
            await client.open()
            await client.handle("q")
            await client.consume()
            assert (await client.got())[1] == b"from 1.0"
            await stream.aclose()
        nursery.cancel_scope.cancel()
