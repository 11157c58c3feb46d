"""A link is opened, or refused, or left while it opens (2.6.3)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.naive.peer import ScriptedPeer as NaivePeer
from tests.naive.performatives import frame

from .helpers import answer, answer_attach, both, detached, dialled, opening, served

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


RELAY = "ANONYMOUS-RELAY"


@asynccontextmanager
async def to_a_peer_that_offers(*capabilities: str) -> AsyncGenerator[tuple[amqp.Connection, Any]]:
    ours, theirs = memory_stream_pair()
    peer = NaivePeer(theirs)
    opened: list[Any] = []

    async def answer() -> None:
        opened.append(await peer.accept_open(offered_capabilities=list(capabilities)))
        await peer.accept_begin()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        async with amqp.open_connection(ours, close_timeout=0) as conn:
            assert opened[0]["desired_capabilities"] == [RELAY]
            yield conn, peer
        await peer.aclose()


@both
@pytest.mark.parametrize(
    ("condition", "raised"),
    [
        ("amqp:not-found", amqp.LinkRefusedError),
        ("amqp:unauthorized-access", amqp.LinkRefusedError),
        ("com.example:whatever", amqp.LinkRefusedError),
        ("amqp:link:redirect", amqp.LinkRedirectError),
        ("amqp:link:stolen", amqp.LinkStolenError),
        (None, amqp.LinkRefusedError),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
async def test_refused_link_raises_on_entering(
    kind: str, condition: str | None, raised: Any, at_once: bool, autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer):
        null = {"target" if kind == "sender" else "source": None}

        async def refuse() -> None:
            goodbye = detached(0, condition, "because")
            await answer_attach(peer, *([goodbye] if at_once else []), **null)
            if not at_once:
                await wait_all_tasks_blocked()
                await peer.send(goodbye)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(refuse)
            with pytest.raises(raised) as caught:
                await opening(conn, kind).__aenter__()
        assert type(caught.value) is raised
        assert caught.value.condition == condition
        assert caught.value.closed
        if condition is not None:
            assert f"{condition}: because" in str(caught.value)
            assert str(caught.value.error.condition) == condition
        await peer.skip_to("detach")
        assert not conn.closed


@both
async def test_link_is_attached_again_when_the_peers_unsettled_map_is_incomplete(
    kind: str, autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer):

        async def remember_too_much() -> None:
            first = await peer.expect("attach", unsettled=None)
            await answer(peer, first, unsettled={b"t": None}, incomplete_unsettled=True)
            first_detach = await peer.skip_to("detach")
            assert not first_detach["closed"]
            second = await peer.expect("attach", name=first["name"], handle=1, unsettled=None)
            await peer.send(detached(0, closed=False))
            await answer(peer, second)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(remember_too_much)
            link = await opening(conn, kind).__aenter__()
        assert not link.closed
        assert link.remote.unsettled is None


@both
async def test_link_is_given_up_when_the_peers_unsettled_map_is_incomplete_again(
    kind: str, autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer):

        async def remember_too_much() -> None:
            first = await peer.expect("attach")
            await answer(peer, first, unsettled={b"t": None}, incomplete_unsettled=True)
            await peer.skip_to("detach")
            second = await peer.expect("attach")
            await peer.send(detached(0, closed=False))
            await answer(peer, second, unsettled={b"t": None}, incomplete_unsettled=True)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(remember_too_much)
            with pytest.raises(amqp.LinkDetachedError, match="unsettled-map-size"):
                await opening(conn, kind).__aenter__()
        assert (await peer.skip_to("detach"))["closed"]
        assert not conn.closed


@both
async def test_link_that_ends_with_the_answer_was_open(kind: str, autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer), trio.open_nursery() as nursery:
        nursery.start_soon(answer_attach, peer, detached(0))
        async with opening(conn, kind) as link:
            if kind == "receiver":
                assert [delivery async for delivery in link] == []
            else:
                with pytest.raises(amqp.LinkDetachedError, match="was detached, without an error") as ended:
                    await link.send("x")
                assert not isinstance(ended.value, amqp.LinkRefusedError)


@both
async def test_link_that_ends_with_the_answer_by_an_error_was_refused(
    kind: str, autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer), trio.open_nursery() as nursery:
        nursery.start_soon(answer_attach, peer, detached(0, "x:y"))
        with pytest.raises(amqp.LinkRefusedError, match="x:y"):
            await opening(conn, kind).__aenter__()


@both
async def test_own_end_has_no_fields_when_the_program_names_none(
    kind: str, autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer):
        with trio.move_on_after(1):
            await opening(conn, kind, name="mine").__aenter__()
        attach = await peer.expect("attach", name="mine")
        terminus = "source" if kind == "sender" else "target"
        assert attach[terminus] == (terminus, {})


@both
async def test_cancelled_opening_is_detached_again(kind: str, autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        with trio.move_on_after(1) as scope:
            await opening(conn, kind, name="mine").__aenter__()
        assert scope.cancelled_caught
        attach = await peer.expect("attach", name="mine")
        if kind == "receiver":
            await peer.expect("flow")
        await peer.expect("detach", closed=True)
        await peer.send(
            frame(
                "attach",
                name="mine",
                handle=0,
                role=kind == "sender",
                source=attach["source"],
                target=attach["target"],
                initial_delivery_count=0,
            ),
            detached(0),
        )
        await wait_all_tasks_blocked()
        assert not conn.closed
        assert len(conn.engine.names) == 0


async def test_sender_without_an_address_is_attached_when_the_peer_offers_the_relay() -> None:
    async with to_a_peer_that_offers("other", RELAY) as (conn, peer), trio.open_nursery() as nursery:
        nursery.start_soon(partial(peer.accept_attach, target=("target", {})))
        sender = await conn.open_sender(None).__aenter__()
        assert sender.address is None


async def test_sender_without_an_address_is_refused_here_when_the_peer_does_not_offer_the_relay() -> None:
    async with to_a_peer_that_offers("other") as (conn, peer):
        with pytest.raises(amqp.GuaranteeNotSupportedError, match=f"does not offer {RELAY}"):
            await conn.open_sender(None).__aenter__()
        with pytest.raises(amqp.GuaranteeNotSupportedError, match=f"does not offer {RELAY}"):
            await conn.open_sender(None, own_session=True).__aenter__()
        await conn.aclose()
        await peer.expect("close")  # and no attach, nor a session for it


async def test_sender_without_an_address_tries_all_the_same_when_it_is_told_to() -> None:
    async with to_a_peer_that_offers() as (conn, peer), trio.open_nursery() as nursery:
        nursery.start_soon(partial(peer.accept_attach, target=("target", {})))
        async with conn.open_sender(None, target=amqp.Target()) as sender:
            assert sender.address is None
            nursery.cancel_scope.cancel()


async def test_sender_without_an_address_is_refused_when_our_open_did_not_desire_the_relay() -> None:
    async def handle(conn: amqp.Connection) -> None:
        with pytest.raises(amqp.LocalProtocolError, match=f"desired_capabilities='{RELAY}'"):
            await conn.open_sender(None).__aenter__()
        tried.set()

    tried = trio.Event()
    async with served(handle):
        await tried.wait()
