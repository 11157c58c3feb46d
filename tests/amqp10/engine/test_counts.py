"""What is counted without counting: frames by the write, transfers and deliveries from serial numbers (2.5.6, 2.6.7)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

import pytest

from tests.naive.performatives import frame
from tests.naive.script import expected
from trio_amqp10.amqp10.engine.serial_numbers import MASK
from trio_amqp10.amqp10.engine.session_windows import SessionWindows
from trio_amqp10.amqp10.wire.frames import EMPTY_FRAME
from trio_amqp10.core.errors import RemoteProtocolError

from .helpers import flow, opened, receiving, sending, transfer


def test_frames_leave_the_protocol_header_out() -> None:
    connection, script = opened()
    assert (connection.frames_in, connection.frames_out) == (1, 1)
    connection.receive_data(EMPTY_FRAME * 3, 0.0)
    assert (connection.frames_in, connection.frames_out) == (4, 1)
    connection.close()
    assert connection.frames_out == 1  # it waits yet
    script >> expected("close")
    assert connection.frames_out == 2


def test_frames_count_the_one_that_is_at_fault() -> None:
    connection, _ = opened()
    with pytest.raises(RemoteProtocolError):
        connection.receive_data(EMPTY_FRAME + frame("end", channel=7), 0.0)
    assert connection.frames_in == 3


def test_sessions_are_those_with_a_channel() -> None:
    link, _ = sending()
    assert link.session.connection.sessions == [link.session]
    assert opened()[0].sessions == []


def test_deliveries_of_a_sender_leave_out_the_credit_given_back() -> None:
    link, script = sending(credit=10)
    link.send(b"a")
    link.send(b"b")
    script << flow(handle=0, delivery_count=0, link_credit=10, drain=True)
    link.drained()
    assert (link.delivery_count, link.deliveries) == (10, 2)
    script << flow(handle=0, delivery_count=10, link_credit=5)
    link.send(b"c")
    assert (link.delivery_count, link.deliveries) == (11, 3)


def test_deliveries_of_a_receiver_leave_out_the_credit_given_back() -> None:
    link, script = receiving(credit=10, initial_delivery_count=MASK)
    script << transfer(0)
    assert (link.delivery_count, link.deliveries) == (0, 1)
    link.set_credit(9, drain=True)
    script >> expected("flow", drain=True)
    script << flow(handle=0, delivery_count=9, link_credit=0, drain=True)
    assert (link.delivery_count, link.credit, link.deliveries) == (9, 0, 1)
    link.set_credit(1)
    script >> expected("flow", link_credit=1)
    script << transfer(1)
    assert link.deliveries == 2


def test_deliveries_go_on_where_the_count_wraps() -> None:
    link, _ = sending(credit=0)
    half = 2**31
    for _turn in range(6):  # each is less than the circle, and followed by a flow
        link.delivery_count = ((link.delivery_count or 0) + half) & MASK
        link.tally()
    assert link.deliveries == 6 * half


@pytest.mark.parametrize("first", [0, 5, MASK - 1])
def test_transfers_are_counted_from_the_first_ids(first: int) -> None:
    windows = SessionWindows(100, initial_id=first)
    assert (windows.transfers_sent, windows.transfers_received) == (0, 0)
    windows.begun(first, 100, 100)
    for _turn in range(3):
        windows.sent()
        windows.received()
    windows.received()
    assert (windows.transfers_sent, windows.transfers_received) == (3, 4)
    assert windows.flowed(windows.next_outgoing_id, 100, windows.next_incoming_id or 0, 100, first)
    windows.refill()
    assert (windows.transfers_sent, windows.transfers_received) == (3, 4)


def test_transfers_go_on_where_the_ids_wrap() -> None:
    windows = SessionWindows(100)
    windows.begun(7, 100, 100)
    half = 2**31 - 1
    for _turn in range(6):
        windows.next_outgoing_id = (windows.next_outgoing_id + half) & MASK
        windows.next_incoming_id = ((windows.next_incoming_id or 0) + half) & MASK
        windows.refill()
    assert (windows.transfers_sent, windows.transfers_received) == (6 * half, 6 * half)
