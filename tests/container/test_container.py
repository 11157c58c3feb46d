"""Nodes of one's own, serving, finishing."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.errors import ConnectionClosedError
from trio_amqp10.amqp10.spec.messaging import Accepted, ExpiryPolicy, TerminusDurability
from trio_amqp10.broker.nodes.queue import Queue
from trio_amqp10.container import Container
from trio_amqp10.testing import open_container

from .helpers import bodies, fill


async def test_serve_reaches_the_nodes_over_tcp() -> None:
    container = Container("orders-service")
    container.add_queue("orders")
    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = await nursery.start(partial(container.serve, "amqp://127.0.0.1:0"))
        async with (
            amqp.open_connection(listeners[0].url) as one,
            amqp.open_connection(listeners[0].url) as other,
        ):
            assert one.remote.container_id == "orders-service"
            async with (
                one.open_sender("orders") as sender,
                other.open_receiver("orders", credit=50) as receiver,
            ):
                for number in range(300):
                    await sender.transmit(number)
                assert await bodies(receiver, 300) == list(range(300))
                await sender.flush()
        nursery.cancel_scope.cancel()


async def test_serve_cancelled_closes_connections_with_forced() -> None:
    container = Container()
    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = await nursery.start(partial(container.serve, "amqp://127.0.0.1:0"))
        async with amqp.open_connection(listeners[0].url) as conn:
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                with pytest.raises(ConnectionClosedError) as closed:
                    await conn.wait_closed()
                assert closed.value.condition == "amqp:connection:forced"


async def test_handle_serves_the_peer_of_a_connection_that_we_dialled() -> None:
    container = Container()
    container.add_queue("q")
    got: list[Any] = []
    done = trio.Event()

    async def visit(conn: amqp.Connection) -> None:
        await fill(conn, "q", "from the listener")
        done.set()

    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = await nursery.start(amqp.serve, visit, "amqp://127.0.0.1:0")
        async with amqp.open_connection(listeners[0].url) as conn:
            await container.handle(conn)
        await done.wait()
        nursery.cancel_scope.cancel()
    async with container.connect() as conn, conn.open_receiver("q") as receiver:
        got = await bodies(receiver, 1)
    assert got == ["from the listener"]


async def test_finish_takes_and_gives_nothing_new_and_waits_for_what_is_under_way(
    autojump_clock: MockClock,
) -> None:
    container = Container()
    container.add_queue("q")
    gate = trio.Event()

    @container.consumer("audit")
    async def audit(delivery: amqp.Delivery) -> None:
        await gate.wait()

    async with container.connect() as conn:
        await fill(conn, "q", *range(5))
        async with conn.open_sender("audit") as sender, conn.open_receiver("q", credit=0) as receiver:
            held = await receiver.receive()
            first = await sender.transmit("x")
            second = await sender.transmit("y")
            await wait_all_tasks_blocked()
            finished: list[bool] = []
            async with trio.open_nursery() as nursery:

                async def finish() -> None:
                    finished.append(await container.finish())

                nursery.start_soon(finish)
                await wait_all_tasks_blocked()
                receiver.grant(3)
                gate.set()
                assert await first.outcome() == Accepted()
                await wait_all_tasks_blocked()
                assert not finished
                held.accept()
            assert finished == [True]
            assert not second.settled
            assert receiver.buffered == 0
            async with container.connect() as late, late.open_receiver("q") as another:
                await wait_all_tasks_blocked()
                assert another.buffered == 0


async def test_finish_lets_nobody_new_in_and_leaves_who_is_connected() -> None:
    container = Container()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(container.serve, "amqp://127.0.0.1:0", "amqp://127.0.0.1:0")
        async with (  # it leaves without an answer to its last message
            amqp.open_connection(listeners[0].url, close_timeout=0.01) as conn,
            conn.open_sender("q") as sender,
        ):
            await sender.send("x")
            assert await container.finish()
            for listener in listeners:
                with pytest.raises(OSError, match="cannot connect to"):
                    await amqp.open_connection(listener.url).__aenter__()
            waiting = await sender.transmit("y")
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert waiting.state is None
        # Nobody is left, and nobody can come: serve has returned.
    late = Container()
    assert await late.finish()
    with trio.move_on_after(5) as patience:
        await late.serve("amqp://127.0.0.1:0")
    assert not patience.cancelled_caught


async def test_finish_gives_up_when_its_patience_is_over(autojump_clock: MockClock) -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", 1)
        async with conn.open_receiver("q") as receiver:
            await receiver.receive()
            start = trio.current_time()
            assert not await container.finish(3.0)
            assert trio.current_time() - start == pytest.approx(3.0)


async def test_node_whose_messages_cannot_be_restored_is_not_added(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    store = amqp.MemoryStore()
    container = Container(store=store, strict=True)
    container.add_queue("q", durable=True)
    topic = container.add_topic("t")
    lasting = amqp.Source(
        address="t", durable=TerminusDurability.UNSETTLED_STATE, expiry_policy=ExpiryPolicy.NEVER
    )
    async with (
        container.connect(container_id="c") as conn,
        conn.open_receiver("t", name="mine", source=lasting) as receiver,
    ):
        for address in ("q", "t"):
            for _ in range(3):
                await container.send(address, amqp.Message("x", durable=True, ttl=100_000))
        await receiver.detach()
    assert len(topic.subscriptions) == 1

    container = Container(store=store, strict=True)
    async with container.connect():
        before = container.watermark.octets
        with monkeypatch.context() as broken:
            offer, offered = Queue._offer, list[object]()

            def offer_one(queue: Queue, entry: Any) -> None:
                if offered:
                    raise ValueError("what it means is not known")
                offered.append(entry)
                offer(queue, entry)

            broken.setattr(Queue, "_offer", offer_one)
            for add, address in ((partial(container.add_queue, expires=10), "q"), (container.add_topic, "t")):
                offered.clear()
                with pytest.raises(amqp.StoreError, match="has a row that cannot be read"):
                    add(address)
                assert offered
        assert {"q", "t"}.isdisjoint(container.nodes)
        assert container.watermark.octets == before
        assert container.retaining_nodes == {}
        await trio.sleep(20)  # What was not added does not delete itself as unused, with its messages.
        container.add_queue("q")
        with pytest.raises(amqp.LocalProtocolError, match="exists already"):
            container.add_queue("q")
        await container.flush()

    container = Container(store=store, strict=True)
    queue, topic = container.add_queue("q", durable=True), container.add_topic("t")
    async with container.connect():
        [subscription] = topic.subscriptions.values()
        assert (len(queue), len(subscription)) == (3, 3)
