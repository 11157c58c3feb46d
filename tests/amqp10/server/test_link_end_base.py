"""Inlets and outlets as ends of links: who is notified when a link ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.wire import on_the_wire
from trio_amqp10.amqp10.spec.transport import Error, Role

if TYPE_CHECKING:
    from trio_amqp10.broker.nodes.node import Inlet, Outlet

GONE = Error(condition="amqp:internal-error", description="enough")


class Own(amqp.Node):
    """A node that has a task for each receiver, and one for each message."""

    accepts_senders = accepts_receivers = True

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.failures: list[Any] = []
        self.work: Any = None

    async def _run(self, it: Any) -> None:
        try:
            await self.work(it)
        except (amqp.AmqpError, trio.ClosedResourceError) as failure:
            self.failures.append(failure)

    def add_outlet(self, outlet: Outlet) -> None:
        super().add_outlet(outlet)
        outlet.peer.start_soon(self._run, outlet)

    def on_demand(self, outlet: Outlet) -> None:
        outlet.rest(0)

    def on_arrivals(self, inlet: Inlet) -> None:
        while (arrival := inlet.take()) is not None:
            inlet.peer.start_soon(self._run, arrival)


async def wait_for_credit(outlet: Any) -> None:
    sender = outlet.sender
    assert sender is outlet.sender
    while True:
        await sender.send("x")


async def wait_for_outcome(outlet: Any) -> None:
    delivery = await outlet.sender.transmit("x")
    await delivery.outcome()


@pytest.mark.parametrize("work", [wait_for_credit, wait_for_outcome])
@pytest.mark.parametrize("error", [None, GONE])
async def test_sender_of_an_outlet_raises_what_the_peer_detached_with(work: Any, error: Error | None) -> None:
    container, node = amqp.Container(), Own("own")
    node.work = work
    container.add_node(node)
    async with container.connect() as conn:
        receiver = await conn.open_receiver("own", credit=0).__aenter__()
        if work is wait_for_outcome:
            receiver.grant(1)
            await receiver.receive()
        await wait_all_tasks_blocked()
        await receiver.aclose(error)
        await wait_all_tasks_blocked()
        [failure] = node.failures
        assert isinstance(failure, amqp.LinkDetachedError)
        assert failure.error == error
        assert failure.closed
        assert not node.outlets


@pytest.mark.parametrize("work", [wait_for_credit, wait_for_outcome])
async def test_sender_of_an_outlet_raises_when_its_node_is_removed(work: Any) -> None:
    container, node = amqp.Container(), Own("own")
    node.work = work
    container.add_node(node)
    async with container.connect() as conn:
        receiver = await conn.open_receiver("own", credit=0).__aenter__()
        if work is wait_for_outcome:
            receiver.grant(1)
            await receiver.receive()
        await wait_all_tasks_blocked()
        container.remove_node("own")
        await wait_all_tasks_blocked()
        [failure] = node.failures
        assert isinstance(failure, trio.ClosedResourceError)
        with pytest.raises(amqp.LinkDetachedError, match="resource-deleted"):
            await receiver.receive()


async def test_outlet_leaves_its_node_when_that_has_flushed_and_closed_it() -> None:
    container, node = amqp.Container(), Own("own")
    seen: list[Any] = []

    async def give_one(outlet: Any) -> None:
        await outlet.sender.wait_sendable()
        outlet.give(amqp.Message("one"), None)
        await outlet.flush()
        seen.append(outlet.closed)
        await outlet.aclose()
        seen.append(outlet.closed)
        seen.append(len(node.outlets))

    node.work = give_one
    container.add_node(node)
    async with container.connect() as conn, conn.open_receiver("own") as receiver:
        async for delivery in receiver:
            assert delivery.message.body == "one"
            await wait_all_tasks_blocked()
            assert not seen
            delivery.accept()
    assert seen == [False, True, 0]
    assert not node.failures


async def test_outlet_leaves_its_node_when_the_peer_never_answers_the_detach(autojump_clock: Any) -> None:
    container, node = amqp.Container(), Own("own")

    async def leave(outlet: Any) -> None:
        await outlet.aclose()

    node.work = leave
    container.add_node(node)
    async with on_the_wire(container) as peer:
        await peer.attach("own", Role.RECEIVER)
        await trio.sleep(60)
        assert not node.outlets
        assert not node.failures


async def test_arrival_that_waits_for_its_sender_raises_when_the_link_goes() -> None:
    container, node = amqp.Container(), Own("own")

    async def accept(arrival: Any) -> None:
        await arrival.wait_settled()

    node.work = accept
    container.add_node(node)
    async with container.connect() as conn:
        sender = await conn.open_sender("own").__aenter__()
        await sender.transmit("x")
        await wait_all_tasks_blocked()
        await sender.aclose(GONE)
        await wait_all_tasks_blocked()
        [failure] = node.failures
        assert isinstance(failure, amqp.LinkDetachedError)
        assert failure.error == GONE


async def test_figures_of_inlets_and_outlets_are_those_of_their_links(autojump_clock: MockClock) -> None:
    async def wait(it: Any) -> None:
        if hasattr(it, "sender"):  # a message has none
            await wait_for_credit(it)

    container, node = amqp.Container(), Own("own")
    node.work = wait
    container.add_node(node)
    async with (
        container.connect() as conn,
        conn.open_sender("own") as sender,
        conn.open_receiver("own", credit=0) as receiver,
    ):
        await sender.transmit("x", settled=True)
        await wait_all_tasks_blocked()
        inlets: list[Any] = list(node.inlets)
        outlets: list[Any] = list(node.outlets)
        [theirs] = [link.statistics() for link in inlets]
        assert theirs["role"] == "receiver"
        assert theirs["messages"] == 1
        assert theirs["name"] == sender.name
        [ours] = [link.statistics() for link in outlets]
        assert ours["role"] == "sender"
        assert ours["address"] == receiver.address == "own"
        assert ours["waiting"] == 1
