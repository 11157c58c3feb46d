"""Settlement at its edges: two links on one session, frames that are just too small, peers out of step (2.6.12, 2.7.6)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

import gc
from typing import Any

import pytest

from tests.naive.performatives import frame
from tests.naive.script import expected
from trio_amqp10.amqp10.engine.delivery import ACCEPTED as ACCEPT
from trio_amqp10.amqp10.engine.sender import SenderLink
from trio_amqp10.amqp10.engine.serial_numbers import MASK
from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus
from trio_amqp10.amqp10.spec.messaging import Accepted, Modified, Rejected, Released, Source, Target
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.amqp10.spec.transport import Error, ReceiverSettleMode
from trio_amqp10.core import peer_rules as rules
from trio_amqp10.core.errors import LocalProtocolError

from .helpers import BEGIN, begun, error, flow, opened, receiving, sending
from .links import ACCEPTED, attach, attached, disposition, session_of, transfer
from .test_receiver_resume import TAG, before_the_cut, resumed
from .test_unsettled_state import Book
from .test_unsettled_state import sender as kept_sender

SECOND = ReceiverSettleMode.SECOND


def detached(handle: int, **fields: Any) -> bytes:
    return frame("detach", handle=handle, **fields)


# -- two links on one session -------------------------------------------------------------------


def test_mode_of_one_delivery_leaves_alone_the_deliveries_of_another_link() -> None:
    link, script = receiving()
    other = session_of(link).receiver("other")
    other.attach(source=Source(address="q"), target=Target(), rcv_settle_mode=SECOND)
    script >> expected("attach")
    script << attach("other", 1, role=False)
    other.set_credit(5)
    script >> expected("flow")
    script << transfer(1, 0, b"m", rcv_settle_mode=0) << transfer(0, 1, b"m") << transfer(1, 2, b"m")
    link.queue[0].accept()
    script >> expected("disposition", first=1, settled=True)
    script << transfer(0, 3, b"m") << disposition(False, 3)
    assert link.queue[1].settled
    other.queue[1].accept()
    script >> expected("disposition", first=2, settled=None)
    other.queue[0].accept()
    script >> expected("disposition", first=0, settled=True)


def test_outcomes_of_a_kept_link_and_another_share_a_disposition_when_both_settle_second() -> None:
    session, script = begun()
    links = [session.receiver("kept"), session.receiver("other")]
    links[0].terminus = ReceiverTerminus()
    for handle, link in enumerate(links):
        link.attach(source=Source(address="q"), target=Target(), rcv_settle_mode=SECOND)
        script << attach(link.name, handle, role=False)
        link.set_credit(5)
    script.collect().inbox.frames.clear()
    script << transfer(0, 0, b"m") << transfer(1, 1, b"m") << transfer(0, 2, b"m")
    for link in (links[0], links[1]):
        link.queue[0].accept()
    links[0].queue[1].accept()
    script >> expected("disposition", role=True, first=0, last=2, settled=None, state=ACCEPTED)
    script.expect_nothing()


def test_all_deliveries_of_a_link_that_goes_are_in_doubt() -> None:
    link, script = sending()
    for _ in range(3):
        link.send(b"m")
    script << detached(0, closed=True)
    assert link.in_doubt == 3


def test_links_that_come_and_go_on_one_session_are_not_remembered() -> None:
    link, script = sending()
    for n in range(20):
        other = session_of(link).sender(f"other-{n}")
        attached(script, link.session, other, 1)
        script << flow(next_incoming_id=n, handle=1, delivery_count=0, link_credit=5)
        assert other.send(b"m") is not None
        script << detached(1, closed=True)
        script.collect().inbox.frames.clear()
        script.events.clear()
    del other
    gc.collect()
    mine = [
        each for each in gc.get_objects() if isinstance(each, SenderLink) and each.session is link.session
    ]
    assert len(mine) <= 2  # the last may be on its way out


# -- what fits a frame --------------------------------------------------------------------------


def test_outcome_is_refused_when_a_range_of_the_largest_ids_would_not_fit_with_it() -> None:
    refused = 0
    for length in range(400, 500):
        link, script = receiving(remote={"max_frame_size": 512})
        script << transfer(0, MASK - 2, b"m") << transfer(0, MASK - 1, b"m")
        state = Rejected(error=Error(condition="c", description="d" * length))
        try:
            for delivery in link.queue:
                link.session.settlement.dispose(delivery, state)
        except LocalProtocolError:
            refused += 1
            continue
        assert len(script.expect("disposition", first=MASK - 2, last=MASK - 1).raw) <= 512
        assert not refused  # nothing longer fits
    assert refused


def test_settling_what_a_transaction_left_open_raises_and_changes_nothing_when_the_state_fits_no_frame() -> (
    None
):
    link, script = receiving(remote={"max_frame_size": 512})
    script << transfer(0, 0, b"m")
    (delivery,) = link.queue
    settlement = link.session.settlement
    said = TransactionalState(txn_id=b"t", outcome=Accepted())
    settlement.dispose(delivery, said, settle=False)
    script >> expected("disposition", settled=None)
    with pytest.raises(LocalProtocolError):
        settlement.settle_incoming(delivery, Rejected(error=Error(condition="c", description="d" * 600)))
    assert (delivery.state, delivery.settled) == (said, False)
    script.expect_nothing()
    settlement.settle_incoming(delivery, ACCEPT)
    script >> expected("disposition", settled=True, state=ACCEPTED)


# -- what the peer says -------------------------------------------------------------------------


def test_next_transfer_of_a_delivery_in_progress_carries_the_outcome_that_it_settles_with() -> None:
    link, script = sending()
    partial = link.begin(b"one")
    assert partial is not None
    script >> expected("transfer", more=True, settled=False)
    script << disposition(True, 0, settled=False, state=("released", {}))
    partial.append(b"two")
    script >> expected("transfer", settled=True, state=("released", {}), payload=b"two")
    script.expect_nothing()


def test_state_that_the_sender_settles_with_is_noted() -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m") << transfer(0, 1, b"m")
    script << disposition(False, 0, 1, settled=True, state=("released", {}))
    assert [each.remote_state for each in link.queue] == [Released()] * 2


@pytest.mark.parametrize("count", [1, 15, 16, 17, 40])
@pytest.mark.parametrize("settled", [True, False])
def test_outcomes_of_a_range_count_when_the_ids_have_just_been_used(count: int, settled: bool) -> None:
    link, script = sending(credit=100)
    sent = [link.send(b"m") for _ in range(count)]
    script << disposition(True, 0, count - 1, settled=settled, state=("modified", {}))
    assert [(each.settled, each.state) for each in sent if each is not None] == [(True, Modified())] * count
    again = [link.send(b"m") for _ in range(count)]
    script << disposition(True, count, 2 * count - 1, settled=settled)
    assert [(each.settled, each.state) for each in again if each is not None] == [(True, ACCEPT)] * count


def test_fault_of_a_range_that_runs_backwards_names_the_ids() -> None:
    link, script = sending()
    link.send(b"m")
    script << disposition(True, 7, 4)
    script >> expected("transfer")
    got = script.expect("end", error=error("amqp:invalid-field"))
    assert "from 7 to 4" in got["error"][1]["description"]


def test_fault_of_a_state_that_is_not_known_names_it() -> None:
    link, script = sending()
    link.send(b"m")
    script >> expected("transfer")
    script << disposition(True, 0, state=("x:foo", [1]))
    assert "x:foo" in script.expect("detach")["error"][1]["description"]


def test_fault_of_an_outcome_that_the_source_does_not_permit_names_both() -> None:
    connection, script = opened(strict=rules.Strict(permitted_outcome=True))
    session = connection.session()
    session.begin()
    script >> expected("begin")
    script << frame("begin", **BEGIN, remote_channel=0)
    link = session.sender("x")
    link.attach(source=Source(outcomes=("amqp:accepted:list",)), target=Target())
    script << attach("x", 0, role=True) << flow(handle=0, delivery_count=0, link_credit=5)
    delivery = link.send(b"m")
    assert delivery is not None
    script >> expected("attach") >> expected("transfer")
    script << disposition(True, 0, state=("rejected", {}))
    text = script.expect("detach")["error"][1]["description"]
    assert repr(delivery.tag) in text
    assert "Rejected" in text


def test_outcome_is_written_down_by_tag_before_the_sender_settles() -> None:
    book = Book()
    link, script = kept_sender(book)
    delivery = link.send(b"m")
    assert delivery is not None
    script.collect().inbox.frames.clear()
    script << disposition(True, 0, settled=False)
    assert book.lines[-1] == ("outcome", delivery.tag, ACCEPT)
    script.expect_nothing()


# -- links that are gone ------------------------------------------------------------------------


def test_delivery_is_live_until_its_link_closes() -> None:
    link, script = sending()
    delivery = link.send(b"m")
    assert delivery is not None
    settlement = link.session.settlement
    assert settlement.is_live(delivery)
    script << detached(0)
    assert settlement.is_live(delivery)
    delivery.settle()
    assert not settlement.is_live(delivery)
    assert not settlement.release(delivery)


def test_delivery_that_came_in_part_leaves_no_mode_behind_when_its_link_goes() -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m", rcv_settle_mode=0, more=True)
    assert link.session.settlement.modes == {0: 0}
    (delivery,) = link.tags.values()
    script << detached(0)
    assert link.session.settlement.modes == {}
    assert not link.session.settlement.release(delivery)


@pytest.mark.parametrize("what", ["accept", "settle", "detach"])
def test_peer_that_resumes_on_a_link_that_it_refuses_does_no_harm(what: str) -> None:
    terminus, (delivery,), _link = before_the_cut(transfer(0, 7, b"one"))
    answers: list[Any] = [("source", {}), None]
    for theirs in answers:
        session, script = begun()
        link = session.receiver("x")
        link.terminus = terminus
        link.attach(source=Source(address="q"), target=Target(), rcv_settle_mode=SECOND)
        script << attach("x", 0, role=False, unsettled={TAG: None}, source=theirs)
        if theirs is not None:
            script.lose()
    script << resumed(TAG, rcv_settle_mode=0)
    if what == "accept":
        delivery.accept()
    elif what == "settle":
        script << disposition(False, 0)
    else:
        script << detached(0, closed=True)
    script.collect()
    assert delivery.settled is (what != "detach")
    assert not session.settlement.incoming
