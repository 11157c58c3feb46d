"""Sessions: begin, end, and a peer that ends one over a bad address."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.naive.peer import WINDOWS
from tests.naive.performatives import frame

from .helpers import Node, dialled, served

if TYPE_CHECKING:
    from tests.naive.peer import ScriptedPeer

NOT_FOUND = ("error", {"condition": "amqp:not-found", "description": "no queue 'bad'"})


async def test_session_carries_links_of_its_own() -> None:
    node = Node(bodies=(1, 2))
    async with served(node.handle) as conn, conn.open_session() as session:
        assert not session.is_over
        async with session.open_sender("q") as sender:
            await sender.send("x")
        async with session.open_receiver("q", credit=1) as receiver:
            assert (await receiver.receive()).message.body == 1
            assert receiver.session is session
    assert session.is_over
    assert node.got == ["x"]


async def test_session_ends_with_the_error_that_it_is_given(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.accept_begin)
            session = await conn.open_session().__aenter__()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.aclose, amqp.ErrorInfo(condition="x:y"))
            ended = await peer.expect("end", error=("error", {"condition": "x:y"}))
            await peer.send(frame("end", channel=ended.channel))
        assert session.is_over
        with pytest.raises(trio.ClosedResourceError):
            session.check_alive()


async def test_session_that_the_peer_ends_at_once_raises_on_entering(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):

        async def refuse() -> None:
            begin = await peer.expect("begin")
            await peer.send(
                frame("begin", channel=begin.channel, remote_channel=begin.channel, **WINDOWS),
                frame("end", channel=begin.channel, error=NOT_FOUND),
            )

        async with trio.open_nursery() as nursery:
            nursery.start_soon(refuse)
            with pytest.raises(amqp.SessionEndedError, match="amqp:not-found: no queue 'bad'") as caught:
                await conn.open_session().__aenter__()
        assert caught.value.condition == "amqp:not-found"


async def test_session_that_is_cancelled_while_it_begins_is_ended(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        with trio.move_on_after(1) as scope:
            await conn.open_session().__aenter__()
        assert scope.cancelled_caught
        begin = await peer.expect("begin")
        await peer.expect("end", channel=begin.channel)
        assert not conn.closed


async def refuse_like_rabbitmq(peer: ScriptedPeer, attaches: int = 1) -> None:
    """End the whole session over one address."""
    seen = [await peer.skip_to("attach") for _ in range(attaches)]
    await peer.send(frame("end", channel=seen[0].channel, error=NOT_FOUND))


async def test_peer_that_ends_the_session_over_an_address_refuses_the_link(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.accept_attach)
            other = await conn.open_receiver("good", credit=0).__aenter__()
        raised: list[BaseException] = []

        async def receive() -> None:
            try:
                await other.receive()
            except amqp.SessionEndedError as ended:
                raised.append(ended)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive)
            await wait_all_tasks_blocked()
            nursery.start_soon(refuse_like_rabbitmq, peer)
            with pytest.raises(amqp.LinkRefusedError, match="amqp:not-found") as caught:
                await conn.open_sender("bad").__aenter__()
        assert caught.value.condition == "amqp:not-found"
        [ended] = raised
        assert getattr(ended, "condition", None) == "amqp:not-found"
        with pytest.raises(amqp.SessionEndedError):
            async for _ in other:
                pass

        async def accept_anew() -> None:
            await peer.skip_to("begin")
            await peer.send(frame("begin", channel=1, remote_channel=1, **WINDOWS))
            await peer.accept_attach()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept_anew)
            sender = await conn.open_sender("good").__aenter__()
        assert sender.session is not other.session
        assert sender.address == "good"


async def test_two_links_that_open_when_the_session_ends_are_both_refused(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        refused: list[Any] = []

        async def opening(address: str) -> None:
            with pytest.raises(amqp.LinkRefusedError) as caught:
                await conn.open_sender(address).__aenter__()
            refused.append(caught.value.condition)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(opening, "bad")
            nursery.start_soon(opening, "also bad")
            await refuse_like_rabbitmq(peer, 2)
        assert refused == ["amqp:not-found"] * 2


async def test_session_of_its_own_goes_with_its_link() -> None:
    node = Node()
    async with served(node.handle) as conn:
        before = len(conn.engine.channels.ours)
        async with conn.open_sender("q", own_session=True) as sender:
            await sender.send("x")
            assert len(conn.engine.channels.ours) == before + 1
        assert len(conn.engine.channels.ours) == before
        cases: Any = ({"guarantee": "exactly-once"}, {"name": "twice"})
        for options in cases:
            async with conn.open_sender("q", name="twice"):
                with pytest.raises(amqp.AmqpError):
                    async with conn.open_sender("none", own_session=True, **options):
                        pass
        with trio.CancelScope() as scope:
            async with conn.open_sender("q", own_session=True):
                scope.cancel()
                await trio.sleep_forever()
        with trio.CancelScope() as scope:
            scope.cancel()
            async with conn.open_sender("q", own_session=True):
                raise AssertionError("not reached")
        await wait_all_tasks_blocked()
        assert len(conn.engine.channels.ours) == before


async def test_session_beyond_channel_max_of_the_peer_is_refused_here() -> None:
    async with served(accept={"limits": amqp.Limits(channel_max=1)}) as conn:
        async with conn.open_session():
            with pytest.raises(amqp.LocalProtocolError, match="channel-max"):
                async with conn.open_session():
                    pass
        async with conn.open_session():
            pass


@pytest.mark.parametrize("side", ["ours", "the peer's"])
async def test_connection_begins_a_session_for_links_that_the_default_one_has_no_handle_for(
    side: str,
) -> None:
    narrow = amqp.Limits(handle_max=2)
    ours, theirs = (narrow, None) if side == "ours" else (None, narrow)
    async with trio.open_nursery() as nursery:
        container = amqp.Container("shop")
        [listener] = await nursery.start(partial(container.serve, "amqp://127.0.0.1:0", limits=theirs))
        async with amqp.open_connection(listener.url, limits=ours) as conn, AsyncExitStack() as stack:
            senders = [await stack.enter_async_context(conn.open_sender("tea")) for _ in range(7)]
            assert conn.statistics()["sessions"] == 3
            for sender in senders:
                assert await sender.send("one") == amqp.Accepted()
            await senders[0].aclose()
            await stack.enter_async_context(conn.open_sender("tea"))  # the newest session has room
            assert conn.statistics()["sessions"] == 3
        nursery.cancel_scope.cancel()


async def test_links_that_open_at_once_keep_to_the_handle_max_of_the_peer(autojump_clock: MockClock) -> None:
    """Its begin has it, and arrives after the first attach is written."""
    _ = autojump_clock
    async with dialled(begin=False) as (conn, peer), trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(conn.open_sender("q").__aenter__)
        await peer.expect("begin")
        await peer.expect("attach", handle=0)
        await peer.expect_nothing(1)
        await peer.send(frame("begin", remote_channel=0, handle_max=1, **WINDOWS))
        await peer.expect("attach", handle=1)
        await peer.expect("begin")
        assert (await peer.expect("attach", handle=0)).channel == 1
        nursery.cancel_scope.cancel()


async def test_link_does_not_end_with_a_session_that_was_ended_for_another(autojump_clock: MockClock) -> None:
    _ = autojump_clock
    async with dialled(begin=False) as (conn, peer), trio.open_nursery() as nursery:
        opened: list[amqp.Sender] = []

        async def refused() -> None:
            with pytest.raises(amqp.LinkRefusedError, match="no queue 'bad'"):
                await conn.open_sender("bad").__aenter__()

        async def good() -> None:
            opened.append(await conn.open_sender("good").__aenter__())

        nursery.start_soon(refused)
        await peer.expect("begin")
        await peer.expect("attach")
        nursery.start_soon(good)
        await peer.expect_nothing(1)
        begin = frame("begin", remote_channel=0, **WINDOWS)
        await peer.send(begin, frame("end", error=NOT_FOUND))
        await peer.expect("end")
        await peer.accept_begin()
        await peer.accept_attach(credit=1)
        await wait_all_tasks_blocked()
        assert len(opened) == 1
        nursery.cancel_scope.cancel()


async def test_links_that_come_back_keep_to_the_handle_max_of_another_peer() -> None:
    async with trio.open_nursery() as nursery, AsyncExitStack() as stack:
        containers = [amqp.Container(name) for name in ("wide", "narrow")]
        urls: list[str] = []
        for container, highest in zip(containers, (7, 2), strict=True):
            container.add_queue("tea")
            serve = partial(container.serve, limits=amqp.Limits(handle_max=highest))
            [listener] = await nursery.start(serve, "amqp://127.0.0.1:0")
            urls.append(listener.url)
        conn = await stack.enter_async_context(amqp.open_connection(urls, reconnect=True))
        senders = [await stack.enter_async_context(conn.open_sender("tea")) for _ in range(8)]
        [peer] = containers[0].connected
        peer.close("amqp:connection:forced", "go on at the other")
        for sender in senders:
            assert await sender.send("one") == amqp.Accepted()
        assert conn.remote.container_id == "narrow"
        assert conn.statistics()["sessions"] == 3
        await stack.aclose()
        nursery.cancel_scope.cancel()
