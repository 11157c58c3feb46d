"""Nodes of one's own: what they may raise, and what becomes of their outcomes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.container.helpers import bodies, fill, two
from trio_amqp10.amqp10.peer.errors import LinkDetachedError
from trio_amqp10.amqp10.spec.messaging import Target
from trio_amqp10.container import Arrival, Container, Inlet, Lease, Node, Outlet

if TYPE_CHECKING:
    from collections.abc import Mapping


class Echo(Node):
    """A node that sends each message back to its receivers, and can be set to fail."""

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
