"""Nodes of one's own, serving, finishing."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, two
from trio_amqp10.container import Arrival, Container, Inlet, Lease, Node, Outlet
from trio_amqp10.peer.errors import (
    ConnectionClosedError,
    LinkDetachedError,
)
from trio_amqp10.spec.messaging import (
    Accepted,
    Target,
)
from trio_amqp10.testing import open_container

if TYPE_CHECKING:
    from collections.abc import Mapping


class Echo(Node):
    """Gives each message back to whoever listens, and fails when told to."""

    accepts_senders = accepts_receivers = True

    def __init__(self) -> None:
        super().__init__("echo")
        self.kept: list[Arrival] = []

    def on_arrivals(self, inlet: Inlet) -> None:
        while (arrival := inlet.take()) is not None:
            if arrival.message.body == "fail":
                raise ValueError
            self.kept.append(arrival)
        for outlet in self.outlets:
            self.on_demand(outlet)

    def on_demand(self, outlet: Outlet) -> None:
        while self.kept and outlet.ready():
            self.give_one(outlet)

    def give_one(self, outlet: Outlet) -> None:
        arrival = self.kept.pop(0)
        outlet.give(arrival.message, Mirror(arrival))


class Mirror(Lease):
    """Answers an arrival with what became of it further on."""

    def __init__(self, arrival: Arrival) -> None:
        self.arrival = arrival

    def accepted(self) -> None:
        if self.arrival.message.body == "fail later":
            raise ValueError
        self.arrival.accept()

    def rejected(
        self,
        condition: str | None,
        description: str | None,
        info: Mapping[Any, Any] | None = None,
    ) -> None:
        self.arrival.reject(condition or "app:none", description)

    def released(self) -> None:
        self.arrival.release()

    def modified(self, **changes: Any) -> None:
        self.arrival.modify(delivery_failed=changes["failed"])

    def lost(self) -> None:
        self.arrival.release()


async def test_node_of_ones_own_hands_outcomes_through() -> None:
    container = Container()
    container.add_node(Echo())
    async with (
        two(container) as (one, other),
        one.open_sender("echo") as sender,
        other.open_receiver("echo") as receiver,
    ):
        delivery = await sender.transmit("x")
        (await receiver.receive()).reject("app:why", "because")
        outcome = await delivery.outcome()
        assert str(outcome.error.condition) == "app:why"  # type: ignore[union-attr]
        delivery = await sender.transmit("y")
        await receiver.receive()
        await receiver.aclose()
        assert type(await delivery.outcome()).__name__ == "Released"


async def test_node_that_hands_an_outcome_to_a_link_that_is_gone_makes_no_fuss(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    container = Container()
    container.add_node(Echo())
    async with two(container) as (one, other), other.open_receiver("echo") as receiver:
        async with one.open_sender("echo") as sender:
            await sender.transmit("x")
            delivery = await receiver.receive()
        await wait_all_tasks_blocked()
        delivery.accept()
        await wait_all_tasks_blocked()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.logs_errors
async def test_row_67_node_that_raises_loses_that_link_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    container = Container()
    container.add_node(Echo())
    async with (
        two(container) as (one, other),
        one.open_sender("echo") as sender,
        other.open_receiver("echo") as receiver,
    ):
        await sender.transmit("fail later")
        (await receiver.receive()).accept()
        await wait_all_tasks_blocked()
        await sender.transmit("fail")
        await wait_all_tasks_blocked()
        with pytest.raises(LinkDetachedError) as detached:
            await sender.transmit("x")
        assert detached.value.condition == "amqp:internal-error"
        async with other.open_sender("echo") as another:
            await another.transmit("good")
            assert await bodies(receiver, 1) == ["good"]
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 2


class Broken(Node):
    """Fails wherever it can."""

    accepts_senders = accepts_receivers = True

    def add_inlet(self, inlet: Inlet) -> None:
        raise ValueError

    def add_outlet(self, outlet: Outlet) -> None:
        if outlet.target is not None:
            raise ValueError

    def on_demand(self, outlet: Outlet) -> None:
        raise ValueError


@pytest.mark.logs_errors
async def test_row_67_node_that_raises_when_a_link_comes_refuses_it() -> None:
    container = Container()
    container.add_node(Broken("b"))
    async with container.connect() as conn:
        with pytest.raises(LinkDetachedError) as refused:
            async with conn.open_sender("b") as sender:
                await sender.send("x")
        assert refused.value.condition == "amqp:internal-error"
        with pytest.raises(LinkDetachedError) as refused:
            async with conn.open_receiver("b") as receiver:
                await receiver.receive()
        assert refused.value.condition == "amqp:internal-error"
        with pytest.raises(LinkDetachedError) as refused:
            async with conn.open_receiver("b", target=Target(address="here")) as receiver:
                await receiver.receive()
        assert refused.value.condition == "amqp:internal-error"
        await fill(conn, "q", "alive")


def test_node_that_says_how_it_takes_nothing_has_no_default() -> None:
    for method in (Node("n").on_arrivals, Node("n").on_demand):
        with pytest.raises(NotImplementedError):
            method(None)  # type: ignore[arg-type]


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


async def test_listener_listens_no_more_when_it_is_closed() -> None:
    async with trio.open_nursery() as nursery:
        one, other = await nursery.start(
            amqp.serve, lambda conn: conn.wait_closed(), "amqp://127.0.0.1:0", "amqp://127.0.0.1:0"
        )
        one.close()
        one.close()
        with pytest.raises(OSError, match="cannot connect to"):
            await amqp.open_connection(one.url).__aenter__()
        async with amqp.open_connection(other.url):
            other.close()


async def test_finish_gives_up_when_its_patience_is_over(autojump_clock: MockClock) -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", 1)
        async with conn.open_receiver("q") as receiver:
            await receiver.receive()
            start = trio.current_time()
            assert not await container.finish(3.0)
            assert trio.current_time() - start == pytest.approx(3.0)
