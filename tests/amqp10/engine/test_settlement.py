"""Who settles what and who is told, in ranges, against a model that knows single ids (2.6.12)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.performatives import frame
from tests.naive.script import expected
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.delivery import ACCEPTED, RELEASED
from trio_amqp10.amqp10.engine.events import SessionEnded
from trio_amqp10.amqp10.engine.serial_numbers import MASK
from trio_amqp10.amqp10.engine.settlement import REMEMBERED
from trio_amqp10.amqp10.engine.states import SessionState
from trio_amqp10.amqp10.spec.messaging import Accepted, Modified, Received, Rejected, Source, Target
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.amqp10.spec.transport import Error, ReceiverSettleMode, SenderSettleMode
from trio_amqp10.core.errors import LocalProtocolError

from . import links
from .helpers import Pair, begun, flow, receiving, sending
from .links import Owner, attach, attached, disposition, transfer

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.delivery import IncomingDelivery
    from trio_amqp10.amqp10.engine.receiver import ReceiverLink

STATES: dict[str, Any] = {
    "accepted": ACCEPTED,
    "released": RELEASED,
    "rejected": Rejected(error=Error(condition="amqp:not-found")),
    "modified": Modified(delivery_failed=True),
}

starts = st.sampled_from([0, 1, MASK - 3, MASK])


def receive(count: int, start: int = 0) -> tuple[ReceiverLink, Any, list[IncomingDelivery]]:
    """So many unsettled deliveries, and the script that sent them."""
    link, script = receiving(credit=count)
    script << b"".join(transfer(0, (start + n) & MASK, b"m") for n in range(count))
    return link, script, list(link.queue)


# -- what we say --------------------------------------------------------------------------------


@given(
    starts,
    st.lists(st.tuples(st.integers(0, 11), st.sampled_from(list(STATES)), st.booleans()), max_size=20),
)
def test_outcomes_are_told_once_for_each_delivery_in_whatever_order_they_are_given(
    start: int, given_: list[tuple[int, str, bool]]
) -> None:
    _link, script, deliveries = receive(12, start)
    wanted: dict[int, str] = {}
    told: dict[int, str] = {}
    for index, name, flush in given_:
        delivery = deliveries[index]
        settlement = delivery.link.session.settlement
        if delivery.delivery_id in wanted:
            with pytest.raises(LocalProtocolError, match="already given the outcome"):
                settlement.dispose(delivery, STATES[name])
        else:
            settlement.dispose(delivery, STATES[name])
            wanted[delivery.delivery_id] = name
            assert delivery.settled
        if flush:
            script.collect()
    script.collect()
    while script.inbox.frames:
        got = script.expect("disposition", role=True, settled=True)
        first = got["first"]
        last = first if got["last"] is None else got["last"]
        for n in range(((last - first) & MASK) + 1):
            delivery_id = (first + n) & MASK
            assert delivery_id not in told
            told[delivery_id] = got["state"][0]
    assert told == wanted
    assert len(_link.tags) == 12 - len(told)


def test_outcomes_of_consecutive_deliveries_are_one_disposition() -> None:
    link, script, deliveries = receive(100, MASK - 40)
    for delivery in deliveries:
        delivery.accept()
    script >> expected(
        "disposition", role=True, first=MASK - 40, last=58, settled=True, state=("accepted", {})
    )
    script.expect_nothing()
    assert not link.session.settlement.incoming


def test_outcomes_are_written_before_the_detach_that_follows_them() -> None:
    link, script, deliveries = receive(2)
    deliveries[0].accept()
    deliveries[1].release()
    link.detach()
    script >> expected("disposition", first=0, last=0, state=("accepted", {}))
    script >> expected("disposition", first=1, state=("released", {})) >> expected("detach")


def test_equal_outcomes_that_are_not_the_same_object_share_a_disposition() -> None:
    _link, script, deliveries = receive(3)
    for delivery in deliveries:
        delivery.modify(delivery_failed=True)
    script >> expected("disposition", first=0, last=2, state=("modified", {"delivery_failed": True}))
    script.expect_nothing()


@pytest.mark.parametrize("big", [Rejected(error=Error(condition="c", description="d" * 600)), "nonsense"])
def test_outcome_that_cannot_be_written_raises_and_changes_nothing(big: Any) -> None:
    link, script = receiving(remote={"max_frame_size": 512})
    script << transfer(0, 0, b"m")
    delivery = link.queue[0]
    with pytest.raises(LocalProtocolError):
        link.session.settlement.dispose(delivery, big)
    assert (delivery.state, delivery.settled) == (None, False)
    delivery.accept()
    script >> expected("disposition", first=0, state=("accepted", {}))


def test_outcome_of_a_settled_delivery_is_kept_and_told_to_nobody() -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m", settled=True)
    delivery = link.queue[0]
    delivery.accept()
    assert delivery.state is ACCEPTED
    script.expect_nothing()
    with pytest.raises(LocalProtocolError, match="already given the outcome"):
        delivery.release()


def test_state_that_is_no_outcome_settles_nothing_and_an_outcome_may_follow() -> None:
    link, script, (delivery,) = receive(1)
    settlement = link.session.settlement
    settlement.dispose(delivery, Received(section_number=0, section_offset=3))
    script >> expected("disposition", first=0, settled=None, state=("received", {"section_offset": 3}))
    assert not delivery.settled
    settlement.dispose(delivery, TransactionalState(txn_id=b"t", outcome=Accepted()))
    script >> expected("disposition", first=0, settled=True)
    assert delivery.settled


# -- the modes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("snd", SenderSettleMode)
@pytest.mark.parametrize("rcv", ReceiverSettleMode)
def test_both_ends_forget_as_their_modes_say(snd: SenderSettleMode, rcv: ReceiverSettleMode) -> None:
    pair = Pair(answer=True)
    pair.open()
    session = pair.a.session()
    session.begin()
    receiver = session.receiver("x")
    receiver.attach(source=Source(), target=Target(), snd_settle_mode=snd, rcv_settle_mode=rcv)
    pair.answer = False
    pair.run()
    pair.events[pair.b][-2].session.begin()
    sender = pair.events[pair.b][-1].link
    sender.attach(snd_settle_mode=snd, rcv_settle_mode=rcv)
    pair.run()
    receiver.set_credit(10)
    pair.run()
    sent = [sender.send(b"m") for _ in range(3)]
    settled = snd == SenderSettleMode.SETTLED
    assert all(d.settled is settled for d in sent)
    pair.run()
    received = list(receiver.queue)
    assert [d.settled for d in received] == [settled] * 3
    for delivery in received:
        delivery.accept()
    # The receiver has spoken and the sender has not: the first forgets first, the second last.
    assert [d.settled for d in received] == [settled or rcv == ReceiverSettleMode.FIRST] * 3
    pair.run()
    for delivery in (*sent, *received):
        assert delivery.settled
        assert isinstance(delivery.state, Accepted) or (settled and delivery in sent)
    for end in (sender.session, session):
        assert not end.settlement.incoming
        assert not end.settlement.outgoing
    assert sender.unsettled == 0
    assert not receiver.tags


def test_receiver_that_settles_second_waits_for_the_senders_word() -> None:
    session, script = begun()
    link = session.receiver("x")
    link.attach(rcv_settle_mode=ReceiverSettleMode.SECOND)
    script >> expected("attach", rcv_settle_mode=1)
    script << attach("x", 0, role=False, rcv_settle_mode=1)
    link.set_credit(5)
    script >> expected("flow")
    script << transfer(0, 0, b"a") + transfer(0, 1, b"b") + transfer(0, 2, b"c", rcv_settle_mode=0)
    for delivery in link.queue:
        delivery.watcher = Owner()
        delivery.accept()
    script >> expected("disposition", role=True, first=0, last=1, settled=None, state=links.ACCEPTED)
    script >> expected("disposition", role=True, first=2, settled=True)
    assert [d.settled for d in link.queue] == [False, False, True]
    assert session.settlement.modes == {}
    with pytest.raises(LocalProtocolError, match="already given the outcome"):
        link.queue[0].release()
    script << disposition(False, 0, 1)
    assert all(d.settled for d in link.queue)
    assert [d.watcher in script.touched for d in link.queue] == [True, True, False]
    assert not link.tags
    script.expect_nothing()


ECHOED: list[Any] = [
    ("accepted", ("accepted", {})),
    ("released", ("released", {})),
    ("received", None),
]


@pytest.mark.parametrize(("state", "echoed"), ECHOED)
def test_sender_settles_in_answer_to_an_outcome_that_is_not_settled(
    state: str, echoed: tuple[str, dict[str, Any]] | None
) -> None:
    link, script = sending()
    sent = [link.send(b"m") for _ in range(3)]
    script >> expected("transfer") >> expected("transfer") >> expected("transfer")
    fields = {"section_number": 0, "section_offset": 0} if state == "received" else {}
    script << disposition(True, 0, 2, settled=False, state=(state, fields))
    if echoed:
        script >> expected("disposition", role=False, first=0, last=2, settled=True, state=echoed)
    script.expect_nothing()
    assert all(d is not None and d.settled is (echoed is not None) for d in sent)


def test_sender_that_confirms_leaves_the_answer_to_who_watches_the_delivery() -> None:
    link, script = sending()
    link.confirms = True
    delivery = link.send(b"m")
    assert delivery is not None
    delivery.watcher = Owner()
    script >> expected("transfer")
    script << disposition(True, 0, settled=False, state=("accepted", {}))
    script.expect_nothing()
    assert (delivery.settled, script.touched) == (False, [delivery.watcher])
    delivery.state = RELEASED
    delivery.settle()
    script >> expected("disposition", role=False, first=0, settled=True, state=("released", {}))


@pytest.mark.parametrize("settled", [True, False])
def test_owner_is_woken_when_the_last_unsettled_delivery_is_settled(settled: bool) -> None:
    link, script = sending()
    link.owner = owner = Owner()
    for _ in range(2):
        link.send(b"m")
    link.watch_unsettled = True
    script << disposition(True, 0, settled=settled)
    assert owner not in script.touched
    script << disposition(True, 1, settled=settled)
    assert owner in script.touched
    assert link.unsettled == 0


@pytest.mark.parametrize(("settled", "state"), [(True, "accepted"), (False, "accepted"), (True, None)])
def test_watcher_is_woken_when_the_receiver_speaks_of_its_delivery(settled: bool, state: str | None) -> None:
    link, script = sending()
    one, two = link.send(b"m"), link.send(b"m")
    assert one is not None
    assert two is not None
    one.watcher, two.watcher = Owner(), Owner()
    script << disposition(True, 0, settled=settled, state=state and (state, {}))
    assert script.touched == [one.watcher]
    assert one.settled


def test_sender_may_settle_before_it_has_heard_anything() -> None:
    link, script = sending()
    link.owner = owner = Owner()
    link.watch_unsettled = True
    sent = [link.send(b"m") for _ in range(3)]
    for delivery in sent:
        assert delivery is not None
        delivery.settle()
        with pytest.raises(LocalProtocolError, match="is settled already"):
            delivery.settle()
    script >> expected("transfer") >> expected("transfer") >> expected("transfer")
    script >> expected("disposition", role=False, first=0, last=2, settled=True, state=None)
    assert owner in script.touched
    script << disposition(True, 0, 2, state=("rejected", {}))
    assert [d.state for d in sent if d is not None] == [None] * 3
    script.expect_nothing()


def test_sender_settles_without_a_state_when_the_receiver_has_told_only_how_far_it_has_come() -> None:
    link, script = sending()
    delivery = link.send(b"m")
    assert delivery is not None
    script >> expected("transfer")
    script << disposition(
        True, 0, settled=False, state=("received", {"section_number": 0, "section_offset": 1})
    )
    assert delivery.state == Received(section_number=0, section_offset=1)
    delivery.settle()
    script >> expected("disposition", role=False, first=0, settled=True, state=None)


def test_receiver_keeps_what_the_sender_settled_first_and_tells_nobody_of_its_outcome() -> None:
    link, script, (one, two) = receive(2)
    one.watcher = Owner()
    script << disposition(False, 0, settled=True, state=None)
    script << disposition(False, 1, settled=False, state=("transactional-state", {"txn_id": b"t"}))
    assert (one.settled, two.settled) == (True, False)
    assert (one.remote_state, two.remote_state.txn_id) == (None, b"t")
    assert one.watcher in script.touched
    one.accept()
    script.expect_nothing()
    assert one.state is ACCEPTED
    assert set(link.tags) == {two.tag}


# -- batchable: a hint (2.7.5, 2.7.6) -----------------------------------------------------------


@pytest.mark.parametrize("batchable", [None, False, True])
@pytest.mark.parametrize("general", [False, True])
def test_disposition_goes_out_at_the_end_of_the_read_whatever_batchable_says(
    batchable: bool | None, general: bool
) -> None:
    link, script = receiving()
    script << b"".join(transfer(0, n, b"m", batchable=batchable, symbolic=general) for n in range(3))
    assert [(d.payload, d.settled) for d in link.queue] == [(b"m", False)] * 3
    for delivery in link.queue:
        delivery.accept()
    script >> expected("disposition", role=True, first=0, last=2, settled=True, batchable=None)
    script.expect_nothing()


@pytest.mark.parametrize("batchable", [None, False, True])
@pytest.mark.parametrize("settled", [False, True])
def test_outcome_counts_whatever_batchable_says(batchable: bool | None, settled: bool) -> None:
    link, script = sending()
    sent = [link.send(b"m") for _ in range(2)]
    for n in range(2):
        script >> expected("transfer", delivery_id=n, batchable=None)  # nothing of ours is to wait
    script << disposition(True, 0, 1, settled=settled, batchable=batchable)
    assert [(d.settled, d.state) for d in sent if d is not None] == [(True, ACCEPTED)] * 2
    if not settled:
        script >> expected("disposition", role=False, first=0, last=1, settled=True, batchable=None)
    script.expect_nothing()


# -- modes of single deliveries (2.7.5, 2.8.2, 2.8.3) -------------------------------------------


@pytest.mark.parametrize("rcv", [ReceiverSettleMode.FIRST, ReceiverSettleMode.SECOND])
def test_mixed_sender_settles_delivery_by_delivery(rcv: ReceiverSettleMode) -> None:
    pair = Pair(Connection("a"), Connection("b")).open()
    session = pair.a.session()
    session.begin()
    sender = session.sender("x")
    sender.attach(
        snd_settle_mode=SenderSettleMode.MIXED,
        rcv_settle_mode=rcv,
        source=Source(),
        target=Target(address="q"),
    )
    pair.run()
    receiver: Any = next(link for link in pair.b.names if link.name == "x")
    receiver.set_credit(10)
    pair.run()
    asked = [True, False, False, True, False]
    sent = [sender.send(b"m", settled=settled) for settled in asked]
    assert sender.unsettled == 3
    pair.run()
    received = list(receiver.queue)
    assert [d.settled for d in received] == asked
    for delivery in received:
        delivery.accept()
    pair.run()
    assert all(d is not None and d.settled for d in sent)
    assert [d.state for d in sent if d is not None] == [None if early else ACCEPTED for early in asked]
    assert all(d.settled for d in received)
    assert (sender.unsettled, receiver.tags) == (0, {})


@pytest.mark.parametrize("second", [False, True])
def test_receiver_may_tell_how_far_it_has_come_before_its_outcome(second: bool) -> None:
    mode = ReceiverSettleMode.SECOND if second else ReceiverSettleMode.FIRST
    link, script = receiving(rcv_settle_mode=int(mode))
    link.rcv_settle_mode = mode
    script << transfer(0, 0, b"m")
    delivery = link.queue[0]
    for offset in (1, 2):
        link.session.settlement.dispose(delivery, Received(section_number=0, section_offset=offset))
        state = ("received", {"section_number": 0, "section_offset": offset})
        script >> expected("disposition", role=True, first=0, settled=None, state=state)
        assert not delivery.settled
    delivery.accept()
    script >> expected("disposition", role=True, first=0, settled=not second or None, state=links.ACCEPTED)
    assert delivery.settled is not second


# -- row 53: ranges of the peer's ---------------------------------------------------------------


@given(starts, st.lists(st.tuples(st.integers(-3, 23), st.integers(0, 40), st.booleans()), max_size=8))
def test_ranges_settle_what_a_model_of_single_ids_says(
    start: int, ranges: list[tuple[int, int, bool]]
) -> None:
    link, script = sending(credit=20)
    link.session.next_delivery_id = start
    sent = {(start + n) & MASK: link.send(b"m") for n in range(20)}
    script.collect().inbox.frames.clear()
    held = set(sent)
    for offset, span, settled in ranges:
        first = (start + offset) & MASK
        covered = {(first + n) & MASK for n in range(span + 1)}
        script << disposition(True, first, (first + span) & MASK, settled=settled)
        hit = held & covered
        for delivery_id in hit:
            delivery = sent[delivery_id]
            assert delivery is not None
            assert delivery.settled
            assert isinstance(delivery.state, Accepted)
        held -= covered
        answers = set[int]()
        script.collect()
        while script.inbox.frames:
            got = script.expect("disposition", role=False, settled=True)
            answers |= {
                (got["first"] + n) & MASK
                for n in range(
                    ((got["first"] if got["last"] is None else got["last"]) - got["first"] & MASK) + 1
                )
            }
        assert answers == (set() if settled else hit)
        assert set(link.session.settlement.outgoing) == held
        assert link.unsettled == len(held)


@pytest.mark.parametrize("first", [0, 5, MASK])
@pytest.mark.parametrize("back", [1, 1000, 2**31 - 1, 2**31])
def test_row_53_range_that_runs_backwards_ends_the_session(first: int, back: int) -> None:
    link, script = sending()
    link.send(b"m")
    script << disposition(True, first, (first - back) & MASK)
    script >> expected("transfer")
    script >> expected("end", error=("error", {"condition": "amqp:invalid-field"}))
    script.expect_event(SessionEnded, session=link.session)


@pytest.mark.parametrize("role", [True, False])
@pytest.mark.parametrize("span", [0, 1, 2**31 - 1])
def test_row_53_ids_that_nobody_knows_are_ignored(role: bool, span: int) -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m")
    link.queue[0].accept()
    script >> expected("disposition")
    script << disposition(role, 0, span) << disposition(role, 10**9, 10**9 + span)
    script.expect_nothing()
    assert link.session.state is SessionState.MAPPED


def test_row_53_widest_range_costs_no_more_than_what_is_unsettled() -> None:
    link, script = sending(credit=3)
    for _ in range(3):
        link.send(b"m")
    octets = disposition(True, 10, 10 + 2**31 - 1) * 200
    began = time.process_time()
    script << octets
    assert time.process_time() - began < 1.0
    assert link.unsettled == 3


@pytest.mark.parametrize("last", [None, 0])
def test_row_53_range_of_one_may_leave_out_its_last(last: int | None) -> None:
    link, script = sending()
    delivery = link.send(b"m")
    script << frame(
        "disposition", role=True, first=0, last=last, settled=True, state=("accepted", {}), symbolic=True
    )
    assert delivery is not None
    assert delivery.settled


def test_row_53_dispositions_of_the_wrong_end_touch_nothing() -> None:
    link, script = sending()
    delivery = link.send(b"m")
    assert delivery is not None
    script << disposition(False, 0)
    assert not delivery.settled


# -- what a link leaves -------------------------------------------------------------------------


def test_forget_drops_what_the_link_left_and_nothing_else() -> None:
    session, script = begun()
    names = ("in-1", "in-2", "out-1", "out-2")
    ends: list[Any] = [session.receiver(n) if n.startswith("in") else session.sender(n) for n in names]
    for handle, link in enumerate(ends):
        attached(script, session, link, handle, credit=5 if handle < 2 else 0)
    script << flow(handle=2, link_credit=5, delivery_count=0) + flow(
        handle=3, link_credit=5, delivery_count=0
    )
    script << transfer(0, 0, b"m", rcv_settle_mode=0) + transfer(1, 1, b"m", rcv_settle_mode=0)
    out = [ends[2].send(b"m"), ends[3].send(b"m")]
    incoming = [ends[0].queue[0], ends[1].queue[0]]
    for delivery in (*out, *incoming):
        delivery.watcher = Owner()
    settlement = session.settlement
    assert set(settlement.modes) == {0, 1}
    script << frame("detach", handle=3, closed=True)  # its delivery has the id 1, as one that came in has
    assert list(settlement.outgoing) == [0]
    assert set(settlement.modes) == {0, 1}
    script << frame("detach", handle=0, closed=True)
    assert list(settlement.incoming) == [1]
    assert settlement.modes == {1: 0}
    assert (ends[2].unsettled, ends[3].unsettled, ends[0].tags) == (1, 0, {})
    woken = {d.watcher for d in (out[1], incoming[0])}
    assert woken <= set(script.touched)
    assert not {d.watcher for d in (out[0], incoming[1])} & set(script.touched)
    with pytest.raises(LocalProtocolError, match="its link is gone"):
        out[1].settle()
    with pytest.raises(LocalProtocolError, match="its link is gone"):
        incoming[0].accept()
    assert incoming[0].state is None
    out[0].settle()
    incoming[1].accept()


def test_forget_drops_everything_when_the_session_ends() -> None:
    link, script = sending()
    delivery = link.send(b"m")
    assert delivery is not None
    delivery.watcher = Owner()
    script << frame("end")
    assert delivery.watcher in script.touched
    assert not delivery.settled
    with pytest.raises(LocalProtocolError, match="its link is gone"):
        delivery.settle()


def test_unsettled_sets_are_equal_when_two_engines_come_to_rest() -> None:
    pair = Pair(Connection("a"), Connection("b")).open()
    sender, receiver = pair.link(credit=50)
    for _ in range(50):
        sender.send(b"m")
    pair.run()
    for n, delivery in enumerate(list(receiver.queue)):
        if n % 7 == 0:
            delivery.accept()
        elif n % 7 == 3:
            delivery.reject("amqp:not-found", "never heard of it")
    pair.run()
    left = set(sender.session.settlement.outgoing)
    assert left == set(receiver.session.settlement.incoming)
    assert len(left) == sender.unsettled == len(receiver.tags) == 35


# -- inside a transaction (4.4) -----------------------------------------------------------------


def test_outcome_in_a_transaction_does_not_make_the_sender_settle() -> None:
    link, script = sending()
    delivery = link.send(b"m")
    assert delivery is not None
    state: Any = ("transactional-state", {"txn_id": b"t", "outcome": ("accepted", {})})
    script << disposition(True, 0, settled=False, state=state)
    assert not delivery.settled
    assert delivery.state == TransactionalState(txn_id=b"t", outcome=Accepted())


# -- what is remembered until the sender settles ------------------------------------------------


@pytest.mark.parametrize("sheds", [False, True])
def test_delivery_is_counted_from_its_outcome_until_its_sender_settles(sheds: bool) -> None:
    link, script = receiving(credit=9)
    link.rcv_settle_mode = ReceiverSettleMode.SECOND
    link.sheds = sheds
    script << b"".join(transfer(0, n, b"m" * 10) for n in range(3))
    deliveries = list(link.queue)
    settlement, connection = link.session.settlement, link.session.connection
    link.owner = owner = Owner()
    each = REMEMBERED + (0 if sheds else 10)
    settlement.dispose(deliveries[0], TransactionalState(txn_id=b"t", outcome=Accepted()))
    assert connection.awaiting_settlement_octets == 0
    settlement.dispose(deliveries[1], ACCEPTED)
    settlement.dispose(deliveries[2], RELEASED)
    assert connection.awaiting_settlement_octets == 2 * each
    assert [one.payload for one in deliveries] == [b"m" * 10, *[b"" if sheds else b"m" * 10] * 2]
    script << disposition(False, 0, settled=True)
    assert owner not in script.touched
    assert connection.awaiting_settlement_octets == 2 * each
    script << disposition(False, 1, settled=True)
    assert owner in script.touched
    assert connection.awaiting_settlement_octets == each
    settlement.release(deliveries[2])
    assert connection.awaiting_settlement_octets == 0


def test_delivery_with_an_outcome_that_was_taken_back_is_counted_once() -> None:
    link, script = receiving(credit=9)
    link.rcv_settle_mode = ReceiverSettleMode.SECOND
    script << transfer(0, 0, b"m")
    (delivery,) = link.queue
    link.session.settlement.dispose(delivery, ACCEPTED)
    delivery.state = None
    link.session.settlement.dispose(delivery, RELEASED)
    assert link.session.connection.awaiting_settlement_octets == REMEMBERED + 1


def test_delivery_of_a_link_that_is_closed_is_not_counted_any_more() -> None:
    link, script = receiving(credit=9)
    link.rcv_settle_mode = ReceiverSettleMode.SECOND
    script << transfer(0, 0, b"m")
    link.session.settlement.dispose(link.queue[0], ACCEPTED)
    assert link.session.connection.awaiting_settlement_octets
    link.detach()
    script << frame("detach", handle=0, closed=True)
    assert link.session.connection.awaiting_settlement_octets == 0


# -- an owner that looks at many -----------------------------------------------------------------


def test_accepted_deliveries_are_listed_for_an_owner_that_looks_at_all_of_them() -> None:
    link, script = sending()
    link.owner, link.accepted = owner, listed = Owner(), list[Any]()
    sent = [link.send(b"m") for _ in range(5)]
    watchers = [Owner() for _ in sent]
    for delivery, watcher in zip(sent[:4], watchers, strict=False):
        assert delivery is not None
        delivery.watcher = watcher
    script.collect()
    script.touched.clear()
    script << disposition(True, 0, 1)
    script << disposition(True, 2, state=("released", {}))
    script << disposition(True, 3, 4)
    assert listed == [sent[0], sent[1], sent[3]]  # nobody watches the last
    assert script.touched == [owner, watchers[2]]
    assert all(delivery is not None and delivery.settled for delivery in sent)
    assert link.unsettled == 0


def test_outcome_that_a_receiver_settles_second_is_not_listed() -> None:
    link, script = sending()
    link.owner, link.accepted = Owner(), list[Any]()
    delivery = link.send(b"m")
    assert delivery is not None
    delivery.watcher = watcher = Owner()
    script << disposition(True, 0, settled=False)
    assert watcher in script.touched
    assert not link.accepted
