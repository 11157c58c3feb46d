"""The numbers of a session as they are on the wire: where they begin, how they go on, what a flow changes (2.5.6)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

import pytest

from tests.naive.performatives import frame
from tests.naive.script import expected
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.serial_numbers import MASK

from .helpers import BEGIN, begun, error, flow, opened, receiving, refused, sending, transfer


@pytest.mark.parametrize("field", ["next_outgoing_id", "incoming_window", "outgoing_window"])
def test_begin_that_leaves_out_where_its_session_stands_closes(field: str) -> None:
    _, script = opened()
    fault = refused(script, frame("begin", **{**BEGIN, field: None}))
    assert (fault.condition, fault.rule) == ("amqp:invalid-field", "field")
    script >> expected("close", error=error("amqp:invalid-field"))


@pytest.mark.parametrize("format_code", [0xC0, 0xD0], ids=["fast", "general"])
@pytest.mark.parametrize("first", [0, 5, MASK])
def test_ids_of_the_peer_begin_anywhere_and_wrap(first: int, format_code: int) -> None:
    session, script = begun(next_outgoing_id=first)
    link = session.receiver("x")
    link.attach()
    script >> expected("attach")
    script << frame("attach", name="x", handle=0, role=False, initial_delivery_count=0)
    link.set_credit(10)
    script >> expected("flow", next_incoming_id=first)
    script << transfer(7, list_code=format_code) + transfer(8, list_code=format_code)
    assert [d.delivery_id for d in link.queue] == [7, 8]
    session.owe_flow()
    script >> expected("flow", next_incoming_id=(first + 2) & MASK)


def test_next_incoming_id_is_what_the_peers_flow_says() -> None:
    _, script = receiving()
    script << transfer(0) + flow(next_outgoing_id=77, echo=True)
    script >> expected("flow", next_incoming_id=77)
    script << transfer(1) + flow(next_outgoing_id=78, echo=True)
    script >> expected("flow", next_incoming_id=78)


def test_transfers_of_any_size_count_one_by_one_in_our_ids() -> None:
    link, script = sending(remote={"max_frame_size": 512})
    link.send(b"small")
    link.send(bytes(1200))
    transfers = 0
    script.collect()
    while script.inbox.frames:
        script >> expected("transfer")
        transfers += 1
    assert transfers == 4
    link.session.owe_flow()
    script >> expected("flow", next_outgoing_id=4)


def test_flow_that_knows_none_of_our_transfers_counts_from_the_first() -> None:
    link, script = sending(credit=0)
    script << flow(handle=0, delivery_count=0, link_credit=100, incoming_window=2)
    assert link.send(b"0") is not None
    script >> expected("transfer", delivery_id=0)
    script << flow(next_incoming_id=None, incoming_window=2)
    assert link.send(b"1") is not None
    script >> expected("transfer", delivery_id=1)
    assert not link.sendable()
    script << flow(next_incoming_id=None, incoming_window=3)
    assert link.sendable()


def test_transfer_uses_up_a_place_of_our_window() -> None:
    link, script = receiving(Limits(incoming_window=10))
    script << transfer(0) + transfer(1)
    assert link.session.windows.incoming_window == 8
    script.expect_nothing()
