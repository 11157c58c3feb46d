"""What the fields of a flow say, and what they leave out (2.6.7, 2.7.4)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

import pytest

from tests.naive.performatives import frame
from tests.naive.script import expected
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.spec.messaging import Source, Target

from .helpers import BEGIN, flow, opened, receiving, sending
from .links import attached, session_of, transfer

# -- next-incoming-id -----------------------------------------------------------------------------


def test_flow_leaves_next_incoming_id_out_before_the_peers_begin_has_come() -> None:
    connection, script = opened()
    session = connection.session()
    session.begin()
    link = session.receiver("x")
    link.attach(source=Source(address="q"), target=Target())
    link.set_credit(1)
    script >> expected("begin") >> expected("attach")
    script >> expected("flow", next_incoming_id=None, handle=0, link_credit=1)
    script << frame("begin", remote_channel=0, **{**BEGIN, "next_outgoing_id": 7})
    link.set_credit(2)
    script >> expected("flow", next_incoming_id=7, handle=0, link_credit=2)


def test_flow_says_next_incoming_id_as_soon_as_a_begin_has_come_and_counts_on() -> None:
    link, script = receiving(credit=5)
    script << transfer(0, 0, b"m") + transfer(0, 1, b"m")
    link.set_credit(5)
    script >> expected("flow", next_incoming_id=2, handle=0)
    link.session.owe_flow()
    script >> expected("flow", next_incoming_id=2, handle=None)


# -- a flow of the session alone ------------------------------------------------------------------

OF_A_LINK = ["delivery_count", "link_credit", "available", "drain", "properties"]


@pytest.mark.parametrize("field", OF_A_LINK)
def test_flow_of_the_session_alone_says_nothing_of_a_link(field: str) -> None:
    link, script = sending()
    link.available = 8
    link.flow_properties = {"p": 1}
    script << flow(handle=0, delivery_count=0, link_credit=5, drain=True)
    link.send(b"m")
    script >> expected("transfer")
    link.session.owe_flow(link)
    of_link = script.expect("flow", handle=0)
    link.session.owe_flow()
    of_session = script.expect("flow", handle=None)
    assert of_link[field] is not None
    assert of_session[field] is None


# -- what each end says of a link -----------------------------------------------------------------


def test_flow_of_a_sender_says_its_count_and_the_receivers_last_credit_and_drain() -> None:
    link, script = sending(credit=0)
    for credit, drain in ((7, False), (4, True), (9, False)):
        script << flow(handle=0, delivery_count=0, link_credit=credit, drain=drain, echo=True)
        script >> expected("flow", handle=0, delivery_count=0, link_credit=credit, drain=drain or None)
    link.send(b"m")
    link.session.owe_flow(link)
    script >> expected("transfer") >> expected("flow", handle=0, delivery_count=1, link_credit=8)


@pytest.mark.parametrize("count", [0, 1, 2, 77])
def test_count_of_a_sender_is_changed_by_no_flow_of_the_receiver(count: int) -> None:
    link, script = sending(credit=5)
    for _ in range(2):
        link.send(b"m")
    script << flow(handle=0, delivery_count=count, link_credit=5, drain=True)
    assert link.delivery_count == 2


def test_flow_of_a_receiver_says_the_last_count_that_it_knows() -> None:
    link, script = receiving(credit=5, initial_delivery_count=40)
    script << transfer(0, 0, b"m")
    link.set_credit(5)
    script >> expected("flow", handle=0, delivery_count=41)
    script << flow(handle=0, delivery_count=44)
    link.set_credit(5)
    script >> expected("flow", handle=0, delivery_count=44)


def test_flow_of_a_receiver_says_what_the_sender_last_had_available() -> None:
    link, script = receiving(credit=5)
    for available in (42, 3):
        script << flow(handle=0, delivery_count=0, available=available)
        link.set_credit(5)
        script >> expected("flow", handle=0, available=available)
    script << flow(handle=0, delivery_count=0)
    link.set_credit(5)
    script >> expected("flow", handle=0, available=3)


def test_flow_of_a_receiver_says_the_drain_that_it_wants() -> None:
    link, script = receiving(credit=5)
    link.set_credit(5, drain=True)
    script >> expected("flow", handle=0, drain=True)
    link.set_credit(5)
    script >> expected("flow", handle=0, drain=None)


def test_sender_sends_though_it_has_said_that_nothing_is_available() -> None:
    link, script = sending(credit=0)
    link.available = 0
    script << flow(handle=0, delivery_count=0, link_credit=1, echo=True)
    script >> expected("flow", handle=0, available=0)
    assert link.send(b"m") is not None
    script >> expected("transfer", payload=b"m")


@pytest.mark.parametrize("available", [0, 1, None])
def test_available_of_a_receiver_is_what_was_said_last_however_many_come(available: int | None) -> None:
    link, script = receiving(credit=5)
    script << flow(handle=0, delivery_count=0, available=available)
    for number in range(3):
        script << transfer(0, number, b"m")
        assert link.available == (available or 0)


def test_receiver_may_ask_when_its_link_has_come_to_rest() -> None:
    link, script = receiving(credit=3)
    link.set_credit(0)
    script >> expected("flow", handle=0, link_credit=0)
    link.write_flow(echo=True)
    script >> expected("flow", handle=0, link_credit=0, echo=True)
    script << transfer(0, 0, b"m") + flow(handle=0, delivery_count=1, link_credit=0)
    assert (len(link.queue), link.delivery_count) == (1, 1)  # what was in flight is here, and no more follows
    script.expect_nothing()


# -- echo -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("handle", [0, None])
def test_echo_is_answered_at_once_and_the_answer_asks_for_none(handle: int | None) -> None:
    _link, script = sending(credit=0)
    count = None if handle is None else 0
    script << flow(handle=handle, delivery_count=count, echo=True)
    script >> expected("flow", handle=handle, echo=None)
    script.expect_nothing()


def test_echo_for_the_session_is_answered_by_a_flow_of_a_link_where_one_is_due() -> None:
    link, script = receiving(credit=0)
    link.set_credit(3)
    link.session.connection.receive_data(flow(echo=True), 0.0)
    script >> expected("flow", handle=0, link_credit=3, incoming_window=2048, next_incoming_id=0)
    script.expect_nothing()


def test_flow_of_a_link_opens_the_window_of_its_session_too() -> None:
    link, script = sending(credit=0)
    script << flow(handle=0, delivery_count=0, link_credit=5, incoming_window=1)
    assert link.session.windows.remote_incoming_window == 1
    script << flow(incoming_window=9)
    assert (link.session.windows.remote_incoming_window, link.credit) == (9, 5)


def test_flow_without_a_handle_changes_no_link() -> None:
    link, script = sending(Limits(), credit=4)
    other = session_of(link).receiver("y")
    attached(script, link.session, other, 1, credit=3)
    script << flow()
    assert (link.credit, link.drain, other.credit, other.drain) == (4, False, 3, False)
