"""The client of 0-9-1 against a container: what its tests show against RabbitMQ, as far as a container has it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from tests.amqp10.peer.authority import authority
from trio_amqp10 import amqp091
from trio_amqp10.container import Container

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SECONDS = 60


@asynccontextmanager
async def served(
    container: Container,
    url: str = "amqp://127.0.0.1:0",
    scope: trio.CancelScope | None = None,
    **options: Any,
) -> AsyncIterator[str]:
    """The URL at which a container listens; leaving cancels it, or ``scope`` does, and connections are closed with 320."""
    scope = scope or trio.CancelScope()

    async def serve(task_status: Any) -> None:
        with scope:
            await container.serve(url, dialects=["0-9-1"], task_status=task_status, **options)

    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(serve)
        yield listener.url
        scope.cancel()


async def test_nothing_is_lost_in_three_restarts(tmp_path: Path) -> None:
    sent: set[bytes] = set()
    seen: set[bytes] = set()
    done = trio.Event()

    async def publish(connection: amqp091.Connection) -> None:
        async with connection.open_publisher(window=50) as out:
            while not done.is_set():
                sent.add(body := b"%d" % len(sent))
                await out.transmit("", "orders", body, delivery_mode=2)
                await trio.sleep(0.002)

    async def consume(connection: amqp091.Connection) -> None:
        async with (
            connection.open_channel(prefetch=20) as channel,
            channel.queue("orders").consume() as consumer,
        ):
            while not (done.is_set() and sent <= seen):
                with trio.move_on_after(0.2):
                    delivery = await consumer.receive()
                    seen.add(delivery.body)
                    if not delivery.settled:  # otherwise it came before the loss, and comes again
                        delivery.ack()

    @asynccontextmanager
    async def stored(url: str = "amqp://127.0.0.1:0") -> AsyncIterator[str]:
        store = amqp.SqliteStore(tmp_path / "store.db")
        try:
            async with served(Container(store=store), url) as where:
                yield where
        finally:
            store.close()

    backoff = amqp091.Backoff(initial=0.02, maximum=0.2)
    with trio.fail_after(SECONDS):
        async with (
            stored() as url,
            amqp091.open_connection(url) as connection,
            connection.open_channel() as channel,
        ):
            await channel.declare_queue("orders", durable=True)
        async with trio.open_nursery() as nursery:
            connect = partial(amqp091.open_connection, url, reconnect=backoff)

            async def run(work: Any) -> None:
                async with connect() as connection:
                    await work(connection)
                    assert connection.statistics()["transports"] >= 4

            for work in (publish, consume):
                nursery.start_soon(run, work)
            for number in range(4):
                async with stored(url):
                    before = len(seen)
                    while len(seen) < before + 30:  # noqa: ASYNC110 - the consumer does not stop for this
                        await trio.sleep(0.01)
                    if number == 3:
                        done.set()
                        while nursery.child_tasks:  # noqa: ASYNC110 - both end by themselves
                            await trio.sleep(0.01)
    assert sent <= seen, f"{len(sent - seen)} of {len(sent)} are lost"


async def test_quorum_queue_counts_and_limits_deliveries() -> None:
    arguments = {"x-queue-type": "quorum", "x-delivery-limit": 2}
    with trio.fail_after(SECONDS):
        async with (
            served(Container()) as url,
            amqp091.open_connection(url) as connection,
            connection.open_publisher() as out,
        ):
            queue = await out.declare_queue("q", durable=True, arguments=arguments)
            await out.publish("", queue.name, b"1")
            counts = []
            async with queue.consume() as consumer:
                for _ in range(3):
                    delivery = await consumer.receive()
                    counts.append(delivery.headers.get("x-delivery-count", 0))
                    assert delivery.to_message().delivery_count == counts[-1]
                    delivery.nack()
            assert counts == [0, 1, 2]
            assert await queue.get() is None


async def test_connection_that_the_container_ends_reports_320() -> None:
    with trio.fail_after(SECONDS):
        scope = trio.CancelScope()
        async with served(Container(), scope=scope) as url, amqp091.open_connection(url) as connection:
            scope.cancel()
            with pytest.raises(amqp091.ConnectionClosedError) as caught:
                await connection.wait_closed()
        assert caught.value.code == 320
        assert caught.value.may_retry


async def test_client_logs_in_by_a_certificate() -> None:
    names = authority().issue("127.0.0.1")
    context = amqp.tls.server_context(names.file, client_cafile=authority("clients").cafile)
    ann = authority("clients").issue(common_name="ann").file
    container = Container()
    with trio.fail_after(SECONDS):
        async with (
            served(
                container,
                "amqps://127.0.0.1:0",
                ssl_context=context,
                sasl=amqp.sasl.Server(
                    mechanisms=[amqp.sasl.ExternalServer(lambda certificate: certificate.common_name)]
                ),
            ) as url,
            amqp091.open_connection(url, cafile=authority().cafile, certfile=ann) as connection,
            connection.open_channel() as channel,
        ):
            queue = await channel.declare_queue(exclusive=True)
            assert await queue.get() is None
            (peer,) = container.connected
            assert str(peer.identity.name) == "ann"
