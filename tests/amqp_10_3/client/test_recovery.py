"""What comes back after a loss: channels with their tickets, declarations, consumers; what a program publishes again."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.container.served import Redialled, redialled
from trio_amqp10 import amqp_10_3
from trio_amqp10.amqp091.client import DeliveryLostError
from trio_amqp10.amqp_10_3.server.protocol import Amqp103
from trio_amqp10.container import Container

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

URL = "amqp103://guest:guest@server"


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Redialled]:
    """A container with a queue ``q``; every dial reaches it."""
    container = Container()
    container.add_queue("q")
    async with redialled(Amqp103(container), monkeypatch) as made:
        yield made


@asynccontextmanager
async def connected(**options: Any) -> AsyncGenerator[amqp_10_3.Connection]:
    async with amqp_10_3.open_connection(URL, reconnect=True, **options) as connection:
        yield connection


async def test_connection_comes_back_with_what_was_declared(
    server: Redialled, autojump_clock: MockClock
) -> None:
    async with connected() as connection, connection.open_channel() as channel:
        await channel.declare_exchange("prices", "fanout")
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind("prices")
        first = queue.name
        changes = connection.changes()
        await server.sever()
        await channel.publish(
            "prices", "", b"lost or not"
        )  # it waits, or is written to a transport that is gone
        assert [(await anext(changes)).kind for _ in range(2)] == ["lost", "restored"]
        assert (queue.renamed, queue.name != first) == (first, True)
        assert channel.ticket
        await channel.publish("prices", "", b"tea")
        bodies = set()
        while (got := await queue.get()) is not None:
            bodies.add(got.body)
        assert b"tea" in bodies
        assert connection.statistics()["transports"] == 2


async def test_consumer_goes_on_after_a_loss(server: Redialled, autojump_clock: MockClock) -> None:
    async with connected() as connection, connection.open_channel() as channel:
        async with connection.open_transaction() as out:
            for body in (b"1", b"2", b"3"):
                await out.publish("", "q", body)
        async with channel.queue("q").consume(prefetch=2) as consumer:
            old = await consumer.receive()
            await server.sever()
            await wait_all_tasks_blocked()
            with pytest.raises(DeliveryLostError):
                old.ack()
            found = []
            for _ in range(3):
                delivery = await consumer.receive()
                found.append((delivery.body, delivery.redelivered))
                delivery.ack()
            assert found == [(b"1", True), (b"2", True), (b"3", False)]


async def test_call_that_was_under_way_is_sent_again_with_the_ticket_of_now(
    server: Redialled, autojump_clock: MockClock
) -> None:
    async with connected() as connection, connection.open_channel(), connection.open_channel() as channel:
        server.accepts = False
        await server.sever()
        made: list[str] = []

        async def declare() -> None:
            made.append((await channel.declare_queue("new")).name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(declare)
            await trio.sleep(50)
            assert not made
            server.accepts = True
        assert made == ["new"]
        assert await channel.queue("new").get() is None


async def test_loss_while_a_channel_asks_for_its_ticket_is_tried_again(
    server: Redialled, autojump_clock: MockClock
) -> None:
    async with connected() as connection:
        await server.sever()
        server.cuts = [(None, 400), (None, 420), (None, 440)]
        async with connection.open_channel() as channel:
            assert channel.ticket
            assert await channel.queue("q").get() is None


async def test_channel_with_an_exclusive_ticket_does_not_come_back(
    server: Redialled, autojump_clock: MockClock
) -> None:
    async with connected() as connection:
        async with connection.open_channel(exclusive=True) as channel:
            await server.sever()
            with pytest.raises(amqp_10_3.ConnectionClosedError):
                await channel.queue("q").get()
        async with connection.open_channel() as channel:
            await channel.request_access(exclusive=True)
            await server.sever()
            with pytest.raises(amqp_10_3.ConnectionClosedError):
                await channel.queue("q").get()
        async with connection.open_channel() as channel:
            assert await channel.queue("q").get() is None


async def test_server_without_tickets_is_asked_for_none_again(
    server: Redialled, autojump_clock: MockClock
) -> None:
    server.dialect = Amqp103(Container(), tickets=False)
    async with connected() as connection, connection.open_channel(realm=None) as channel:
        await channel.declare_queue("mine", exclusive=True)
        await server.sever()
        await trio.sleep(5)
        assert await channel.queue("mine").get() is None
        assert (channel.ticket, connection.access) == (0, None)


async def test_redirect_is_the_end(server: Redialled, autojump_clock: MockClock) -> None:
    async with connected() as connection:
        server.dialect = Amqp103(Container(), redirect=lambda _host, _insists: ("elsewhere:1", ""))
        await server.sever()
        with pytest.raises(amqp_10_3.RedirectedError, match="elsewhere"):
            await connection.wait_closed()
    with pytest.raises(amqp_10_3.RedirectedError):
        async with connected():
            pass


async def test_nothing_comes_back_without_being_asked_for(
    server: Redialled, autojump_clock: MockClock
) -> None:
    async with amqp_10_3.open_connection(URL) as connection:
        await server.sever()
        with pytest.raises(amqp_10_3.ConnectionClosedError):
            await connection.wait_closed()
        assert [each async for each in connection.changes()] == []


async def publish_all(connection: amqp_10_3.Connection, batches: list[list[bytes]]) -> list[list[bytes]]:
    """Publish each batch in a transaction, again for as long as it is not known to be committed; those in doubt."""
    doubtful = []
    for batch in batches:
        while True:
            try:
                async with connection.open_transaction() as out:
                    for body in batch:
                        await out.publish("", "q", body)
            except amqp_10_3.TransactionInDoubtError:
                doubtful.append(batch)
            except amqp_10_3.ConnectionClosedError:
                pass  # before the commit: nothing of it has happened
            else:
                break
    return doubtful


@pytest.mark.parametrize("reading", [False, True], ids=["cut while writing", "cut while reading"])
@pytest.mark.parametrize("step", range(3))
async def test_cut_in_the_middle_of_transactions_loses_nothing(
    server: Redialled, autojump_clock: MockClock, reading: bool, step: int
) -> None:
    batches = [[b"%d-%d" % (batch, number) for number in range(5)] for batch in range(6)]
    places = [(350 if reading else 500) + 37 * step + 61 * n for n in range(12)]
    server.cuts = [(None, place) if reading else (place, None) for place in places]
    async with connected() as connection:
        doubtful = await publish_all(connection, batches)
    assert len(server.streams) > 1
    server.cuts.clear()
    counts: dict[bytes, int] = {}
    async with connected() as connection, connection.open_channel() as channel:
        while (got := await channel.queue("q").get(no_ack=True)) is not None:
            counts[got.body] = counts.get(got.body, 0) + 1
    assert set(counts) == {body for batch in batches for body in batch}
    for batch in batches:
        assert len({counts[body] for body in batch}) == 1
        assert 1 <= counts[batch[0]] <= 1 + doubtful.count(batch)
