"""Figures of connections, sessions and links: what they say while and after messages move."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.engine.connection import Connection as EngineConnection
from trio_amqp10.amqp10.peer.statistics import ConnectionCounters, connection_statistics, totals_of
from trio_amqp10.core.peer_rules import RULES

from .helpers import dialled, served
from .town import visiting

if TYPE_CHECKING:
    import pytest
    from trio.testing import MockClock


async def test_connection_counts_what_passes_as_its_peer_does() -> None:
    container = amqp.Container("town")
    async with container.connect() as conn, conn.open_sender("q") as sender:
        for number in range(10):
            await sender.send(f"message {number}")
        figures = conn.statistics()
        assert (figures["state"], figures["transports"], figures["waiting"]) == ("OPENED", 1, 0)
        assert (figures["sessions"], figures["senders"], figures["receivers"]) == (1, 1, 0)
        assert figures["octets_out"] > 10 * 40
        assert figures["octets_in"] > 100
        assert figures["frames_out"] >= 3 + 10  # open, begin, attach, and a transfer each
        assert 4 <= figures["writes"] <= figures["frames_out"]
        assert figures["reads"] >= 4
        assert json.loads(json.dumps(figures)) == figures


async def test_link_that_is_not_answered_yet_has_the_address_that_was_asked_for(
    autojump_clock: MockClock,
) -> None:
    async def handle(conn: amqp.Connection) -> None:
        await conn.wait_closed()

    async def open_all(conn: amqp.Connection) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(refused, conn.open_sender("orders"))
            nursery.start_soon(refused, conn.open_receiver("replies"))

    async def refused(opening: Any) -> None:
        try:
            async with opening:
                raise AssertionError("nobody accepts it")
        except amqp.LinkRefusedError:
            pass

    async with served(handle) as conn, trio.open_nursery() as nursery:
        nursery.start_soon(open_all, conn)
        await wait_all_tasks_blocked()
        told = sorted((link.statistics() for link in conn.links), key=lambda each: str(each["address"]))
        assert [(each["role"], each["address"]) for each in told] == [
            ("sender", "orders"),
            ("receiver", "replies"),
        ]


async def test_connection_counts_messages_of_links_that_are_no_more() -> None:
    container = amqp.Container("town")
    async with container.connect() as conn:
        for count in (1, 2):
            async with conn.open_sender("q", name="same") as sender:
                for _ in range(count):
                    await sender.send("x")
        session = conn.open_session()
        async with session as its, its.open_receiver("q") as receiver, conn.open_sender("q") as sender:
            await sender.send("x")
            for _ in range(4):
                (await receiver.receive()).accept()
            figures = conn.statistics()
            assert (figures["messages_out"], figures["messages_in"]) == (4, 4)
            [peer] = container.conversations
            theirs = peer.connection.statistics()
            assert (theirs["messages_out"], theirs["messages_in"]) == (4, 4)
        figures = conn.statistics()
        assert (figures["messages_out"], figures["messages_in"]) == (4, 4)
    assert (container.past["messages_out"], container.past["messages_in"]) == (4, 4)


async def test_connection_counts_the_same_octets_and_frames_at_both_ends() -> None:
    ends: list[amqp.Connection] = []

    async def handle(conn: amqp.Connection) -> None:
        ends.append(conn)
        await conn.wait_closed()

    async with served(handle) as conn, conn.open_session():
        await wait_all_tasks_blocked()
        ours, theirs = conn.statistics(), ends[0].statistics()
        assert (ours["octets_out"], ours["frames_out"]) == (theirs["octets_in"], theirs["frames_in"])
        assert (ours["octets_in"], ours["frames_in"]) == (theirs["octets_out"], theirs["frames_out"])
        assert ours["frames_out"] == 3  # open, the begin that goes with it, and another
        assert ours["sessions"] == theirs["sessions"] == 2


async def test_links_and_sessions_of_a_connection_are_those_of_both_ends(autojump_clock: Any) -> None:
    async with dialled() as (conn, peer):
        del peer
        assert [session.engine.channel for session in conn.sessions] == [0]
        assert conn.links == []
    container = amqp.Container()
    async with (
        container.connect() as conn,
        conn.open_sender("a") as sender,
        conn.open_receiver("b", own_session=True) as receiver,
    ):
        assert set(conn.links) == {sender, receiver}
        assert set(conn.sessions) == {sender.session, receiver.session}
        assert sender.session.statistics()["senders"] == 1
        assert receiver.session.statistics()["receivers"] == 1
    assert not conn.links
    assert not conn.sessions
    assert conn.statistics()["state"] == "END"


async def test_session_tells_windows_transfers_and_what_is_unsettled() -> None:
    async with (
        amqp.Container().connect() as conn,
        conn.open_session() as session,
        session.open_sender("q") as sender,
        session.open_receiver("q", credit=10) as receiver,
    ):
        await sender.send("first")
        delivery = await receiver.receive()
        figures = session.statistics()
        assert (figures["state"], figures["channel"]) == ("MAPPED", session.engine.channel)
        assert (figures["transfers_out"], figures["transfers_in"]) == (1, 1)
        assert (figures["unsettled_out"], figures["unsettled_in"]) == (0, 1)
        assert (figures["senders"], figures["receivers"]) == (1, 1)
        assert figures["incoming_window"] == session.engine.windows.incoming_max - 1
        assert figures["outgoing_window"] > 0
        delivery.accept()
        await sender.send(b"x" * 300_000)  # in several frames
        (await receiver.receive()).accept()
        figures = session.statistics()
        assert figures["transfers_out"] >= 4
        assert figures["unsettled_out"] == 0


async def test_links_tell_messages_credit_and_what_is_unsettled() -> None:
    async with (
        amqp.Container().connect() as conn,
        conn.open_sender("q", name="out") as sender,
        conn.open_receiver("q", name="in", credit=10) as receiver,
    ):
        for number in range(3):
            await sender.send(number)
        await wait_all_tasks_blocked()
        first = await receiver.receive()
        sent, got = sender.statistics(), receiver.statistics()
        assert sent == {
            "role": "sender",
            "state": "ATTACHED",
            "name": "out",
            "address": "q",
            "messages": 3,
            "credit": sender.credit,
            "unsettled": 0,
            "draining": False,
            "waiting": 0,
        }
        assert got == {
            "role": "receiver",
            "state": "ATTACHED",
            "name": "in",
            "address": "q",
            "messages": 3,
            "credit": 7,
            "unsettled": 3,
            "available": got["available"],
            "buffered": 2,
            "missettled": 0,
        }
        first.accept()
        assert receiver.unsettled == 2
    assert sender.statistics()["state"] == receiver.statistics()["state"] == "GONE"


async def test_sender_tells_who_waits_for_credit(autojump_clock: Any) -> None:
    async def stingy(conn: amqp.Connection) -> None:
        async for link in conn.incoming_links():
            assert isinstance(link, amqp.IncomingReceiver)
            async with link.accept(credit=0):
                await conn.wait_closed()

    async with served(stingy) as conn, conn.open_sender("sink") as sender:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.send, "x")
            nursery.start_soon(sender.send, "y")
            await wait_all_tasks_blocked()
            assert (sender.statistics()["waiting"], sender.statistics()["credit"]) == (2, 0)
            nursery.cancel_scope.cancel()
        assert sender.statistics()["waiting"] == 0


async def test_totals_go_on_when_the_connection_came_back(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async with (
        visiting(monkeypatch) as (town, conn),
        conn.open_sender("q") as sender,
    ):
        await sender.send("before")
        before = conn.statistics()
        await town.lose()
        await sender.send("after")
        after = conn.statistics()
        assert (before["transports"], after["transports"]) == (1, 2)
        for name in ("octets_in", "octets_out", "frames_in", "frames_out", "reads", "writes"):
            assert after[name] > before[name], name
        assert after["frames_out"] >= before["frames_out"] + 4  # open, begin, attach, transfer
        assert sender.statistics()["messages"] == 2
        assert (before["messages_out"], after["messages_out"]) == (1, 2)


UNORDERED = b"\x00\x53\x77\xa1\x01m\x00\x53\x70\xc0\x04\x02\x40\x50\x05"
"""A body, and after it a header of priority 5: its order is wrong (3.2)."""


async def test_connection_and_container_count_what_they_tolerate_of_a_peer() -> None:
    container = amqp.Container()
    wrong = amqp.Message("x", annotations={"strange": 1}, priority=7)
    async with container.connect() as conn, conn.open_sender("q") as sender:
        for _ in range(2):
            await sender.send(wrong)
        assert conn.statistics()["tolerated"] == {}
        [peer] = container.conversations
        assert peer.connection.statistics()["tolerated"] == {"annotation_keys": 2}
        async with conn.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            assert conn.statistics()["tolerated"] == {}  # nothing of it was read
            assert delivery.message.annotations == {"strange": 1}
            assert conn.statistics()["tolerated"] == {"annotation_keys": 1}
    assert container.past["tolerated_annotation_keys"] == 2


async def test_delivery_counts_sections_out_of_order_when_its_message_is_read() -> None:
    async def send(conn: amqp.Connection) -> None:
        async for link in conn.incoming_links():
            assert isinstance(link, amqp.IncomingSender)
            async with link.accept() as sender:
                await sender.transmit(amqp.Message.from_payload(UNORDERED))
                await conn.wait_closed()

    async with served(send) as conn, conn.open_receiver("q") as receiver:
        delivery = await receiver.receive()
        assert (delivery.message.body, delivery.message.priority) == ("m", 5)
        assert conn.statistics()["tolerated"] == {"section_order": 1}
        delivery.accept()


def test_counts_of_engines_before_are_added() -> None:
    totals = ConnectionCounters()
    for times in (1, 2):
        engine = EngineConnection("x")
        for _ in range(times):
            engine.context.tolerances.note(RULES["handle-max"])
        totals.leave(engine)
    engine = EngineConnection("x")
    engine.context.tolerances.note(RULES["link-credit"])
    tolerated = connection_statistics(engine, totals)["tolerated"]
    assert tolerated == {"handle_max": 3, "link_credit": 1}
    assert totals_of({"octets_in": 5, "tolerated": tolerated}) == {
        "octets_in": 5,
        "tolerated_handle_max": 3,
        "tolerated_link_credit": 1,
    }
