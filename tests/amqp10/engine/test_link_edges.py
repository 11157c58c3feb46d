"""Links at their edges: what faults say, what both maps leave out, how many deliveries a count stands for (2.6.5 to 2.6.7)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

import pytest

from tests.naive.performatives import frame
from tests.naive.script import expected
from trio_amqp10.amqp10.engine.events import LinkAttached, LinkDetached
from trio_amqp10.amqp10.engine.serial_numbers import MASK
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.amqp10.spec.transport import Error, ReceiverSettleMode, SenderSettleMode

from .helpers import begun, error, flow, receiving, sending
from .links import attach, transfer
from .test_link import failed


def test_attach_says_the_usual_when_it_was_given_nothing() -> None:
    session, script = begun()
    link = session.sender("x")
    assert (link.credit, link.drain, link.closed, link.closing, link.error) == (0, False, False, False, None)
    assert (link.remote, link.remote_handle, link.answered, link.incomplete) == (None, None, False, False)
    assert (link.snd_settle_mode, link.rcv_settle_mode) == (SenderSettleMode.MIXED, ReceiverSettleMode.FIRST)
    link.attach()
    got = script.expect(
        "attach", source=None, target=None, max_message_size=None, properties=None, incomplete_unsettled=None
    )
    assert got["snd_settle_mode"] in (None, 2)
    assert got["rcv_settle_mode"] in (None, 0)
    assert (got["offered_capabilities"], got["desired_capabilities"]) == (None, None)


def test_fault_names_the_link_and_closes_it() -> None:
    link, script = receiving(credit=0)
    script << transfer(0, 0, b"m")
    got = script.expect("detach", closed=True, error=error("amqp:link:transfer-limit-exceeded"))
    assert got["error"][1]["description"].startswith("'x': ")
    event = script.expect_event(LinkDetached, link=link, closed=True)
    assert event.error is link.error
    assert link.error.condition == "amqp:link:transfer-limit-exceeded"


def test_fault_of_a_link_that_is_errant_names_it() -> None:
    _link, other, script = failed()
    other.send(b"m")
    script >> expected("transfer")
    script << flow(next_incoming_id=1, next_outgoing_id=1) << transfer(0, 1, b"m")
    assert "'x'" in script.expect("end")["error"][1]["description"]


def test_link_without_a_map_is_incomplete_when_the_peers_map_is() -> None:
    session, script = begun()
    link = session.sender("x")
    link.attach(source=Source(), target=Target())
    script << attach("x", 0, role=True, unsettled={b"t": None}, incomplete_unsettled=True)
    assert (link.incomplete, link.incomplete_here) == (True, False)


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("theirs", [True, False])
def test_link_is_closed_when_either_end_closed_it(closed: bool, theirs: bool) -> None:
    link, script = sending()
    link.detach(closed=closed)
    assert (link.closing, link.closed) == (closed, False)
    script << frame("detach", handle=0, closed=theirs)
    assert (link.state, link.closed) == (LinkState.GONE, closed or theirs)


def test_error_of_ours_is_that_of_the_link_also_when_the_peer_answers_without() -> None:
    link, script = sending()
    link.detach(error=Error(condition="amqp:internal-error"))
    script >> expected("detach", closed=True, error=error("amqp:internal-error"))
    script << frame("detach", handle=0, closed=True)
    assert link.error is not None
    assert link.error.condition == "amqp:internal-error"
    assert link.state is LinkState.GONE


def test_deliveries_are_counted_beyond_the_end_of_the_count_and_without_what_it_leapt_over() -> None:
    session, script = begun()
    link = session.receiver("x")
    assert link.deliveries == 0
    link.attach(source=Source(), target=Target())
    script << attach("x", 0, role=False, initial_delivery_count=MASK - 1)
    script.expect_event(LinkAttached, link=link)
    link.set_credit(10)
    script << b"".join(transfer(0, n, b"m") for n in range(4))
    assert (link.deliveries, link.delivery_count) == (4, 2)
    link.set_credit(3, drain=True)
    script << flow(handle=0, delivery_count=5, link_credit=0, next_outgoing_id=4)
    assert (link.deliveries, link.delivery_count, link.credit, link.drain) == (4, 5, 0, False)
    link.tally()
    link.tally()
    link.set_credit(2)
    script << transfer(0, 4, b"m")
    assert (link.deliveries, link.delivery_count) == (5, 6)


def test_flow_of_a_sender_says_its_count_as_far_as_it_has_sent() -> None:
    link, script = sending(credit=3)
    link.send(b"m")
    link.flow_properties = {"txn-id": b"t"}
    script.collect().inbox.frames.clear()
    link.write_flow()
    got = script.expect("flow", handle=0, delivery_count=1, link_credit=2, available=None, echo=None)
    assert got["properties"] == {"txn-id": b"t"}
