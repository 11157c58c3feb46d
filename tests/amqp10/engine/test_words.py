"""What is said of many deliveries in one word: which counts, and which comes too late (2.7.6, 3.4, 4.4)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.naive.performatives import frame
from tests.naive.script import expected
from trio_amqp10.amqp10.engine.delivery import IncomingDelivery, OutgoingDelivery
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.engine.unsettled_state import UNBOUND
from trio_amqp10.amqp10.spec.messaging import Accepted, Received, Rejected
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.core.errors import RemoteProtocolError

from .helpers import flow, receiving, sending
from .links import ACCEPTED, Owner, attached, disposition, session_of, transfer

if TYPE_CHECKING:
    from tests.naive.script import Script
    from trio_amqp10.amqp10.engine.sender import SenderLink

REJECTED: Any = ("rejected", {})
COUNT = 200


def received(offset: int) -> Any:
    return ("received", {"section_number": 0, "section_offset": offset})


def transactional(outcome: Any, txn_id: bytes = b"t") -> Any:
    return ("transactional-state", {"txn_id": txn_id, "outcome": outcome})


def say(first: int, last: int, state: Any, *, settled: bool = False) -> bytes:
    return disposition(True, first, last, settled=settled, state=state)


def sent(
    count: int = COUNT, *, confirms: bool = True, limits: Limits | None = None
) -> tuple[SenderLink, Script, list[OutgoingDelivery]]:
    link, script = sending(limits, credit=0)
    link.confirms = confirms
    script << flow(handle=0, delivery_count=0, link_credit=20 * COUNT, incoming_window=20 * COUNT)
    deliveries = [link.send(b"m") for _each in range(count)]
    script.collect().inbox.frames.clear()
    return link, script, [each for each in deliveries if each is not None]


def offsets(deliveries: list[OutgoingDelivery]) -> list[int | None]:
    return [each.state.section_offset if isinstance(each.state, Received) else None for each in deliveries]


def test_state_is_the_word_that_was_said_last() -> None:
    link, script, deliveries = sent()
    script << say(0, COUNT - 1, received(1)) << say(10, 149, received(2)) << say(5, 12, received(3))
    assert offsets(deliveries) == [1] * 5 + [3] * 8 + [2] * 137 + [1] * 50
    script << say(0, 99, None, settled=True)
    assert offsets(deliveries) == [1] * 5 + [3] * 8 + [2] * 137 + [1] * 50
    assert all(each.settled for each in deliveries[:100])
    script << say(0, 2**31 - 1, ACCEPTED)
    assert [each.state for each in deliveries[100:]] == [Accepted()] * 100
    assert link.unsettled == 100


def test_state_of_what_came_in_is_the_word_that_was_said_last() -> None:
    link, script = receiving(credit=COUNT)
    script << b"".join(transfer(0, n, b"m", state=received(0) if n == 3 else None) for n in range(100))
    deliveries = list(link.queue)
    assert [each.remote_state is None for each in deliveries] == [n != 3 for n in range(100)]
    script << disposition(False, 0, 2**31 - 1, settled=False, state=None)
    assert deliveries[3].remote_state.section_offset == 0
    script << disposition(False, 0, 80, settled=False, state=received(7))
    assert [each.remote_state is None for each in deliveries] == [n > 80 for n in range(100)]
    script << disposition(False, 3, settled=True, state=None)
    assert (deliveries[3].settled, deliveries[3].remote_state.section_offset) == (True, 7)


@pytest.mark.parametrize("ahead", [3, 64, 65, 100])
def test_range_that_ends_among_deliveries_that_came_since_the_last_flow_settles_them_too(ahead: int) -> None:
    link, script, before = sent(2)
    script << flow(
        handle=0, delivery_count=2, link_credit=10 * COUNT, incoming_window=10 * COUNT, next_incoming_id=2
    )
    since = [link.send(b"m") for _each in range(COUNT)]
    script << say(0, ahead, ACCEPTED, settled=True)
    settled = [each.settled for each in (*before, *since) if each is not None]
    assert settled == [True] * (ahead + 1) + [False] * (COUNT + 1 - ahead)


def test_word_on_a_delivery_that_was_sent_since_the_last_flow_is_kept() -> None:
    link, script, _before = sent(2)
    delivery = link.send(b"m")
    assert delivery is not None
    script << say(2, 2, received(7))
    script << flow(handle=0, delivery_count=0, link_credit=10, incoming_window=10, next_incoming_id=0)
    assert delivery.state.section_offset == 7


def test_delivery_that_was_received_in_part_is_settled_without_a_state() -> None:
    _link, script, (delivery,) = sent(1)
    script << say(0, 0, received(7))
    delivery.settle()
    script >> expected("disposition", first=0, settled=True, state=None)


@pytest.mark.parametrize("last", [5, COUNT - 1])
def test_outcome_is_followed_by_no_other(last: int) -> None:
    _link, script, deliveries = sent()
    script << say(0, last, ACCEPTED) << say(0, last, REJECTED) << say(0, last, received(1))
    assert [each.state for each in deliveries[: last + 1]] == [Accepted()] * (last + 1)


@pytest.mark.parametrize("last", [5, COUNT - 1])
def test_outcome_in_a_transaction_may_be_changed_before_the_discharge(last: int) -> None:
    _link, script, deliveries = sent()
    states: list[Any] = []
    for state in (ACCEPTED, REJECTED, REJECTED):
        deliveries[2].watcher = owner = Owner()
        script << say(0, last, transactional(state))
        states.append(deliveries[2].state.outcome)
        assert (owner in script.touched) == (len(states) < 3)  # the same again is no news
    assert states == [Accepted(), Rejected(), Rejected()]
    script << say(2, 2, transactional(ACCEPTED)) << say(0, last, transactional(REJECTED))
    assert deliveries[2].state == TransactionalState(txn_id=b"t", outcome=Rejected())
    script << say(0, last, ACCEPTED) << say(0, last, transactional(REJECTED))
    assert [each.state for each in deliveries[: last + 1]] == [Accepted()] * (last + 1)


def test_outcome_in_a_transaction_that_is_said_twice_in_different_ranges_is_no_news() -> None:
    _link, script, deliveries = sent(3)
    script << say(0, 1, transactional(ACCEPTED))
    deliveries[0].watcher = owner = Owner()
    deliveries[0].link.session.settlement.sent.forget_word(0)
    script << say(0, 1, transactional(ACCEPTED))
    assert owner not in script.touched


def test_outcomes_of_many_deliveries_are_changed_at_a_bounded_rate() -> None:
    _link, script, _deliveries = sent(limits=Limits(churn=2, churn_rate=1.0))
    octets = say(0, COUNT - 1, transactional(ACCEPTED)) + say(0, COUNT - 1, transactional(REJECTED))
    script << octets << say(0, COUNT - 1, transactional(ACCEPTED))
    with pytest.raises(RemoteProtocolError, match="outcomes in a transaction changed at too high a rate"):
        script << say(0, COUNT - 1, transactional(REJECTED))


@pytest.mark.parametrize(("count", "changes"), [(65, 20), (1000, 20), (3000, 6)])
def test_change_of_many_outcomes_costs_as_many_tokens_as_there_are_thousands(
    count: int, changes: int
) -> None:
    _link, script, _deliveries = sent(count, limits=Limits(churn=20, churn_rate=1.0))
    states = [REJECTED, ACCEPTED] * 20
    script << say(0, count - 1, transactional(ACCEPTED))
    for state in states[:changes]:
        script << say(0, count - 1, transactional(state))
    with pytest.raises(RemoteProtocolError, match="outcomes in a transaction changed at too high a rate"):
        script << say(0, count - 1, transactional(states[changes]))


def test_change_of_few_outcomes_costs_nothing() -> None:
    _link, script, _deliveries = sent(64, limits=Limits(churn=2, churn_rate=1.0))
    for state in [REJECTED, ACCEPTED] * 20:
        script << say(0, 63, transactional(state))


@pytest.mark.parametrize("last", [5, COUNT - 1])
def test_outcome_that_did_not_come_to_count_is_followed_by_another(last: int) -> None:
    _link, script, deliveries = sent()
    script << say(0, last, ACCEPTED)
    deliveries[3].state = None
    assert deliveries[3].state is None
    script << say(0, last, REJECTED)
    assert [each.state for each in deliveries[2:5]] == [Accepted(), Rejected(), Accepted()]
    script << say(0, last, None, settled=True)
    deliveries[3].state = None  # of no consequence any more
    assert deliveries[3].settled


def test_deliveries_of_a_link_that_goes_are_found_among_all() -> None:
    a, script, first = sent(3)
    b, c = session_of(a).sender("b"), session_of(a).sender("c")
    for handle, link in enumerate((b, c), 1):
        attached(script, a.session, link, handle)
        script << flow(handle=handle, delivery_count=0, link_credit=5, incoming_window=99)
        assert link.send(b"m") is not None
        script.collect().inbox.frames.clear()
    b.detach()
    script >> expected("detach")
    script << _detach(1)
    assert (b.state, b.in_doubt, list(a.session.settlement.outgoing)) == (LinkState.GONE, 1, [0, 1, 2, 4])
    script << say(0, 2, ACCEPTED, settled=True)
    fresh = [a.send(b"m") for _each in range(2)]
    script.collect().inbox.frames.clear()
    c.detach()
    script >> expected("detach")
    script << _detach(2)
    script << say(5, 5, ACCEPTED, settled=True)
    a.detach()
    script >> expected("detach")
    script << _detach(0)
    assert (a.in_doubt, a.unsettled, not a.session.settlement.outgoing) == (1, 0, True)
    assert [each.settled for each in (*first, *fresh) if each is not None] == [True] * 4 + [False]


def test_link_that_goes_leaves_alone_what_was_not_taken_up_on_it() -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m")
    link.tags[b"before"] = IncomingDelivery(link, UNBOUND, b"before", 0, False, b"")
    link.detach()
    script >> expected("detach")
    script << _detach(0)
    assert not link.tags
    assert not link.session.settlement.incoming


def _detach(handle: int) -> bytes:
    return frame("detach", handle=handle, closed=True)
