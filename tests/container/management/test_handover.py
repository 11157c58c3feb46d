"""A queue that is held, and one whose links are sent to another place: in every protocol."""

from __future__ import annotations

import signal
import sqlite3
import sys
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from tests.container.clients import CLIENTS, Fields
from trio_amqp10 import amqp091, amqp_10_3, amqp_fast
from trio_amqp10.broker.nodes.queue import Queue
from trio_amqp10.broker.stores.base import StoreError
from trio_amqp10.container import Container
from trio_amqp10.container.management import ManagementError
from trio_amqp10.sasl import Identity

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

    from trio.testing import MockClock

    from trio_amqp10.broker.stores.base import Batch, Done

THERE = "amqp://b.example:5673/orders"


def container_with_orders() -> Container:
    container = Container()
    container.add_queue("orders")
    return container


def orders_of(container: Container) -> Queue:
    queue = container.nodes["orders"]
    assert isinstance(queue, Queue)
    return queue


async def test_held_queue_takes_and_gives_nothing_until_the_time_is_over(autojump_clock: MockClock) -> None:
    container = container_with_orders()
    await container.send("orders", "first")
    await container.management.hold("orders", 5)
    async with (
        container.connect() as conn,
        conn.open_sender("orders") as sender,
        conn.open_receiver("orders") as receiver,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(sender.send, "second")
        with pytest.raises(trio.TooSlowError):
            await receiver.receive(timeout=4)
        assert orders_of(container).is_held
        assert await container.management.move("orders", _added(container, "aside")) == 1
        assert await container.management.move("aside", _added(container, "back")) == 1
        begun = trio.current_time()
        delivery = await receiver.receive(timeout=60)
        assert (delivery.message.body, trio.current_time() - begun) == ("second", pytest.approx(1, abs=0.1))
        delivery.accept()
    assert not orders_of(container).is_held


def _added(container: Container, address: str) -> str:
    container.add_queue(address)
    return address


async def test_hold_is_prolonged_and_ended(autojump_clock: MockClock) -> None:
    container = container_with_orders()
    await container.send("orders", "x")
    async with container.connect() as conn, conn.open_receiver("orders", credit=0) as receiver:
        await container.management.hold("orders", 5)
        await trio.sleep(4)
        await container.management.hold("orders", 5)
        await trio.sleep(4)
        receiver.grant(1)
        assert await receiver.drain() == []
        receiver.grant(1)
        with trio.fail_after(0.5):
            await container.management.hold("orders", 0)
            assert (await receiver.receive()).message.body == "x"
    with pytest.raises(ManagementError, match="seconds=601"):
        await container.management.hold("orders", 601)


async def test_links_end_with_the_new_place_and_their_messages_come_back() -> None:
    container = container_with_orders()
    await container.send("orders", "x")
    async with container.connect() as conn:
        async with conn.open_sender("orders") as sender, conn.open_receiver("orders") as receiver:
            await receiver.receive()
            await container.management.redirect("orders", THERE)
            for waiting in (receiver.receive, partial(sender.send, "y")):
                with pytest.raises(amqp.LinkRedirectError) as sent_away:
                    await waiting()
                error = sent_away.value
                assert (error.network_host, error.port, error.address) == ("b.example", 5673, "orders")
        for opening in (conn.open_sender("orders"), conn.open_receiver("orders")):
            with pytest.raises(amqp.LinkRedirectError):
                async with opening:
                    pytest.fail("it is elsewhere")
        assert orders_of(container).available == 1
        await container.management.redirect("orders", None)
        async with conn.open_receiver("orders") as receiver:
            (await receiver.receive()).accept()


async def test_exchange_hands_nothing_to_a_redirected_queue() -> None:
    container = container_with_orders()
    container.add_broker()
    await container.management.bind("amq.fanout", "orders", "")
    await container.management.redirect("orders", THERE)
    async with container.connect() as conn, conn.open_sender("/exchanges/amq.fanout/k") as sender:
        with pytest.raises(amqp.DeliveryRejectedError, match="'orders' has moved: go to b"):
            await sender.send("x")
    assert len(orders_of(container)) == 0


@pytest.mark.parametrize("dialect", sorted(CLIENTS))
async def test_peers_of_every_protocol_are_refused_with_the_new_place(dialect: str) -> None:
    container = container_with_orders()
    await container.management.redirect("orders", THERE)
    dialects = {} if dialect == "1.0" else {"dialects": [dialect]}
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(container.serve, "amqp://127.0.0.1:0", **dialects))
        port = int(str(listeners[0].url).rpartition(":")[2])
        with pytest.raises(Exception, match=r"b\.example:5673"):
            async with CLIENTS[dialect].receive(port, "orders") as receiving:
                await receiving.next(keep=True)
        with pytest.raises(Exception):  # noqa: B017
            await CLIENTS[dialect].send(port, "orders", Fields(body=b"x"))
        assert len(orders_of(container)) == 0
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("url", ["amqp://b.example:5672", "b", "amqp:///orders"])
async def test_redirect_needs_a_whole_url(url: str) -> None:
    with pytest.raises(ManagementError):
        await container_with_orders().management.redirect("orders", url)


