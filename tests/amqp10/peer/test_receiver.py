"""The receiving end: credit, iteration, receive, drain, what is given back on leaving."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.naive.peer import WINDOWS
from tests.naive.performatives import frame, sections

from .helpers import STREAMS, Node, dialled, served, stream_pair

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.naive.peer import ScriptedPeer


@asynccontextmanager
async def receiving(
    *, limits: amqp.Limits | None = None, **options: Any
) -> AsyncGenerator[tuple[amqp.Receiver, ScriptedPeer]]:
    """A receiver of ours from a scripted sender."""
    async with dialled(limits=limits) as (conn, peer):
        async with trio.open_nursery() as nursery:
            settled = int(options.get("guarantee") == "at-most-once")
            nursery.start_soon(_attach, peer, {"snd_settle_mode": settled})
            receiver = await conn.open_receiver("q", **options).__aenter__()
        yield receiver, peer


async def _attach(peer: ScriptedPeer, fields: dict[str, Any]) -> None:
    await peer.accept_attach(**fields)


def transfer(number: int, *, settled: bool = False, body: Any = None) -> bytes:
    return frame(
        "transfer",
        handle=0,
        delivery_id=number,
        delivery_tag=number.to_bytes(4, "big"),
        settled=settled,
        payload=sections(("amqp-value", number if body is None else body)),
    )


def drained_flow(count: int, *, sent: int) -> bytes:
    """The sender gives up what is left of ``count`` credits, having sent some."""
    windows: dict[str, Any] = {**WINDOWS, "next_incoming_id": 0, "next_outgoing_id": sent}
    return frame("flow", **windows, handle=0, delivery_count=count, link_credit=0, available=0, drain=True)


# -- credit ---------------------------------------------------------------------------------


async def test_credit_is_topped_up_at_half(autojump_clock: MockClock) -> None:
    async with receiving(credit=10) as (receiver, peer):
        await peer.expect("flow", handle=0, link_credit=10)
        await peer.send(*(transfer(n) for n in range(10)))
        for delivery in [await receiver.receive() for _ in range(4)]:
            delivery.accept()
        await peer.expect("disposition", first=0, last=3)
        await peer.expect_nothing(1)
        (await receiver.receive()).accept()
        await peer.expect("disposition", first=4)
        await peer.expect("flow", handle=0, link_credit=5, delivery_count=10)


@pytest.mark.parametrize("credit", [1, 2, 3, 100])
async def test_credit_keeps_so_many_outstanding_and_never_more(credit: int) -> None:
    node = Node(bodies=tuple(range(300)))
    most = 0
    async with served(node.handle) as conn, conn.open_receiver("q", credit=credit) as receiver:
        for number in range(300):
            delivery = await receiver.receive()
            assert delivery.message.body == number
            most = max(most, receiver.credit + receiver.buffered)
            delivery.accept()
    assert most <= credit


async def test_row_64_slow_consumer_holds_no_more_than_its_credit() -> None:
    node = Node(bodies=tuple(range(1000)))
    async with served(node.handle) as conn, conn.open_receiver("q", credit=20) as receiver:
        await wait_all_tasks_blocked()
        assert receiver.buffered == 20
        assert len(node.outcomes) == 20
        for _ in range(10):
            (await receiver.receive()).accept()
        await wait_all_tasks_blocked()
        assert receiver.buffered <= 20
        assert len(node.outcomes) == 30


async def test_credit_of_zero_grants_for_each_receive_and_no_more(autojump_clock: MockClock) -> None:
    async with receiving(credit=0) as (receiver, peer):
        await peer.expect_nothing(1)
        with trio.move_on_after(1):
            await receiver.receive()
        await peer.expect("flow", link_credit=1)
        with trio.move_on_after(1):
            await receiver.receive()
        await peer.expect_nothing(1)
        await peer.send(transfer(0))
        await wait_all_tasks_blocked()
        assert receiver.buffered == 1
        assert (await receiver.receive()).message.body == 0
        await peer.expect_nothing(1)
        got: list[Any] = []

        async def receive() -> None:
            got.append((await receiver.receive()).message.body)

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(receive)
            await wait_all_tasks_blocked()
            assert receiver.credit == 3
            await peer.send(transfer(1), transfer(2), transfer(3))
        assert sorted(got) == [1, 2, 3]
        assert receiver.credit == 0


async def test_at_most_once_prefetches_nothing_unless_asked_to(autojump_clock: MockClock) -> None:
    async with receiving(guarantee="at-most-once") as (_, peer):
        await peer.expect_nothing(1)
    async with receiving(guarantee="at-most-once", credit=5) as (_, peer):
        await peer.expect("flow", link_credit=5)


async def test_grant_adds_to_the_credit(autojump_clock: MockClock) -> None:
    async with receiving(credit=0) as (receiver, peer):
        receiver.grant(3)
        receiver.grant(2)
        await peer.expect("flow", link_credit=5)
        await peer.send(*(transfer(n) for n in range(5)))
        assert [(await receiver.receive()).message.body for _ in range(5)] == list(range(5))
        assert receiver.credit == 0
        await peer.expect_nothing(1)
        for wrong in (0, -1, 2**31):
            with pytest.raises(amqp.LocalProtocolError):
                receiver.grant(wrong)


async def test_set_credit_replaces_the_credit(autojump_clock: MockClock) -> None:
    async with receiving(credit=0) as (receiver, peer):
        receiver.grant(5)
        await peer.expect("flow", link_credit=5)
        receiver.set_credit(2)
        await peer.expect("flow", link_credit=2)
        receiver.set_credit(0)
        await peer.expect("flow", link_credit=0)
        await peer.send(transfer(0))  # it was under way
        assert (await receiver.receive()).message.body == 0
        with pytest.raises(amqp.LocalProtocolError, match=r"set_credit\(-1\): expected"):
            receiver.set_credit(-1)


# -- receive and iteration ------------------------------------------------------------------


@pytest.mark.parametrize("kind", STREAMS)
async def test_receiving_keeps_the_order(kind: str) -> None:
    bodies = tuple(range(300))
    node = Node(bodies=bodies)
    async with served(node.handle, streams=await stream_pair(kind)) as conn:
        got: list[Any] = []
        async with conn.open_receiver("q", credit=10) as receiver:
            async for delivery in receiver:
                got.append(delivery.message.body)
                delivery.accept()
        assert got == list(bodies)


async def test_many_tasks_receive_each_delivery_once() -> None:
    node = Node(bodies=tuple(range(500)))
    got: list[list[Any]] = [[] for _ in range(5)]
    async with served(node.handle) as conn, conn.open_receiver("q", credit=7) as receiver:

        async def work(mine: list[Any]) -> None:
            async for delivery in receiver:
                mine.append(delivery.message.body)
                delivery.accept()

        async with trio.open_nursery() as nursery:
            for mine in got:
                nursery.start_soon(work, mine)
    assert sorted(body for mine in got for body in mine) == list(range(500))
    assert all(mine == sorted(mine) for mine in got)


async def test_cancelled_receive_loses_nothing_whenever_it_happens(autojump_clock: MockClock) -> None:
    async with receiving(credit=100) as (receiver, peer):
        got: list[Any] = []

        async def impatient() -> None:
            while len(got) < 50:
                with trio.move_on_after(0.01):
                    got.append((await receiver.receive()).message.body)

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(impatient)
            for number in range(50):
                await trio.sleep(0.0037)
                await peer.send(transfer(number))
        assert got == list(range(50))


async def test_receive_hands_out_nothing_when_it_is_cancelled_already() -> None:
    node = Node(bodies=(1, 2, 3))
    async with served(node.handle) as conn, conn.open_receiver("q") as receiver:
        await wait_all_tasks_blocked()
        for call in (receiver.receive, lambda: receiver.receive_many(3), receiver.__anext__):
            with trio.CancelScope() as scope:
                scope.cancel()
                await call()
            assert scope.cancelled_caught
            assert receiver.buffered == 3


async def test_receive_many_takes_what_is_there(autojump_clock: MockClock) -> None:
    async with receiving() as (receiver, peer):
        await peer.send(*(transfer(n) for n in range(5)))
        assert [d.message.body for d in await receiver.receive_many(3)] == [0, 1, 2]
        assert [d.message.body for d in await receiver.receive_many(30)] == [3, 4]
        with trio.move_on_after(1) as scope:
            await receiver.receive_many(1)
        assert scope.cancelled_caught


async def test_receive_nowait_takes_what_is_there_or_nothing(autojump_clock: MockClock) -> None:
    async with receiving() as (receiver, peer):
        with pytest.raises(trio.WouldBlock):
            receiver.receive_nowait()
        await peer.send(transfer(0))
        await wait_all_tasks_blocked()
        assert receiver.receive_nowait().message.body == 0


async def test_passed_deadline_is_seen_by_who_receives_without_blocking(autojump_clock: MockClock) -> None:
    async with receiving(credit=2000) as (receiver, peer):
        await peer.send(*(transfer(n) for n in range(1000)))
        await wait_all_tasks_blocked()
        taken = 0
        with trio.move_on_after(0) as scope:
            async for _ in receiver:
                taken += 1
        assert scope.cancelled_caught
        assert taken <= 64
        with trio.move_on_after(0) as scope:
            for _ in range(900):
                await receiver.receive()
                taken += 1
        assert scope.cancelled_caught
        assert taken <= 128
        assert receiver.buffered == 1000 - taken


async def test_aborted_delivery_is_not_handed_out_and_credit_goes_on(autojump_clock: MockClock) -> None:
    async with receiving(credit=2) as (receiver, peer):
        await peer.expect("flow")
        for number in range(0, 6, 2):
            await peer.send(
                frame("transfer", handle=0, delivery_id=number, delivery_tag=b"a", more=True, payload=b"x"),
                frame("transfer", handle=0, aborted=True),
            )
            await peer.send(transfer(number + 1, settled=True))
            assert (await receiver.receive()).message.body == number + 1
            await peer.skip_to("flow")


# -- drain ----------------------------------------------------------------------------------


async def test_drain_returns_what_still_came(autojump_clock: MockClock) -> None:
    async with receiving(credit=10) as (receiver, peer):
        await peer.expect("flow")
        drained: list[Any] = []

        async def drain() -> None:
            drained.extend(await receiver.drain())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(drain)
            await peer.expect("flow", link_credit=10, drain=True)
            await peer.send(transfer(0), transfer(1))
            await wait_all_tasks_blocked()
            assert not drained
            await peer.send(drained_flow(10, sent=2))
        assert [delivery.message.body for delivery in drained] == [0, 1]
        assert receiver.credit == 0
        await peer.expect_nothing(1)
        receiver.grant(1)
        await peer.expect("flow", link_credit=1, drain=None)


async def test_drain_ends_when_all_the_credit_is_used(autojump_clock: MockClock) -> None:
    async with receiving(credit=2) as (receiver, peer):
        await peer.expect("flow")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(receiver.drain)
            await peer.expect("flow", drain=True)
            await peer.send(transfer(0), transfer(1))


async def test_drain_without_credit_returns_at_once(autojump_clock: MockClock) -> None:
    async with receiving(credit=0) as (receiver, peer):
        began = trio.current_time()
        assert await receiver.drain() == []
        assert trio.current_time() == began
        await peer.send(transfer(0) if receiver.credit else frame("flow", **WINDOWS, next_incoming_id=0))


async def test_cancelled_drain_goes_on_and_loses_nothing(autojump_clock: MockClock) -> None:
    async with receiving(credit=10) as (receiver, peer):
        with trio.move_on_after(1):
            await receiver.drain()
        await peer.send(transfer(0))
        assert (await receiver.receive()).message.body == 0


@pytest.mark.parametrize("credit", [2, 3, 10])
async def test_drain_is_not_undone_by_a_task_that_receives(credit: int, autojump_clock: MockClock) -> None:
    async with receiving(credit=credit) as (receiver, peer):
        await peer.expect("flow")
        got: list[Any] = []

        async def receive() -> None:
            got.append((await receiver.receive()).message.body)

        async def drain() -> None:
            got.extend(d.message.body for d in await receiver.drain())
            got.append("drained")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive)
            await wait_all_tasks_blocked()
            nursery.start_soon(drain)
            await peer.expect("flow", link_credit=credit, drain=True)
            await peer.send(transfer(0))
            await wait_all_tasks_blocked()
            assert got == [0]
            nursery.start_soon(receive)
            await wait_all_tasks_blocked()
            assert got == [0]
            await peer.send(drained_flow(credit, sent=1))
            await wait_all_tasks_blocked()
            assert got == [0, "drained"]
            # Only now may the one who still waits have credit again.
            await peer.expect("flow", link_credit=1, drain=None)
            await peer.send(transfer(1))
        assert got == [0, "drained", 1]


async def test_drain_both_ways_between_two_of_ours() -> None:
    node = Node(bodies=tuple(range(5)))
    async with served(node.handle) as conn, conn.open_receiver("q", credit=100) as receiver:
        await wait_all_tasks_blocked()
        drained = await receiver.drain()
        assert [delivery.message.body for delivery in drained] == list(range(5))
        for delivery in drained:
            delivery.accept()


# -- leaving --------------------------------------------------------------------------------


async def test_leaving_takes_credit_to_zero_and_releases_what_nobody_took(autojump_clock: MockClock) -> None:
    async with receiving(credit=10) as (receiver, peer):
        await peer.expect("flow", link_credit=10)
        await peer.send(*(transfer(n) for n in range(4)))
        first = await receiver.receive()

        async def leave() -> None:
            await receiver.aclose()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(leave)
            await peer.expect("disposition", first=1, last=3, settled=True, state=("released", {}))
            await peer.expect("flow", handle=0, link_credit=0)
            await peer.expect("detach", closed=True, error=None)
            await peer.send(frame("detach", handle=0, closed=True))
        assert receiver.buffered == 0
        with pytest.raises(amqp.LocalProtocolError, match="its link is gone"):
            first.accept()


async def test_leaving_when_cancelled_releases_too(autojump_clock: MockClock) -> None:
    async with receiving(credit=10) as (receiver, peer):
        await peer.expect("flow", link_credit=10)
        await peer.send(transfer(0), transfer(1, settled=True))
        await wait_all_tasks_blocked()
        with trio.CancelScope() as scope:
            scope.cancel()
            await receiver.aclose()
        assert scope.cancelled_caught
        await peer.expect("disposition", first=0, settled=True, state=("released", {}))
        await peer.expect("flow", handle=0, link_credit=0)
        await peer.expect("detach")


async def test_leaving_in_the_middle_gives_back_what_another_then_gets_in_order() -> None:
    node = Node(bodies=tuple(range(10)))
    async with served(node.handle) as conn:
        async with conn.open_receiver("q", credit=10) as receiver:
            async for delivery in receiver:
                with trio.fail_after(30):
                    while receiver.buffered < 9:  # the others may come later, by the socket
                        await receiver.wait()
                delivery.accept()
                break
        await wait_all_tasks_blocked()
        outcomes = [delivery.state for delivery in node.outcomes]
        assert [type(one).__name__ for one in outcomes] == ["Accepted"] + ["Released"] * 9


async def test_message_beyond_our_limit_detaches_its_link_alone(autojump_clock: MockClock) -> None:
    async with receiving(max_message_size=1000) as (receiver, peer):
        await peer.send(transfer(0, body="x" * 2000))
        await peer.skip_to("flow")
        with pytest.raises(amqp.LinkDetachedError, match="message-size-exceeded") as caught:
            await receiver.receive()
        assert caught.value.condition == "amqp:link:message-size-exceeded"
        await peer.expect("detach", error=("error", {"condition": "amqp:link:message-size-exceeded"}))
        assert not receiver.session.is_over


async def test_row_46_delivery_without_credit_detaches_its_link_alone(autojump_clock: MockClock) -> None:
    async with receiving(credit=0) as (receiver, peer):
        await peer.send(transfer(0))
        await wait_all_tasks_blocked()
        with pytest.raises(amqp.LinkDetachedError, match="transfer-limit-exceeded"):
            await receiver.receive()
        assert not receiver.session.is_over
