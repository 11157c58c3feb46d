"""Where a link leads, as its two ends tell it in their attaches (2.6.3, 2.7.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.naive.peer import WINDOWS
from tests.naive.performatives import frame, sections

from .helpers import dialled

if TYPE_CHECKING:
    import trio_amqp10 as amqp

both = pytest.mark.parametrize("kind", ["sender", "receiver"])

OTHER: Any = {"source": ("source", {"address": "other"}), "target": ("target", {"address": "other"})}


def opening(conn: amqp.Connection, kind: str, **options: Any) -> Any:
    return conn.open_sender("q", **options) if kind == "sender" else conn.open_receiver("q", **options)


@both
async def test_link_leads_where_the_answer_says(kind: str, autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: peer.accept_attach(**OTHER))
            link = await opening(conn, kind).__aenter__()
        assert link.address == "other"
        assert link.state == "ATTACHED"


@both
async def test_link_that_is_resumed_leads_where_the_new_answer_says(
    kind: str, autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.accept_attach)
            link = await opening(conn, kind, expiry_timeout=60).__aenter__()
        assert link.address == "q"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.detach)
            await peer.skip_to("detach")
            await peer.send(frame("detach", handle=0))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: peer.accept_attach(**OTHER))
            await link.resume()
        assert link.address == "other"
        assert link.state == "ATTACHED"  # and it is for the program to go on or to detach


async def test_nothing_is_handed_out_from_a_link_without_a_source(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        got: list[Any] = []

        async def receive() -> None:
            async with conn.open_receiver("q") as receiver:
                got.append(await receiver.receive())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive)
            await peer.accept_attach(source=None)
            payload = sections(("amqp-value", 1))
            await peer.send(
                frame("transfer", handle=0, delivery_id=0, delivery_tag=b"t", settled=True, payload=payload)
            )
            await wait_all_tasks_blocked()
            assert not got
            nursery.cancel_scope.cancel()
        assert not got


async def test_nothing_is_sent_to_a_link_without_a_target(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):

        async def send() -> None:
            async with conn.open_sender("q") as sender:
                await sender.send("x")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            await peer.accept_attach(target=None)
            credit: dict[str, Any] = {"handle": 0, "delivery_count": 0, "link_credit": 5}
            await peer.send(frame("flow", **WINDOWS, next_incoming_id=0, **credit))
            await peer.expect_nothing(1)
            nursery.cancel_scope.cancel()
        await peer.expect("detach")
