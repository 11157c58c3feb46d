"""What senders and receivers have in common: attach, refusal, guarantees, names, detach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from tests.naive.performatives import frame

from .helpers import Node, answer_attach, both, detached, dialled, opening, served

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_redirect_tells_where_to(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        error = (
            "error",
            {
                "condition": "amqp:link:redirect",
                "info": {"hostname": "h", "network-host": "other", "port": 7, "address": "p"},
            },
        )

        async def refuse() -> None:
            await answer_attach(peer, frame("detach", handle=0, closed=True, error=error), target=None)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(refuse)
            with pytest.raises(amqp.LinkRedirectError) as caught:
                await conn.open_sender("q").__aenter__()
        assert caught.value.error is not None
        assert caught.value.error.info is not None
        assert caught.value.error.info["network-host"] == "other"


@both
async def test_link_that_the_peer_steals_later_raises_that(kind: str, autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.accept_attach)
            link = await opening(conn, kind).__aenter__()
        await peer.send(detached(0, "amqp:link:stolen"))
        with pytest.raises(amqp.LinkStolenError):
            await (link.send("x") if kind == "sender" else link.receive())


async def test_name_is_unique_while_the_link_lives_and_free_afterwards() -> None:
    node = Node()
    async with served(node.handle) as conn:
        for number in range(5):
            async with conn.open_sender("q", name="n") as sender:
                with pytest.raises(amqp.LocalProtocolError, match="exists on this connection already"):
                    await conn.open_sender("q", name="n").__aenter__()
                async with conn.open_receiver("q", name="n"):
                    pass
                await sender.send(number)
        assert len(conn.engine.names) == 0
    assert node.got == list(range(5))


async def test_name_is_free_again_when_the_link_was_refused_or_cancelled() -> None:
    node = Node()
    async with served(node.handle) as conn:
        for _ in range(3):
            with pytest.raises(amqp.LinkRefusedError):
                await conn.open_sender("none", name="n").__aenter__()
            with trio.CancelScope() as scope:
                async with conn.open_sender("q", name="n"):
                    scope.cancel()
                    await trio.sleep_forever()
            async with conn.open_sender("q", name="n") as sender:
                await sender.send("x")


@both
async def test_link_closes_with_the_error_that_it_is_given(kind: str, autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.accept_attach)
            link = await opening(conn, kind).__aenter__()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.aclose, amqp.ErrorInfo(condition="x:y", description="z"))
            got = await peer.skip_to("detach")
            assert got["error"] == ("error", {"condition": "x:y", "description": "z"})
            await peer.send(detached(0))
        assert link.closed


@both
async def test_closing_and_closing_at_the_other_end_may_cross(kind: str, autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.accept_attach)
            link = await opening(conn, kind).__aenter__()
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.send, detached(0))
            nursery.start_soon(link.aclose)
            nursery.start_soon(link.aclose)
        assert trio.current_time() == began
        assert not conn.closed


async def test_links_name_themselves_and_their_address() -> None:
    node = Node(bodies=("x",))
    async with served(node.handle) as conn:
        async with conn.open_sender("q", name="mine") as sender:
            await sender.wait_sendable()
            assert sender.name == "mine"
            assert sender.address == "q"
            assert sender.credit == 100
            assert sender.unsettled == 0
            assert not sender.draining
            assert not sender.closed
            assert "'q'" in repr(sender)
            assert "ATTACHED" in repr(sender)
        async with conn.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            assert receiver.address == "q"
            assert "credit=" in repr(receiver)
            assert "'x'" in repr(delivery) or "Message" in repr(delivery)
            assert receiver.available == 0


async def test_address_of_a_dynamic_node_is_that_of_the_peer(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):

        async def answer() -> None:
            attach = await peer.expect("attach")
            await peer.send(
                frame(
                    "attach",
                    name=attach["name"],
                    handle=0,
                    role=False,
                    source=("source", {"address": "made-1", "dynamic": True}),
                    target=attach["target"],
                    initial_delivery_count=0,
                )
            )

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            receiver = await conn.open_receiver(None, source=amqp.Source(dynamic=True)).__aenter__()
        assert receiver.address == "made-1"


async def test_handles_of_a_session_beyond_handle_max_of_the_peer_are_refused_here(
    autojump_clock: MockClock,
) -> None:
    async with dialled(begin=False) as (conn, peer):

        async def answer() -> None:
            await peer.accept_begin()  # the default session, which every connection begins with
            await peer.accept_begin(handle_max=0)
            await peer.accept_attach()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            session = await conn.open_session().__aenter__()
            await session.open_sender("q").__aenter__()
        with pytest.raises(amqp.LocalProtocolError, match="handle-max"):
            await session.open_sender("q").__aenter__()
        assert not conn.closed
