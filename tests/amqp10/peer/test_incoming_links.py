"""Links that the peer opens to us: look, then accept or refuse."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.naive.performatives import frame

from .helpers import detached, dialled, served


def attach(handle: int = 0, *, sender: bool = True, **fields: Any) -> bytes:
    usual: dict[str, Any] = {
        "name": f"theirs-{handle}",
        "handle": handle,
        "role": not sender,
        "source": ("source", {"address": "from"}),
        "target": ("target", {"address": "to"}),
        "initial_delivery_count": 0 if sender else None,
    }
    return frame("attach", **(usual | fields))


async def test_link_can_be_looked_at_before_it_is_accepted(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        await peer.send(attach(properties={"p": 1}))
        link = await conn.incoming_links().__anext__()
        assert isinstance(link, amqp.IncomingReceiver)
        assert link.name == "theirs-0"
        assert link.address == "to"
        assert link.remote.properties == {"p": 1}
        assert link.connection is conn
        assert repr(link) == "<IncomingReceiver 'theirs-0' address='to'>"
        await peer.expect_nothing(10)
        async with link.accept(credit=7, max_message_size=99, properties={"q": 2}, capabilities=("c",)):
            got = await peer.expect("attach", name="theirs-0", role=True, max_message_size=99)
            assert got["source"] == ("source", {"address": "from"})
            assert got["target"] == ("target", {"address": "to"})
            assert got["properties"] == {"q": 2}
            await peer.expect("flow", link_credit=7)


async def test_sender_is_accepted_with_what_we_answer(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        source = ("source", {"address": None, "dynamic": True, "filter": {"f": ("x:f", 1)}, "durable": 1})
        await peer.send(attach(sender=False, source=source, snd_settle_mode=1))
        link = await conn.incoming_links().__anext__()
        assert isinstance(link, amqp.IncomingSender)
        assert link.dynamic
        assert link.address is None
        async with link.accept(address="made"):
            got = await peer.expect("attach", role=False, snd_settle_mode=1)
            assert got["source"][1]["address"] == "made"
            assert got["source"][1]["durable"] == 1
            assert got["source"][1].get("filter") is None
        await peer.send(attach(1, sender=False))
        link = await conn.incoming_links().__anext__()
        assert isinstance(link, amqp.IncomingSender)
        assert not link.dynamic
        async with link.accept(source=amqp.Source(address="other"), target=amqp.Target(address="there")):
            got = await peer.skip_to("attach")
            assert got["source"] == ("source", {"address": "other"})
            assert got["target"] == ("target", {"address": "there"})


@pytest.mark.parametrize("sender", [True, False])
async def test_accepting_a_dynamic_node_needs_the_address_that_was_made(
    sender: bool, autojump_clock: MockClock
) -> None:
    name = "target" if sender else "source"
    async with dialled() as (conn, peer):
        asked: dict[str, Any] = {name: (name, {"dynamic": True})}
        await peer.send(attach(sender=sender, **asked))
        link: Any = await conn.incoming_links().__anext__()
        with pytest.raises(amqp.LocalProtocolError, match="create one, and accept with its address"):
            link.accept()
        made: Any = {"address": "made", "dynamic": True}
        terminus = amqp.Target(**made) if sender else amqp.Source(**made)
        async with link.accept(**{name: terminus}):
            got = await peer.expect("attach")
            assert got[name] == (name, made)


async def test_node_properties_are_echoed_for_a_dynamic_source_only(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        for handle, dynamic in enumerate([True, None]):
            fields = {"dynamic": dynamic, "dynamic_node_properties": {"x-colour": "red"}}
            await peer.send(attach(handle, sender=False, source=("source", fields)))
            link = await conn.incoming_links().__anext__()
            assert isinstance(link, amqp.IncomingSender)
            async with link.accept(address="made"):
                got = await peer.skip_to("attach")
                assert bool(got["source"][1].get("dynamic_node_properties")) is bool(dynamic)


async def test_refused_link_has_no_terminus_and_goes(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        await peer.send(attach(0), attach(1, sender=False), attach(2))
        links = conn.incoming_links()
        await (await links.__anext__()).refuse("amqp:not-found", "no such node")
        error = ("error", {"condition": "amqp:not-found", "description": "no such node"})
        await peer.expect("attach", target=None)
        await peer.expect("detach", closed=True, error=error)
        await (await links.__anext__()).refuse(amqp.Condition.UNAUTHORIZED_ACCESS)
        await peer.expect("attach", source=None)
        await peer.expect("detach", error=("error", {"condition": "amqp:unauthorized-access"}))
        await (await links.__anext__()).refuse()
        await peer.expect("attach")
        await peer.expect("detach", error=("error", {"condition": "amqp:not-allowed"}))


async def test_link_is_answered_once(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        await peer.send(attach(0), attach(1))
        links = conn.incoming_links()
        first, second = await links.__anext__(), await links.__anext__()
        accepting = first.accept()
        await accepting.__aenter__()
        await peer.expect("attach", name="theirs-0")
        await peer.expect("flow")
        for again in (accepting, first.accept()):
            with pytest.raises(amqp.LocalProtocolError, match="accepted or refused already"):
                await again.__aenter__()
        await first.refuse()
        await second.refuse()
        await second.refuse()
        with pytest.raises(amqp.LocalProtocolError, match="accepted or refused already"):
            await second.accept().__aenter__()
        await peer.expect("attach", name="theirs-1")
        await peer.expect("detach")
        await peer.expect_nothing(1)


@pytest.mark.parametrize("condition", [None, "x:y"])
async def test_link_that_the_peer_takes_back_meanwhile_is_one_that_is_over(
    condition: str | None, autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer):
        await peer.send(attach(0), attach(1, sender=False), attach(2))
        links = conn.incoming_links()
        incoming: Any = [await links.__anext__() for _ in range(3)]
        await peer.send(*(detached(handle, condition) for handle in range(3)))
        await wait_all_tasks_blocked()
        async with incoming[0].accept() as receiver:
            with pytest.raises(amqp.LinkDetachedError) as caught:
                await receiver.receive()
            assert caught.value.condition == condition
        async with incoming[1].accept() as sender:
            with pytest.raises(amqp.LinkDetachedError) as caught:
                await sender.send("x")
            assert caught.value.condition == condition
        await incoming[2].refuse("amqp:not-found")
        assert not conn.closed


async def test_link_whose_connection_is_lost_meanwhile_is_one_that_is_over(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        await peer.send(attach(0))
        link: Any = await conn.incoming_links().__anext__()
        await peer.aclose()
        await wait_all_tasks_blocked()
        async with link.accept() as receiver:
            with pytest.raises(amqp.ConnectionClosedError):
                await receiver.receive()


async def test_cancelled_opening_of_a_client_does_not_end_its_connection() -> None:
    failed: list[BaseException] = []

    async def handle(conn: amqp.Connection) -> None:
        async def one(link: Any) -> None:
            try:
                async with link.accept() as receiver:
                    async for delivery in receiver:
                        delivery.accept()
            except BaseException as failure:
                failed.append(failure)
                raise

        async with trio.open_nursery() as nursery:
            async for link in conn.incoming_links():
                nursery.start_soon(one, link)

    async with served(handle) as conn:
        for steps in range(30):
            with trio.CancelScope() as scope:

                async def cancel(after: int, which: trio.CancelScope) -> None:
                    for _ in range(after):
                        await trio.lowlevel.checkpoint()
                    which.cancel()

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(cancel, steps, scope)
                    async with conn.open_sender("q"):
                        await trio.sleep_forever()
        async with conn.open_sender("q") as sender:
            await sender.send("still there")
    assert not failed


async def test_modes_of_the_peer_are_taken() -> None:
    got: list[Any] = []

    async def handle(conn: amqp.Connection) -> None:
        async for link in conn.incoming_links():
            assert isinstance(link, amqp.IncomingReceiver)
            async with link.accept() as receiver:
                delivery = await receiver.receive()
                got.append((link.remote.snd_settle_mode, link.remote.rcv_settle_mode, delivery.settled))
                delivery.accept()
                await delivery.wait_settled()

    async with served(handle) as conn:
        for guarantee in ("at-most-once", "at-least-once", "exactly-once"):
            async with conn.open_sender("q", guarantee=guarantee) as sender:
                await sender.send("x")
    assert got == [(1, 0, True), (0, 0, False), (0, 1, False)]


@pytest.mark.parametrize("mode", [0, 1])
async def test_receiver_is_accepted_with_the_settle_mode_that_the_sender_wants(
    mode: int, autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer):
        await peer.send(attach(rcv_settle_mode=mode))
        link = await conn.incoming_links().__anext__()
        async with link.accept():
            await peer.expect("attach", role=True, rcv_settle_mode=mode or None)


@pytest.mark.parametrize("mode", [0, 1, 2])
async def test_sender_is_accepted_with_the_settle_mode_that_the_receiver_wants(
    mode: int, autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer):
        await peer.send(attach(sender=False, snd_settle_mode=mode))
        link = await conn.incoming_links().__anext__()
        async with link.accept():
            got = await peer.expect("attach", role=False)
            assert (2 if got["snd_settle_mode"] is None else got["snd_settle_mode"]) == mode
