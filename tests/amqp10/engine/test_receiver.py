"""The receiving end: credit given, taken back and drained, and what may still come in (2.6.7)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.script import expected
from trio_amqp10.amqp10.engine.events import LinkDetached
from trio_amqp10.amqp10.engine.link import FAR
from trio_amqp10.amqp10.engine.serial_numbers import MASK, distance
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.amqp10.spec.transport import Flow
from trio_amqp10.core.errors import LocalProtocolError

from .helpers import Pair, begun, flow, receiving
from .links import Owner, attach, transfer

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.receiver import ReceiverLink


def test_set_credit_writes_one_flow_however_often_it_is_called() -> None:
    link, script = receiving(credit=0)
    for credit in (5, 6, 7):
        link.set_credit(credit)
    script >> expected("flow", handle=0, delivery_count=0, link_credit=7, drain=None, next_incoming_id=0)
    script.expect_nothing()


def test_set_credit_before_the_peers_attach_leaves_the_delivery_count_open() -> None:
    session, script = begun()
    link = session.receiver("x")
    link.attach(source=Source(address="q"), target=Target())
    link.set_credit(5)
    script >> expected("attach") >> expected("flow", delivery_count=None, link_credit=5)
    script << attach("x", 3, role=False, initial_delivery_count=7) << transfer(3, 0, b"m")
    assert (link.delivery_count, link.credit, len(link.queue)) == (8, 4, 1)


@pytest.mark.parametrize("credit", [-1, FAR + 1])
def test_set_credit_raises_and_changes_nothing_when_the_credit_is_impossible(credit: int) -> None:
    link, script = receiving(credit=3)
    with pytest.raises(LocalProtocolError, match=f"link credit of {credit}: expected 0 to {FAR}"):
        link.set_credit(credit)
    assert link.credit == 3
    script.expect_nothing()


def test_set_credit_raises_when_the_link_is_not_attached() -> None:
    session, script = begun()
    link = session.receiver("x")
    with pytest.raises(LocalProtocolError, match="cannot give credit: this link is DETACHED"):
        link.set_credit(1)
    script.expect_nothing()


@pytest.mark.parametrize("initial", [None, 0, 7, MASK])
def test_row_58_initial_delivery_count_reads_as_zero_when_it_is_null(initial: int | None) -> None:
    link, script = receiving(credit=0, initial_delivery_count=initial)
    link.set_credit(2)
    script >> expected("flow", delivery_count=initial or 0, link_credit=2)
    script << transfer(0, 0, b"m")
    assert link.delivery_count == ((initial or 0) + 1) & MASK


def test_row_46_delivery_without_credit_detaches_with_transfer_limit_exceeded() -> None:
    link, script = receiving(credit=2)
    script << transfer(0, 0, b"a") + transfer(0, 1, b"b")
    script.expect_nothing()
    script << transfer(0, 2, b"c")
    script >> expected(
        "detach",
        handle=0,
        closed=True,
        error=("error", {"condition": "amqp:link:transfer-limit-exceeded"}),
    )
    event = script.expect_event(LinkDetached, link=link, closed=True)
    assert event.error.condition == "amqp:link:transfer-limit-exceeded"
    assert [d.payload for d in link.queue] == [b"a", b"b"]
    assert link.session.state.name == "MAPPED"


def test_row_46_excess_is_accepted_when_we_lowered_credit_with_transfers_in_flight() -> None:
    link, script = receiving(credit=5)
    link.set_credit(0)
    script >> expected("flow", link_credit=0, delivery_count=0)
    script << b"".join(transfer(0, n, b"m") for n in range(5))
    script.expect_nothing()
    assert (len(link.queue), link.delivery_count, link.credit) == (5, 5, 0)
    script << transfer(0, 5, b"m")
    script >> expected("detach", error=("error", {"condition": "amqp:link:transfer-limit-exceeded"}))


def test_row_46_excess_is_accepted_when_credit_was_lowered_in_steps() -> None:
    link, script = receiving(credit=20)
    for credit in (10, 3, 0):
        link.set_credit(credit)
        script >> expected("flow", link_credit=credit)
    script << b"".join(transfer(0, n, b"m") for n in range(20))
    script.expect_nothing()
    assert len(link.queue) == 20


def test_row_46_peer_that_counts_every_credit_from_now_overshoots_by_a_window_at_most() -> None:
    link, script = receiving(credit=10)
    script << b"".join(transfer(0, n, b"m") for n in range(5))
    link.set_credit(10)
    script >> expected("flow", link_credit=10, delivery_count=5)
    script << b"".join(transfer(0, n, b"m") for n in range(5, 20))  # 5 by the old credit, then 10
    script.expect_nothing()
    script << transfer(0, 20, b"m")
    script >> expected("detach", error=("error", {"condition": "amqp:link:transfer-limit-exceeded"}))


class LawfulSender:
    """Numbers of 2.6.7 at the other end, where flows arrive late and in order."""

    def __init__(self, start: int) -> None:
        self.count = start
        self.limit = start
        self.flows: deque[tuple[int, int, bool]] = deque()

    def read(self) -> bool:
        """The next flow; whether the credit was drained."""
        count, credit, drain = self.flows.popleft()
        self.limit = (count + credit) & MASK
        if not drain:
            return False
        if distance(self.limit, self.count) > 0:
            self.count = self.limit
        return True

    def send(self) -> bool:
        if distance(self.limit, self.count) <= 0:
            return False
        self.count = (self.count + 1) & MASK
        return True


ACTIONS = st.one_of(
    st.tuples(st.just("grant"), st.integers(0, 30), st.booleans()),
    st.tuples(st.just("read")),
    st.tuples(st.just("send"), st.integers(1, 12)),
)


@given(st.sampled_from([0, MASK - 3]), st.lists(ACTIONS, max_size=40))
def test_lawful_sender_is_never_short_of_credit_when_flows_come_late(
    start: int, actions: list[tuple[Any, ...]]
) -> None:
    link, sender = lone_receiver(start), LawfulSender(start)
    for action in actions:
        match action:
            case ("grant", credit, drain):
                link.set_credit(credit, drain=drain)
                assert link.delivery_count is not None
                sender.flows.append((link.delivery_count, link.credit, link.drain))
            case ("read",) if sender.flows:
                if sender.read():
                    link.on_flow(sender_flow(sender.count))
            case ("send", n):
                for _ in range(n):
                    if sender.send():
                        assert link.take_credit()
            case _:
                pass
        assert 0 <= link.credit <= FAR
    while sender.flows:
        sender.read()
        link.on_flow(sender_flow(sender.count))
    assert link.delivery_count == sender.count
    assert link.credit == max(0, distance(sender.limit, sender.count))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20))
def test_sender_that_knows_no_credit_is_stopped_within_two_windows(grants: list[int]) -> None:
    link = lone_receiver(0)
    for credit in grants:
        link.set_credit(credit)
    taken = 0
    while link.take_credit():
        taken += 1
        assert taken <= grants[-1] + 2 * max(grants)


def lone_receiver(start: int) -> ReceiverLink:
    link, _ = receiving(credit=0)
    link.delivery_count = start
    return link


def sender_flow(count: int) -> Flow:
    return Flow(
        next_incoming_id=0,
        incoming_window=1,
        next_outgoing_id=0,
        outgoing_window=1,
        handle=0,
        delivery_count=count,
    )


def test_drain_ends_when_the_sender_gives_the_credit_up() -> None:
    link, script = receiving(credit=5)
    link.owner = owner = Owner()
    link.set_credit(5, drain=True)
    script >> expected("flow", link_credit=5, drain=True, delivery_count=0)
    script << transfer(0, 0, b"last one")
    assert (link.drain, link.credit) == (True, 4)
    script << flow(handle=0, delivery_count=5, link_credit=0, drain=True, available=0)
    assert (link.drain, link.credit, link.delivery_count) == (False, 0, 5)
    assert owner in script.touched
    script.expect_nothing()


def test_drain_ends_when_the_sender_uses_the_credit_up() -> None:
    link, script = receiving(credit=1)
    link.set_credit(1, drain=True)
    script >> expected("flow", drain=True)
    script << transfer(0, 0, b"m") + flow(handle=0, delivery_count=1, link_credit=0, drain=True)
    assert (link.drain, link.credit, len(link.queue)) == (False, 0, 1)


def test_drain_goes_on_when_the_sender_has_given_up_a_part_only() -> None:
    link, script = receiving(credit=5)
    link.set_credit(5, drain=True)
    script << flow(handle=0, delivery_count=3)
    assert (link.drain, link.credit) == (True, 2)


@pytest.mark.parametrize("start", [0, MASK - 1])
def test_drain_brings_both_ends_to_the_same_count_when_nothing_is_to_be_sent(start: int) -> None:
    pair = Pair().open()
    sender, receiver = pair.link(credit=0)
    sender.delivery_count = receiver.delivery_count = start
    receiver.set_credit(10, drain=True)
    pair.run()
    assert (sender.credit, sender.drain) == (10, True)
    sender.send(b"one")
    sender.drained()
    pair.run()
    assert sender.delivery_count == receiver.delivery_count == (start + 10) & MASK
    assert sender.credit == receiver.credit == 0
    assert not receiver.drain
    assert len(receiver.queue) == 1


def test_row_52_flow_of_the_links_sender_counts_for_count_and_available_only() -> None:
    link, script = receiving(credit=5)
    script << flow(handle=0, delivery_count=0, link_credit=1000, drain=True, available=42)
    assert (link.credit, link.drain, link.available) == (5, False, 42)
    script << flow(handle=0, link_credit=1000)
    assert (link.credit, link.delivery_count, link.available) == (5, 0, 42)
    script.expect_nothing()


def test_flow_of_a_sender_that_is_behind_changes_nothing() -> None:
    link, script = receiving(credit=5)
    script << transfer(0, 0, b"m") + flow(handle=0, delivery_count=0)
    assert (link.credit, link.delivery_count) == (4, 1)


def test_flow_uses_up_what_was_taken_back_when_the_sender_gives_up_more_than_the_credit() -> None:
    link, script = receiving(credit=5)
    link.set_credit(0)
    script << flow(handle=0, delivery_count=5)
    script >> expected("flow", link_credit=0)
    script << transfer(0, 0, b"m")
    script >> expected("detach", error=("error", {"condition": "amqp:link:transfer-limit-exceeded"}))


@pytest.mark.parametrize(("mine", "told"), [(None, 16 * 1024 * 1024), (5, 5)])
def test_attach_tells_the_message_size_that_is_enforced(mine: int | None, told: int) -> None:
    session, script = begun()
    link = session.receiver("x")
    link.attach(source=Source(address="q"), target=Target(), max_message_size=mine)
    script >> expected("attach", max_message_size=told)
    assert link.max_message_size == told


def test_attach_leaves_the_message_size_as_it_was_when_it_raises() -> None:
    session, script = begun()
    link = session.receiver("x")
    with pytest.raises(LocalProtocolError):
        link.attach(source=Source(address=object()), target=Target(), max_message_size=5)  # pyright: ignore[reportArgumentType]
    assert link.max_message_size == 16 * 1024 * 1024
    assert link.state is LinkState.DETACHED
    script.expect_nothing()


def test_row_64_queue_is_bounded_by_credit_when_nobody_takes_from_it() -> None:
    pair = Pair().open()
    sender, receiver = pair.link(credit=10)
    sent = 0
    while sender.send(b"m") is not None:
        sent += 1
        pair.run()
    assert (sent, len(receiver.queue), sender.credit) == (10, 10, 0)
    receiver.queue.clear()
    receiver.set_credit(3)
    pair.run()
    assert sender.credit == 3
