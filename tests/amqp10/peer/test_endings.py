"""How everything ends: by the peer or by us, with an error or without, and what each call then says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.naive.performatives import frame, sections

from .helpers import detached, dialled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.naive.peer import ScriptedPeer

ERROR = ("error", {"condition": "amqp:resource-deleted", "description": "the node is no more"})


class Talk:
    """A connection to a scripted peer, with a receiver (handle 0) and a sender (handle 1) on one session."""

    def __init__(self, conn: amqp.Connection, peer: ScriptedPeer) -> None:
        self.conn = conn
        self.peer = peer
        self.session: amqp.Session
        self.receiver: amqp.Receiver
        self.sender: amqp.Sender


@asynccontextmanager
async def talk() -> AsyncGenerator[Talk]:
    async with dialled() as (conn, peer):
        both = Talk(conn, peer)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.accept_begin)
            both.session = await conn.open_session().__aenter__()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.accept_attach)
            both.receiver = await both.session.open_receiver("in").__aenter__()
        await peer.expect("flow", handle=0, link_credit=100)

        async def attach_with_credit() -> None:
            await peer.accept_attach(credit=10)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(attach_with_credit)
            both.sender = await both.session.open_sender("out").__aenter__()
            await both.sender.wait_sendable()
        yield both


async def send_one(peer: ScriptedPeer, number: int = 0, *, settled: bool = False) -> None:
    await peer.send(
        frame(
            "transfer",
            channel=1,
            handle=0,
            delivery_id=number,
            delivery_tag=bytes([number]),
            settled=settled,
            payload=sections(("amqp-value", number)),
        )
    )


async def peer_detaches(t: Talk) -> None:
    await t.peer.send(on(1, detached(0)), on(1, detached(1)))


async def peer_detaches_for_now(t: Talk) -> None:
    await t.peer.send(on(1, detached(0, closed=False)), on(1, detached(1, closed=False)))


async def peer_detaches_with_error(t: Talk) -> None:
    await t.peer.send(
        *(on(1, detached(handle, "amqp:resource-deleted", "the node is no more")) for handle in (0, 1))
    )


async def peer_ends(t: Talk) -> None:
    await t.peer.send(frame("end", channel=1))


async def peer_ends_with_error(t: Talk) -> None:
    await t.peer.send(frame("end", channel=1, error=ERROR))


async def peer_closes(t: Talk) -> None:
    await t.peer.send(frame("close"))


async def peer_closes_with_error(t: Talk) -> None:
    await t.peer.send(frame("close", error=ERROR))


async def transport_ends(t: Talk) -> None:
    await t.peer.stream.aclose()


async def transport_ends_within_a_frame(t: Talk) -> None:
    await t.peer.send(frame("close")[:9])
    await t.peer.stream.aclose()


async def peer_is_silent(t: Talk) -> None:
    await trio.sleep(70)


async def peer_talks_nonsense(t: Talk) -> None:
    await t.peer.send(b"\0\0\0\7\2\0\0\0")


async def link_is_closed_here(t: Talk) -> None:
    async def answer(handle: int) -> None:
        await t.peer.skip_to("detach")
        await t.peer.send(on(1, detached(handle)))

    links: tuple[trio.abc.AsyncResource, ...] = (t.receiver, t.sender)
    for handle, link in enumerate(links):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer, handle)
            nursery.start_soon(link.aclose)


async def session_is_closed_here(t: Talk) -> None:
    t.conn.close_timeout = 0.1
    await t.session.aclose()


async def connection_is_closed_here(t: Talk) -> None:
    t.conn.close_timeout = 0.1
    await t.conn.aclose()


def on(channel: int, octets: bytes) -> bytes:
    """The same frame on another channel."""
    return octets[:6] + channel.to_bytes(2, "big") + octets[8:]


Ending = Callable[[Talk], Awaitable[None]]
DETACHED, ENDED = amqp.LinkDetachedError, amqp.SessionEndedError
CLOSED, HERE = amqp.ConnectionClosedError, trio.ClosedResourceError

# how it ends, what iteration raises (None: it ends), what all other calls raise
ENDINGS: list[tuple[Ending, type[Exception] | None, type[Exception]]] = [
    (peer_detaches, None, DETACHED),
    (peer_detaches_for_now, None, DETACHED),
    (peer_detaches_with_error, DETACHED, DETACHED),
    (peer_ends, None, DETACHED),
    (peer_ends_with_error, ENDED, ENDED),
    (peer_closes, None, DETACHED),
    (peer_closes_with_error, CLOSED, CLOSED),
    (transport_ends, CLOSED, CLOSED),
    (transport_ends_within_a_frame, CLOSED, CLOSED),
    (peer_is_silent, CLOSED, CLOSED),
    (peer_talks_nonsense, amqp.RemoteProtocolError, amqp.RemoteProtocolError),
    (link_is_closed_here, None, HERE),
    (session_is_closed_here, None, HERE),
    (connection_is_closed_here, None, HERE),
]
WITH_ERROR = {peer_detaches_with_error, peer_ends_with_error, peer_closes_with_error}


async def iterate(receiver: amqp.Receiver) -> None:
    async for _ in receiver:
        raise AssertionError("nothing came")


def calls(t: Talk) -> dict[str, Callable[[], Awaitable[object]]]:
    """Everything that may wait for the peer on a link."""
    return {
        "receive": t.receiver.receive,
        "receive_many": lambda: t.receiver.receive_many(3),
        "drain": t.receiver.drain,
        "send": lambda: t.sender.send("x"),
        "flush": t.sender.flush,
    }


def ending_ids(row: Any) -> str:
    return getattr(row, "__name__", "")


endings = pytest.mark.parametrize(("end", "iteration", "others"), ENDINGS, ids=ending_ids)


@endings
@pytest.mark.parametrize("waiting", [True, False], ids=["waiting", "afterwards"])
async def test_iteration_ends_or_raises_as_promised(
    end: Ending,
    iteration: type[Exception] | None,
    others: type[Exception],
    waiting: bool,
    autojump_clock: MockClock,
) -> None:
    async with talk() as t:
        caught: list[Exception | None] = []

        async def run() -> None:
            try:
                await iterate(t.receiver)
            except Exception as raised:
                caught.append(raised)
            else:
                caught.append(None)

        async with trio.open_nursery() as nursery:
            if waiting:
                nursery.start_soon(run)
                await wait_all_tasks_blocked()
            await end(t)
            if not waiting:
                await wait_all_tasks_blocked()
                await run()
        [raised] = caught
        assert type(raised) is (type(None) if iteration is None else iteration)
        if end in WITH_ERROR:
            assert getattr(raised, "condition", None) == "amqp:resource-deleted"
            assert "the node is no more" in str(raised)


@endings
@pytest.mark.parametrize("call", ["receive", "receive_many", "drain", "send", "flush"])
@pytest.mark.parametrize("waiting", [True, False], ids=["waiting", "afterwards"])
async def test_call_raises_as_promised(
    end: Ending,
    iteration: type[Exception] | None,
    others: type[Exception],
    call: str,
    waiting: bool,
    autojump_clock: MockClock,
) -> None:
    async with talk() as t:
        caught: list[Exception] = []
        if call == "flush":
            await t.sender.transmit("left unsettled")

        async def run() -> None:
            with pytest.raises(others) as info:
                await calls(t)[call]()
            caught.append(info.value)

        async with trio.open_nursery() as nursery:
            if waiting:
                nursery.start_soon(run)
                await wait_all_tasks_blocked()
            await end(t)
            if not waiting:
                await wait_all_tasks_blocked()
                await run()
        assert type(caught[0]) is others
        if issubclass(others, amqp.AmqpError) and others is not amqp.RemoteProtocolError:
            assert isinstance(caught[0], trio.BrokenResourceError)
        if end in WITH_ERROR:
            assert getattr(caught[0], "condition", None) == "amqp:resource-deleted"


@endings
async def test_call_that_does_not_wait_raises_as_promised(
    end: Ending, iteration: type[Exception] | None, others: type[Exception], autojump_clock: MockClock
) -> None:
    async with talk() as t:
        await send_one(t.peer)
        delivery = await t.receiver.receive()
        sent = t.sender.send_nowait("x")
        await end(t)
        await wait_all_tasks_blocked()
        for call in (t.receiver.receive_nowait, lambda: t.receiver.grant(1), lambda: t.sender.send_nowait(1)):
            with pytest.raises(others):
                call()
        for wait in (sent.outcome, sent.wait_settled, delivery.wait_settled):
            with pytest.raises(others):
                await wait()
        # What a detach leaves that neither closes nor has an error is live (2.7.6).
        match = "its link is gone"
        if end is peer_detaches_for_now:
            delivery.release()
            match = "already given"
        for settle in (delivery.accept, delivery.reject, delivery.release, delivery.modify):
            with pytest.raises(amqp.LocalProtocolError, match=match):
                settle()
        assert delivery.message.body == 0
        assert t.receiver.closed
        assert t.sender.closed


@endings
async def test_outcome_that_came_before_the_end_is_kept(
    end: Ending, iteration: type[Exception] | None, others: type[Exception], autojump_clock: MockClock
) -> None:
    async with talk() as t:
        sent = t.sender.send_nowait("x")
        accepted: Any = ("accepted", {})
        await t.peer.send(
            on(1, frame("disposition", role=True, first=0, settled=True, state=accepted)),
        )
        await wait_all_tasks_blocked()
        await end(t)
        assert isinstance(await sent.outcome(), amqp.Accepted)
        await sent.wait_settled()


# What is left when we close the link ourselves is given back, all of it.
@pytest.mark.parametrize(
    ("end", "others"), [(end, others) for end, _, others in ENDINGS if end is not link_is_closed_here]
)
async def test_deliveries_nobody_took_are_dropped_but_for_those_sent_at_most_once(
    end: Ending, others: type[Exception], autojump_clock: MockClock
) -> None:
    async with talk() as t:
        await send_one(t.peer, 0)
        await send_one(t.peer, 1, settled=True)
        await wait_all_tasks_blocked()
        assert t.receiver.buffered == 2
        await end(t)
        await wait_all_tasks_blocked()
        assert (await t.receiver.receive()).message.body == 1
        with pytest.raises(others):
            await t.receiver.receive()


@endings
async def test_ending_never_cancels_the_body(
    end: Ending, iteration: type[Exception] | None, others: type[Exception], autojump_clock: MockClock
) -> None:
    went_on = False
    async with talk() as t:
        await end(t)
        await trio.sleep(100)
        went_on = True
    assert went_on


@pytest.mark.parametrize(
    ("end", "raised"),
    [
        (peer_closes, None),
        (peer_closes_with_error, CLOSED),
        (transport_ends, CLOSED),
        (transport_ends_within_a_frame, CLOSED),
        (peer_is_silent, CLOSED),
        (peer_talks_nonsense, amqp.RemoteProtocolError),
        (connection_is_closed_here, None),
    ],
    ids=ending_ids,
)
@pytest.mark.parametrize("waiting", [True, False], ids=["waiting", "afterwards"])
async def test_wait_closed_and_incoming_links_tell_how_the_connection_ended(
    end: Ending, raised: type[Exception] | None, waiting: bool, autojump_clock: MockClock
) -> None:
    async with talk() as t:
        ended: list[Exception | None] = []

        async def watch() -> None:
            try:
                await t.conn.wait_closed()
            except Exception as failure:
                ended.append(failure)
            else:
                ended.append(None)

        async def watch_links() -> None:
            try:
                async for _ in t.conn.incoming_links():
                    raise AssertionError("nobody attached")
            except Exception as failure:
                ended.append(failure)
            else:
                ended.append(None)

        async with trio.open_nursery() as nursery:
            if waiting:
                nursery.start_soon(watch)
                nursery.start_soon(watch_links)
                await wait_all_tasks_blocked()
            await end(t)
            if not waiting:
                await trio.sleep(10)
                nursery.start_soon(watch)
                nursery.start_soon(watch_links)
        assert [type(one) for one in ended] == [type(None) if raised is None else raised] * 2
        assert ended[0] is None or ended[0] is not ended[1]
        assert t.conn.closed


@pytest.mark.parametrize(
    ("end", "raised"),
    [
        (peer_closes, CLOSED),
        (peer_closes_with_error, CLOSED),
        (transport_ends, CLOSED),
        (transport_ends_within_a_frame, CLOSED),
        (peer_is_silent, CLOSED),
        (peer_talks_nonsense, amqp.RemoteProtocolError),
        (connection_is_closed_here, HERE),
    ],
    ids=ending_ids,
)
@pytest.mark.parametrize("waiting", [True, False], ids=["waiting", "afterwards"])
@pytest.mark.parametrize("what", ["session", "sender", "receiver", "own session"])
async def test_opening_raises_how_the_connection_ended(
    end: Ending, raised: type[Exception], waiting: bool, what: str, autojump_clock: MockClock
) -> None:
    async with talk() as t:

        async def opening() -> None:
            things: dict[str, Any] = {
                "session": t.conn.open_session(),
                "sender": t.conn.open_sender("q"),
                "receiver": t.conn.open_receiver("q"),
                "own session": t.conn.open_sender("q", own_session=True),
            }
            with pytest.raises(raised):
                await things[what].__aenter__()

        async with trio.open_nursery() as nursery:
            if waiting:
                nursery.start_soon(opening)
                await wait_all_tasks_blocked()
            await end(t)
            if not waiting:
                await wait_all_tasks_blocked()
                await opening()


async def test_lost_connection_names_what_the_transport_said(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        await peer.aclose()
        with pytest.raises(amqp.ConnectionClosedError, match="ended the transport without a close") as caught:
            await conn.wait_closed()
        assert caught.value.error is None
        assert caught.value.condition is None


async def test_session_that_ends_is_gone_for_new_links(autojump_clock: MockClock) -> None:
    async with talk() as t:
        await peer_ends_with_error(t)
        await wait_all_tasks_blocked()
        with pytest.raises(ENDED, match="resource-deleted"):
            await t.session.open_sender("q").__aenter__()
        assert t.session.is_over
    async with talk() as t:
        await peer_ends(t)
        await wait_all_tasks_blocked()
        with pytest.raises(ENDED):
            await t.session.open_sender("q").__aenter__()
    async with talk() as t:
        await session_is_closed_here(t)
        with pytest.raises(HERE):
            await t.session.open_receiver("q").__aenter__()
