"""Receivers whose credit is bounded in octets: what waits, whatever the sizes, and that it goes on (2.5.6, 2.6.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp

from .helpers import Node, dialled, served
from .town import EVEN, URL, Town

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trio.testing import MockClock

FRAME = 1024


def held(receiver: amqp.Receiver) -> int:
    return sum(len(delivery.payload) for delivery in receiver._queue)


SIZES: dict[str, Sequence[int]] = {
    "even": [500] * 200,
    "growing": [50] * 100 + [3000] * 60,
    "shrinking": [9000] * 10 + [10] * 500,
    "mixed": [10, 20_000, 10, 10, 700, 700, 15_000, 1, 1, 1] * 10,
    "larger than the bound": [30_000] * 5,
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
@pytest.mark.parametrize("bound", [1000, 8000, 20_000])
async def test_receiver_holds_its_bound_and_one_message_at_most(
    sizes: Sequence[int], bound: int, autojump_clock: MockClock
) -> None:
    node = Node(bodies=tuple(bytes(size) for size in sizes))
    async with (
        served(node.handle, max_frame_size=FRAME) as conn,
        conn.open_receiver("q", credit_octets=bound) as receiver,
    ):
        most = 0
        for size in sizes:
            await wait_all_tasks_blocked()
            most = max(most, held(receiver))
            delivery = await receiver.receive()
            assert len(delivery.message.body) == size
            delivery.accept()
        await wait_all_tasks_blocked()
        assert most <= bound + max(sizes) + 20
        assert most >= min(bound // 2, max(sizes))


async def test_credit_follows_the_usual_size() -> None:
    node = Node(bodies=tuple(bytes(93) for _ in range(1000)))
    async with served(node.handle) as conn, conn.open_receiver("q", credit_octets=100_000) as receiver:
        assert receiver.credit == 1  # a message may be as large as a frame, for all that is known
        for _ in range(200):
            (await receiver.receive()).accept()
        await wait_all_tasks_blocked()
        assert 400 < receiver.credit + receiver.buffered <= 1000


async def test_credit_is_no_more_than_asked_for() -> None:
    node = Node(bodies=tuple(b"" for _ in range(300)))
    async with (
        served(node.handle) as conn,
        conn.open_receiver("q", credit=7, credit_octets=1_000_000) as receiver,
    ):
        for _ in range(300):
            assert receiver.credit + receiver.buffered <= 7
            (await receiver.receive()).accept()


async def test_drain_makes_room_and_leaves_no_credit() -> None:
    node = Node(bodies=tuple(bytes(500) for _ in range(50)))
    async with served(node.handle) as conn, conn.open_receiver("q", credit_octets=5000) as receiver:
        (await receiver.receive()).accept()
        await wait_all_tasks_blocked()
        assert await receiver.drain()
        assert (receiver.credit, held(receiver)) == (0, 0)
        receiver.grant(2)
        assert len(await receiver.receive_many(2)) >= 1


async def test_window_that_is_announced_first_is_what_the_bound_has_room_for() -> None:
    async with dialled(max_frame_size=FRAME, begin=False) as (conn, peer):
        async with trio.open_nursery() as nursery:

            async def answer() -> None:
                await peer.accept_begin()
                begun = await peer.accept_begin()
                attach = await peer.expect("attach", channel=begun.channel)
                flow = await peer.expect("flow", channel=begun.channel, link_credit=4)
                assert flow["incoming_window"] == 4
                seen.append(attach["name"])
                nursery.cancel_scope.cancel()

            seen: list[Any] = []
            nursery.start_soon(answer)
            async with conn.open_receiver("q", credit_octets=4 * FRAME):
                raise AssertionError("nobody answers the attach")
        assert seen
        await peer.aclose()


async def test_bound_holds_when_the_connection_has_come_back(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    town = Town(monkeypatch)
    container = amqp.Container("town")
    town.handle = container.handle
    async with (
        town.open(),
        amqp.open_connection(URL, reconnect=EVEN, max_frame_size=FRAME) as conn,
        conn.open_receiver("q", credit_octets=5000) as receiver,
        conn.open_sender("q") as sender,
    ):
        for _ in range(20):
            await sender.send(bytes(900))
        (await receiver.receive()).accept()
        await town.lose()
        got = 1
        for _ in range(19):
            await wait_all_tasks_blocked()
            assert held(receiver) <= 5000 + 950
            (await receiver.receive()).accept()
            got += 1
        assert got == 20


@pytest.mark.parametrize(
    "options",
    [{"streaming": True}, {"credit": 0}, {"own_session": False}, {"credit_octets": 0}, {"guarantee": "ever"}],
)
async def test_bound_refuses_what_makes_no_sense(options: Any) -> None:
    async with served(Node().handle) as conn:
        with pytest.raises(amqp.LocalProtocolError):
            conn.open_receiver("q", **({"credit_octets": 1000} | options))
