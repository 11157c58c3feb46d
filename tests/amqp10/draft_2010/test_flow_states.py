"""Flow-states say counts, credit and what waits as the draft counts them (8.6)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from trio_amqp10.amqp10.draft_2010.spec import transport as draft
from trio_amqp10.amqp10.message import Message

from .links import PAYLOAD, data, receiving, sending, state, transfer


def test_credit_comes_with_the_attach_and_with_a_flow() -> None:
    script, link = sending()
    assert link.credit == 10
    script << draft.Flow(handle=0, flow_state=state(transfer_count=0, link_credit=3, drain=True), echo=True)
    assert link.credit == 3
    assert link.drain
    (echo,) = script.said()
    assert echo.flow_state.link_credit == 3
    link.drained()
    (flow,) = script.said()
    assert (flow.flow_state.transfer_count, flow.flow_state.link_credit) == (3, 0)


def test_without_a_limit_credit_never_ends() -> None:
    script, link = sending(link_credit=None)
    for _ in range(3):
        assert link.send(PAYLOAD, settled=True) is not None
    assert link.credit > 2**31 - 10
    assert all(body.flow_state.link_credit is None for body in script.said())


def test_sender_counts_each_complete_message() -> None:
    script, link = sending()
    link.send(PAYLOAD)
    (body,) = script.said()
    assert (body.flow_state.transfer_count, body.flow_state.link_credit) == (1, 9)
    assert body.flow_state.unsettled_lwm == 0
    link.send(Message(b"x" * 400_000).to_payload())
    *parts, last = script.said()
    assert len(parts) >= 3
    assert {part.flow_state.transfer_count for part in parts} == {1}
    assert {part.flow_state.link_credit for part in parts} == {9}
    assert (last.flow_state.transfer_count, last.flow_state.link_credit) == (2, 8)
    assert all(part.more for part in parts)
    assert not last.more


def test_flow_of_a_sender_in_the_middle_of_a_message_counts_it_not_yet() -> None:
    script, link = sending()
    link.begin(b"")
    (opening,) = script.said()
    assert opening.more
    assert opening.fragments == ()
    link.available = 4
    link.write_flow(echo=True)
    (flow,) = script.said()
    assert flow.echo
    assert (flow.flow_state.transfer_count, flow.flow_state.link_credit) == (0, 10)
    assert flow.flow_state.available == 4


def test_receiver_learns_of_what_waits_and_of_credit_that_was_given_up() -> None:
    script, link = receiving()
    script << transfer(0, data(b"x"), flow_state=state(0, transfer_count=4, available=7))
    assert link.available == 7
    assert link.delivery_count == 4
    assert link.credit == 6


def test_receiver_says_the_last_count_that_the_sender_named() -> None:
    script, link = receiving()
    script << transfer(0, data(b"x"), flow_state=state(0, transfer_count=4))
    link.set_credit(20)
    (flow,) = script.said()
    assert flow.flow_state.transfer_count == 4
    script << draft.Flow(handle=0, flow_state=state(transfer_count=9))
    link.set_credit(21)
    (flow,) = script.said()
    assert flow.flow_state.transfer_count == 9


def test_sender_says_what_waits_beside_a_count_that_has_not_moved() -> None:
    script, link = receiving()
    script << transfer(0, data(b"x"), flow_state=state(0, transfer_count=1, available=7))
    assert (link.available, link.delivery_count) == (7, 1)