async def test_both_need_the_permission_to_manage() -> None:
    container = Container(authorise=amqp.Rules(("ada", "send receive", "*")))
    container.add_queue("orders")
    management = container.management.on_behalf_of(Identity("ada", "PLAIN"))
    for asked in (management.hold("orders", 1), management.redirect("orders", None)):
        with pytest.raises(ManagementError) as refused:
            await asked
        assert refused.value.reason == "forbidden"


async def test_operations_of_the_node() -> None:
    container = container_with_orders()
    container.add_management()

    async with container.connect() as conn, conn.open_requester("$management") as requester:

        async def ask(operation: str, **asked: object) -> int:
            properties = {"operation": operation, "type": "queue", "name": "orders", **asked}
            reply = await requester.request(amqp.Message(application_properties=properties), timeout=5)
            return int(reply.application_properties["statusCode"])

        assert await ask("HOLD", seconds=60) == 200
        assert orders_of(container).is_held
        assert await ask("HOLD") == 200
        assert not orders_of(container).is_held
        assert await ask("REDIRECT", target=THERE) == 200
        with pytest.raises(amqp.LinkRedirectError):
            await conn.open_sender("orders").__aenter__()
        assert await ask("REDIRECT") == 200
        async with conn.open_sender("orders"):
            pass


async def sent_away(container: Container, address: str = "orders") -> bool:
    """Whether a new link is sent to another place."""
    async with container.connect() as conn:
        try:
            async with conn.open_receiver(address):
                return False
        except amqp.LinkRedirectError as error:
            return (error.network_host, error.port) == ("b.example", 5673)


def made_by_the_program(container: Container) -> None:
    container.add_queue("orders", durable=True)


def declared(container: Container) -> None:
    container.add_broker().declare_queue("orders", durable=True)


def made_when_used(_container: Container) -> None: ...


@pytest.mark.parametrize("make", [made_by_the_program, declared, made_when_used])
async def test_redirect_is_there_again_after_a_restart(make: Callable[[Container], object]) -> None:
    store = amqp.MemoryStore()
    for life in range(4):
        container = Container(store=store)
        make(container)
        if life == 0:
            async with container.connect() as conn, conn.open_receiver("orders") as receiver:
                await container.management.redirect("orders", THERE)
                with pytest.raises(amqp.LinkRedirectError):
                    await receiver.receive()
        assert await sent_away(container) == (life < 3)
        if life == 2:
            await container.management.redirect("orders", None)
            assert not await sent_away(container)


async def test_redirect_of_a_queue_of_management_is_there_until_the_queue_is_deleted() -> None:
    store = amqp.MemoryStore()
    container = Container(store=store, strict=True)
    await container.management.create_queue("orders")
    await container.management.redirect("orders", THERE)
    container = Container(store=store, strict=True)
    assert await sent_away(container)
    assert (await container.management.queue("orders")).redirect == THERE
    await container.management.delete("orders")
    await container.management.create_queue("orders")
    assert not await sent_away(container)
    assert not await sent_away(Container(store=store, strict=True))


async def test_queue_that_comes_and_goes_stays_redirected() -> None:
    container = Container()
    async with container.connect() as conn, conn.open_sender("orders"):
        await container.management.redirect("orders", THERE)
    assert "orders" not in container.nodes
    assert await sent_away(container)
    await container.management.redirect("orders", None)
    assert not await sent_away(container)
    with pytest.raises(ManagementError, match="no queue 'orders'"):
        await container.management.redirect("orders", None)


@asynccontextmanager
async def channel_of(dialect: str, container: Container) -> AsyncGenerator[Any]:
    """Open a channel of a new connection to the container."""
    open_connection, scheme = {
        "0-9-1": (amqp091.open_connection, "amqp091"),
        "10.3": (amqp_10_3.open_connection, "amqp103"),
        "amqp-fast": (amqp_fast.open_connection, "amqp-fast"),
    }[dialect]
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(container.serve, "amqp://127.0.0.1:0", dialects=[dialect]))
        port = str(listeners[0].url).rpartition(":")[2]
        async with open_connection(f"{scheme}://127.0.0.1:{port}") as conn, conn.open_channel() as channel:
            yield channel
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("dialect", ["0-9-1", "10.3"])
@pytest.mark.parametrize("operation", ["delete", "purge", "get"])
@pytest.mark.parametrize("make", [made_by_the_program, declared])
async def test_peer_cannot_delete_or_empty_a_queue_that_has_moved(
    make: Callable[[Container], object], operation: str, dialect: str
) -> None:
    container = Container(store=amqp.MemoryStore())
    make(container)
    await container.send("orders", "x")
    await container.management.redirect("orders", THERE)
    async with channel_of(dialect, container) as channel:
        with pytest.raises(Exception, match="'orders' has moved: go to b"):
            await getattr(channel.queue("orders"), operation)()
    assert orders_of(container).available == 1
    assert await sent_away(container)
    assert await container.management.purge("orders") == 1
    await container.management.delete("orders")
    assert not await sent_away(container)


