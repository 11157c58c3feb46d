"""What the fields of transfers and dispositions say of a delivery, from its first frame on (2.6.12, 2.7.5, 2.7.6)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.naive.performatives import frame
from tests.naive.script import expected
from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus
from trio_amqp10.amqp10.spec.messaging import Accepted, Received, Rejected, Released, Source, Target
from trio_amqp10.amqp10.spec.transport import ReceiverSettleMode

from .helpers import begun, flow, receiving, sending
from .links import ACCEPTED, attach, attached, disposition, session_of, transfer

if TYPE_CHECKING:
    from tests.naive.script import Script
    from trio_amqp10.amqp10.engine.receiver import ReceiverLink

TXN: Any = ("transactional-state", {"txn_id": b"t"})
SO_FAR: Any = ("received", {"section_number": 0, "section_offset": 3})

# -- settled, once and for all (2.6, 2.6.12) ------------------------------------------------------


def test_delivery_that_the_receiver_settled_stays_settled_whatever_the_sender_says() -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m")
    [delivery] = link.queue
    delivery.accept()
    script >> expected("disposition", first=0, settled=True)
    script << disposition(False, 0, settled=False, state=("released", {}))
    assert (delivery.settled, delivery.state) == (True, Accepted())
    assert not link.tags
    assert not link.session.settlement.incoming
    script.expect_nothing()


def test_delivery_that_the_sender_settled_stays_settled_whatever_the_receiver_says() -> None:
    link, script = sending()
    delivery = link.send(b"m")
    assert delivery is not None
    script >> expected("transfer")
    (
        script
        << disposition(True, 0, settled=True)
        << disposition(True, 0, settled=False, state=("released", {}))
    )
    assert (delivery.settled, delivery.state, link.unsettled) == (True, Accepted(), 0)
    script.expect_nothing()


def test_settlement_of_a_sender_is_told_once() -> None:
    link, script = sending()
    delivery = link.send(b"m")
    assert delivery is not None
    script >> expected("transfer")
    for _ in range(3):
        script << disposition(True, 0, settled=False)
    script >> expected("disposition", role=False, first=0, settled=True)
    script.expect_nothing()


@pytest.mark.parametrize("first", [True, False, None])
def test_settled_that_is_left_out_later_is_what_was_said_before(first: bool | None) -> None:
    link, script = receiving()
    script << transfer(0, 0, b"a", more=True, settled=first, pad=True) + transfer(0, None, b"b", pad=True)
    assert [(delivery.payload, delivery.settled) for delivery in link.queue] == [(b"ab", bool(first))]
    script.expect_nothing()


# -- which delivery it is -------------------------------------------------------------------------


def test_every_delivery_of_a_session_has_the_next_id_and_a_tag_of_its_own() -> None:
    link, script = sending(remote={"max_frame_size": 512})
    other = session_of(link).sender("other")
    attached(script, link.session, other, 1)
    script << flow(handle=1, delivery_count=0, link_credit=9)
    for size in (1, 700):
        for each in (link, other):
            each.send(bytes(size))
    script.collect()
    firsts = [got for got in script.inbox.frames if got["delivery_id"] is not None]
    assert [got["delivery_id"] for got in firsts] == [0, 1, 2, 3]
    assert [(got["handle"], got["delivery_tag"]) for got in firsts] == [
        (handle, tag.to_bytes(4, "big")) for tag in (0, 1) for handle in (0, 1)
    ]


@pytest.mark.parametrize("size", [0, 1, 2000])
def test_first_transfer_names_the_delivery_and_later_ones_leave_that_out(size: int) -> None:
    link, script = sending(remote={"max_frame_size": 512})
    link.send(bytes(size))
    script.collect()
    first, *later = script.inbox.frames
    named = ("delivery_id", "delivery_tag", "message_format")
    assert [first[name] for name in named] == [0, bytes(4), 0]
    assert len(later) == (4 if size > 512 else 0)
    assert all(got[name] is None for got in later for name in named)
    assert [bool(got["more"]) for got in script.inbox.frames] == [True] * len(later) + [False]


def test_message_format_that_is_left_out_reads_as_0() -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m", message_format=None) + transfer(0, 1, b"m", message_format=None, more=True)
    script << transfer(0, None, b"m")
    assert [delivery.message_format for delivery in link.queue] == [0, 0]


# -- the state of a transfer ----------------------------------------------------------------------


@pytest.mark.parametrize("states", [(TXN, None), (None, TXN), (SO_FAR, TXN), (TXN, TXN)])
def test_state_of_any_transfer_is_that_of_the_delivery(states: tuple[Any, Any]) -> None:
    link, script = receiving()
    first, later = states
    script << transfer(0, 0, b"a", more=True, state=first) + transfer(0, None, b"b", state=later)
    [delivery] = link.queue
    assert delivery.remote_state.txn_id == b"t"
    assert delivery.payload == b"ab"


@pytest.mark.parametrize("later", ["transfer", "disposition"])
def test_outcome_that_the_sender_has_told_is_altered_by_nothing_later(later: str) -> None:
    link, script = receiving()
    rejected: Any = ("rejected", {})
    if later == "transfer":
        script << transfer(0, 0, b"a", more=True, state=rejected)
        script << transfer(0, None, b"b", state=("released", {}))
    else:
        script << transfer(0, 0, b"a", state=rejected)
        script << disposition(False, 0, settled=False, state=("released", {}))
    [delivery] = link.queue
    assert delivery.remote_state == Rejected()


def test_state_that_is_no_outcome_may_be_altered_by_a_disposition() -> None:
    link, script = receiving()
    (
        script
        << transfer(0, 0, b"a", state=SO_FAR)
        << disposition(False, 0, settled=False, state=("released", {}))
    )
    assert link.queue[0].remote_state == Released()


def test_transfer_says_the_state_of_the_sender() -> None:
    link, script = sending()
    link.send(b"m", state=Received(section_number=0, section_offset=3))
    script >> expected("transfer", state=SO_FAR)


# -- rcv-settle-mode ------------------------------------------------------------------------------


def second() -> tuple[ReceiverLink, Script]:
    """A receiver that settles second, and may outlast its link."""
    session, script = begun()
    link = session.receiver("x")
    link.terminus = ReceiverTerminus()
    link.attach(source=Source(address="q"), target=Target(), rcv_settle_mode=ReceiverSettleMode.SECOND)
    script >> expected("attach")
    script << attach("x", 0, role=False)
    link.set_credit(9)
    script >> expected("flow")
    return link, script


def attached_again(link: ReceiverLink, script: Script) -> ReceiverLink:
    """The link is detached and resumed on its session; the peer holds the delivery with the tag 0 too."""
    link.detach(closed=False)
    script >> expected("detach")
    script << frame("detach", handle=0)
    again = session_of(link).receiver(link.name)
    again.terminus = link.terminus
    again.attach(source=Source(address="q"), target=Target(), rcv_settle_mode=ReceiverSettleMode.SECOND)
    script >> expected("attach")
    script << attach("x", 0, role=False, unsettled={bytes(4): None})
    again.set_credit(9)
    script >> expected("flow")
    return again


@pytest.mark.parametrize(("mode", "first"), [(0, True), (1, False), (None, False)])
@pytest.mark.parametrize("parts", [1, 2])
def test_delivery_settles_as_its_first_transfer_says_and_else_as_the_link(
    mode: int | None, first: bool, parts: int
) -> None:
    link, script = second()
    script << transfer(0, 0, b"a", rcv_settle_mode=mode, more=parts > 1)
    if parts > 1:
        script << transfer(0, None, b"b")
    [delivery] = link.queue
    delivery.accept()
    script >> expected("disposition", role=True, first=0, settled=first or None, state=ACCEPTED)
    assert delivery.settled is first


def test_settle_mode_of_a_transfer_is_ignored_where_it_is_settled() -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m", rcv_settle_mode=1, settled=True)
    [delivery] = link.queue
    assert delivery.settled
    delivery.accept()
    script.expect_nothing()


def test_settle_mode_of_a_transfer_does_not_outlast_its_link() -> None:
    link, script = second()
    script << transfer(0, 0, b"m", rcv_settle_mode=0)
    [delivery] = link.queue
    attached_again(link, script)
    script << transfer(0, 1, delivery_tag=delivery.tag, resume=True)
    delivery.accept()
    script >> expected("disposition", first=1, settled=None, state=ACCEPTED)
    assert not delivery.settled


# -- resume, aborted, batchable -------------------------------------------------------------------


@pytest.mark.parametrize("flag", [True, False, None])
def test_resume_may_be_said_again_on_later_transfers(flag: bool | None) -> None:
    link, script = second()
    script << transfer(0, 0, b"abc", more=True)
    again = attached_again(link, script)
    script << transfer(0, 1, b"abcd", delivery_tag=bytes(4), resume=True, more=True)
    script << transfer(0, None, b"ef", resume=flag)
    assert [delivery.payload for delivery in again.queue] == [b"abcdef"]


def test_delivery_id_of_the_link_before_means_nothing_after_it_was_attached_again() -> None:
    link, script = second()
    script << transfer(0, 0, b"m")
    [delivery] = link.queue
    attached_again(link, script)
    script << transfer(0, 1, delivery_tag=delivery.tag, resume=True)
    script << disposition(False, 0)
    assert not delivery.settled
    script << disposition(False, 1)
    assert delivery.settled


@pytest.mark.parametrize("payload", [b"", b"left over"])
def test_payload_of_a_transfer_that_aborts_is_ignored(payload: bytes) -> None:
    link, script = receiving()
    script << transfer(0, 0, b"begin", more=True) << transfer(0, None, payload, aborted=True)
    script << transfer(0, 1, b"next")
    assert [delivery.payload for delivery in link.queue] == [b"next"]
    assert link.session.connection.partial_octets == 0


@pytest.mark.parametrize("more", [None, True])
def test_payload_of_a_delivery_that_begins_with_its_abort_is_ignored(more: bool | None) -> None:
    link, script = receiving(credit=5)
    script << transfer(0, 0, b"never", aborted=True, more=more) << transfer(0, 1, b"next")
    assert [delivery.payload for delivery in link.queue] == [b"next"]
    assert link.session.connection.partial_octets == 0
    assert (link.credit, link.delivery_count) == (3, 2)
    assert not link.session.settlement.incoming.get(0)


def test_payload_of_an_abort_counts_for_no_limit() -> None:
    link, script = receiving(credit=5)
    link.max_message_size = 8
    script << transfer(0, 0, b"12345678", more=True) << transfer(0, None, b"9" * 100, aborted=True)
    script << transfer(0, 1, b"next")
    assert [delivery.payload for delivery in link.queue] == [b"next"]
    assert link.session.connection.partial_octets == 0


def test_payload_of_an_abort_is_no_part_of_a_message_that_streams() -> None:
    link, script = receiving(credit=5)
    link.streaming = True
    script << transfer(0, 0, b"begin", more=True)
    [delivery] = link.queue
    stream = delivery.inflow
    assert stream is not None
    script << transfer(0, None, b"never", aborted=True)
    assert (stream.aborted, stream.size, stream.take()) == (True, 0, b"")
    assert delivery.settled


@pytest.mark.parametrize("which", [0, 1, 2])
def test_batchable_on_any_transfer_of_a_delivery_changes_nothing(which: int) -> None:
    link, script = receiving()
    for number in range(3):
        first = 0 if number == 0 else None
        script << transfer(0, first, b"m", more=number < 2, batchable=number == which)
    [delivery] = link.queue
    delivery.accept()
    assert delivery.payload == b"mmm"
    script >> expected("disposition", first=0, settled=True, batchable=None)


# -- dispositions over links (2.7.6) --------------------------------------------------------------


def test_disposition_may_name_deliveries_of_many_links() -> None:
    link, script = sending(credit=5)
    other = session_of(link).sender("other")
    attached(script, link.session, other, 1)
    other.credit = 5
    sent = [each.send(b"m") for each in (link, other, link, other)]
    script << disposition(True, 0, 3)
    assert all(delivery is not None and delivery.settled for delivery in sent)
    assert (link.unsettled, other.unsettled) == (0, 0)


def test_outcomes_of_deliveries_of_many_links_are_one_disposition() -> None:
    link, script = receiving()
    other = session_of(link).receiver("other")
    attached(script, link.session, other, 1, credit=5)
    script << transfer(0, 0, b"m") + transfer(1, 1, b"m") + transfer(0, 2, b"m")
    for delivery in (link.queue[0], other.queue[0], link.queue[1]):
        delivery.accept()
    script >> expected("disposition", role=True, first=0, last=2, settled=True)
    script.expect_nothing()


@pytest.mark.parametrize("role", [True, False])
def test_disposition_is_for_the_direction_that_its_role_says(role: bool) -> None:
    link, script = sending(credit=5)
    receiver = session_of(link).receiver("other")
    attached(script, link.session, receiver, 1, credit=5)
    sent = link.send(b"m")
    script << transfer(1, 0, b"m")
    [received] = receiver.queue
    script << disposition(role, 0)
    assert sent is not None
    assert (sent.settled, received.settled) == (role, not role)
