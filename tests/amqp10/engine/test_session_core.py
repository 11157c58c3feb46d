"""What a session does for its links: turns to send, one flow for many, room for transfers (2.5.6)."""

from __future__ import annotations

from typing import Any

from tests.naive.script import expected
from trio_amqp10.amqp10.engine.events import LinkAttached
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.spec.messaging import Target

from .helpers import Owner, attach, begun, flow, receiving, sending, transfer

SMALL: dict[str, Any] = {"max_frame_size": 512}


def test_session_opens_its_window_again_when_half_of_it_is_used() -> None:
    link, script = receiving(Limits(incoming_window=4))
    script << transfer(0)
    script.expect_nothing()
    script << transfer(1)
    script >> expected("flow", incoming_window=4, next_incoming_id=2, handle=None)
    assert script.last is not None
    assert [script.last[name] for name in ("delivery_count", "link_credit", "available", "drain")] == [
        None
    ] * 4
    assert len(link.queue) == 2


def test_session_sends_no_more_transfers_than_the_window_of_the_peer_has_room_for() -> None:
    link, script = sending(credit=0)
    script << flow(handle=0, delivery_count=0, link_credit=100, incoming_window=2)
    link.owner = owner = Owner()
    link.send(b"0")
    link.send(b"1")
    assert not link.sendable()
    link.await_sendable()
    script >> expected("transfer", delivery_id=0) >> expected("transfer", delivery_id=1)
    script.touched.clear()
    script << flow(next_incoming_id=1, incoming_window=1)
    assert not script.touched
    script << flow(next_incoming_id=1, incoming_window=2)
    assert script.touched == [owner]
    link.send(b"2")
    script >> expected("transfer", delivery_id=2)


def test_session_takes_turns_with_deliveries_in_progress_and_stops_at_the_window() -> None:
    session, script = begun(remote=SMALL)
    links = [session.sender(name) for name in "ab"]
    for link in links:
        link.attach(target=Target(address="q"))
        script >> expected("attach")
        script << attach(name=link.name, handle=link.handle, role=True, target=("target", {}))
        script << flow(handle=link.handle, delivery_count=0, link_credit=1, incoming_window=3)
    for link in links:
        link.send(bytes(1000))
    handles = []
    script.collect()
    while script.inbox.frames:
        handles.append(script.inbox.take(expected("transfer", more=True))["handle"])
    assert handles == [0, 1, 0]
    script << flow(next_incoming_id=3, incoming_window=1)
    script >> expected("transfer", handle=1, more=True)
    script << flow(next_incoming_id=4, incoming_window=100)
    script >> expected("transfer", handle=0, more=None) >> expected("transfer", handle=1, more=None)
    script.expect_nothing()


def test_session_writes_one_flow_however_often_it_is_asked() -> None:
    session, script = begun()
    session.owe_flow()
    session.connection.receive_data(flow(echo=True) + flow(echo=True), 0.0)
    script >> expected("flow", handle=None, next_incoming_id=0, incoming_window=2048)
    script.expect_nothing()


def test_session_opens_its_window_only_with_a_flow_that_says_so() -> None:
    link, script = receiving(Limits(incoming_window=8))
    script << attach(name="y", role=True, handle=1, initial_delivery_count=None)
    script << transfer(0) + flow(handle=1, link_credit=1, echo=True)
    script.expect_nothing()  # the echo waits for our attach
    assert link.session.windows.incoming_window == 7
    script.expect_event(LinkAttached).link.attach()
    script >> expected("attach", name="y") >> expected("flow", handle=1, incoming_window=8)
