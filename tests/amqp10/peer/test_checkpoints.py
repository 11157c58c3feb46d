"""Every public async function is a checkpoint on every path, but for those that are paced."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, assert_checkpoints, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.naive.performatives import frame

from .helpers import Node, detached, dialled, served
from .test_receiver import receiving, transfer


async def test_calls_checkpoint_when_they_succeed_at_once() -> None:
    node = Node(bodies=(1, 2, 3))
    async with served(node.handle) as conn:
        async with conn.open_sender("q") as sender:
            await sender.wait_sendable()
            delivery = await sender.transmit("x")
            await delivery.outcome()
            for call in (sender.wait_sendable, sender.flush, delivery.wait_settled):
                with assert_checkpoints():
                    await call()
            delivery.link.owner = None  # as when the link is attached anew
            with assert_checkpoints():
                assert await delivery.outcome() == amqp.Accepted()
        with assert_checkpoints():
            await sender.aclose()
        async with conn.open_sender("q", guarantee="at-most-once") as sender:
            delivery = await sender.transmit("x")
            for call in (delivery.wait_settled, sender.flush):
                with assert_checkpoints():
                    await call()
        async with conn.open_receiver("q") as receiver:
            incoming = await receiver.receive()
            incoming.accept()
            with assert_checkpoints():
                await incoming.wait_settled()
        with assert_checkpoints():
            await receiver.aclose()
        async with conn.open_session() as session:
            pass
        with assert_checkpoints():
            await session.aclose()
    for call in (conn.aclose, conn.wait_closed):
        with assert_checkpoints():
            await call()
    with assert_checkpoints(), pytest.raises(StopAsyncIteration):
        await conn.incoming_links().__anext__()


async def test_outcome_that_is_known_is_a_full_checkpoint_at_every_64th_call() -> None:
    node = Node()
    async with served(node.handle) as conn:
        cases: list[tuple[Any, Any]] = [("at-least-once", amqp.Accepted()), ("at-most-once", None)]
        for guarantee, known in cases:
            async with conn.open_sender("q", guarantee=guarantee) as sender:
                delivery = await sender.transmit("x")
                assert await delivery.outcome() == known
                with assert_checkpoints():
                    for _ in range(64):
                        assert await delivery.outcome() == known
                with trio.move_on_after(0) as scope:
                    for _ in range(64):
                        await delivery.outcome()
                assert scope.cancelled_caught


async def test_outcome_that_is_known_raises_at_once_when_the_task_is_cancelled() -> None:
    async with served(Node().handle) as conn, conn.open_sender("q") as sender:
        delivery = await sender.transmit("x")
        await delivery.outcome()
        with trio.CancelScope() as scope:
            scope.cancel()
            await delivery.outcome()
        assert scope.cancelled_caught
        assert await delivery.outcome() == amqp.Accepted()


async def test_openings_checkpoint_when_they_fail_at_once() -> None:
    async with served() as conn:
        pass
    for opening in (conn.open_session(), conn.open_sender("q"), conn.open_receiver("q")):
        with assert_checkpoints(), pytest.raises(trio.ClosedResourceError):
            await opening.__aenter__()


async def test_drain_checkpoints_without_credit(autojump_clock: MockClock) -> None:
    async with receiving(credit=0) as (receiver, _):
        with assert_checkpoints():
            await receiver.drain()


async def test_links_of_the_peers_checkpoint(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        for handle in range(3):
            await peer.send(
                frame(
                    "attach",
                    name=f"n{handle}",
                    handle=handle,
                    role=False,
                    source=("source", {}),
                    target=("target", {"address": "q"}),
                    initial_delivery_count=0,
                )
            )
        await wait_all_tasks_blocked()
        links = conn.incoming_links()
        with assert_checkpoints():
            link: Any = await links.__anext__()
        with assert_checkpoints():
            await link.refuse()
        with assert_checkpoints():
            await link.refuse()
        link = await links.__anext__()
        opening = link.accept()
        with assert_checkpoints():
            await opening.__aenter__()
        with assert_checkpoints(), pytest.raises(amqp.LocalProtocolError):
            await link.accept().__aenter__()


async def test_paced_calls_are_checkpoints_within_64_when_they_fail_too(autojump_clock: MockClock) -> None:
    async with receiving(credit=10) as (receiver, peer):
        await peer.send(transfer(0, settled=True), detached(0))
        await wait_all_tasks_blocked()
        await receiver.receive()
        for call, ends in (
            (receiver.receive, amqp.LinkDetachedError),
            (receiver.__anext__, StopAsyncIteration),
        ):
            with trio.move_on_after(0) as scope:
                for _ in range(64):
                    with pytest.raises(ends):
                        await call()
            assert scope.cancelled_caught