async def use_091(channel: Any, **options: bool) -> None:
    queue = await channel.declare_queue("orders", **options)
    async with queue.consume() as consumer:
        await consumer.receive()


async def use_fast(channel: Any, **options: bool) -> None:
    async with channel.open_handle("orders", **options) as handle:
        await handle.consume()
        await handle.receive()


@pytest.mark.parametrize(
    ("dialect", "use", "options"),
    [
        ("0-9-1", use_091, {"auto_delete": True}),
        ("0-9-1", use_091, {"exclusive": True}),
        ("10.3", use_091, {"exclusive": True}),
        ("amqp-fast", use_fast, {"temporary": True}),
    ],
)
async def test_queue_that_goes_by_itself_has_moved_when_it_is_made_again(
    dialect: str, use: Callable[..., Awaitable[None]], options: dict[str, bool]
) -> None:
    container = Container()

    async def redirect() -> None:
        await until(lambda: has_consumer(container))
        await container.management.redirect("orders", THERE)

    for life in range(2):
        with trio.fail_after(10):
            async with channel_of(dialect, container) as channel, trio.open_nursery() as nursery:
                if life == 0:
                    nursery.start_soon(redirect)
                # A cancellation in 0-9-1 has no room for a reason.
                with pytest.raises(
                    Exception, match=r"b\.example" if life or use is use_fast else "cancelled"
                ):
                    await use(channel, **options)
            await until(lambda life=life: life == 1 or "orders" not in container.nodes)
    assert container.redirects.get("orders") == THERE


def has_consumer(container: Container) -> bool:
    queue = container.nodes.get("orders")
    return isinstance(queue, Queue) and queue.consumer_count > 0


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await trio.lowlevel.checkpoint()


@pytest.mark.logs_errors
async def test_redirect_that_cannot_be_stored_is_refused_and_links_stay() -> None:
    class FullStore(amqp.MemoryStore):
        is_full = False

        def write(self, batch: Batch, done: Done) -> None:
            if self.is_full:
                done(StoreError("the disk is full"))
            else:
                super().write(batch, done)

    store = FullStore()
    container = Container(store=store)
    container.add_queue("orders")
    assert not await sent_away(container)
    store.is_full = True
    with pytest.raises(ManagementError, match="cannot store the redirect: the disk is full") as refused:
        await container.management.redirect("orders", THERE)
    assert refused.value.reason == "store-failed"
    assert not await sent_away(container)


@pytest.mark.logs_errors
async def test_damaged_redirect_is_logged_and_the_queue_is_here(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with amqp.SqliteStore(path) as store:
        container = Container(store=store)
        container.add_queue("orders")
        await container.management.redirect("orders", THERE)
    with sqlite3.connect(path) as copy:
        copy.execute("UPDATE redirects SET url = 'amqp://b.example'")
    copy.close()
    with amqp.SqliteStore(path) as store:
        container = Container(store=store)
        container.add_queue("orders")
        assert not await sent_away(container)


async def test_redirects_are_among_the_definitions() -> None:
    container = container_with_orders()
    container.add_broker().declare_queue("declared")
    for name in ("orders", "declared"):
        await container.management.redirect(name, THERE)
    found = await container.management.export_definitions()
    assert found["redirects"] == [{"name": name, "url": THERE} for name in ("orders", "declared")]
    other = Container()
    made = await other.management.import_definitions(found)
    assert (made.made["redirects"], made.left_out) == (2, ())
    assert await sent_away(other)
    assert await sent_away(other, "declared")


KILLED = """
import os, signal, sys, trio
from trio_amqp10 import Container, SqliteStore

async def main():
    container = Container(store=SqliteStore(sys.argv[1]))
    container.add_queue("orders")
    async with container.connect():
        await container.management.redirect("orders", "amqp://b.example:5673/orders")
        os.kill(os.getpid(), signal.SIGKILL)

trio.run(main)
"""


async def test_redirect_outlives_a_process_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "store"
    killed = await trio.run_process([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    with amqp.SqliteStore(path) as store:
        container = Container(store=store)
        container.add_queue("orders")
        assert await sent_away(container)
