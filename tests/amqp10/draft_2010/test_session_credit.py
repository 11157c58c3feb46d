"""The credit of a session bounds the transfers that are not settled (D 1426-1436)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from trio_amqp10.amqp10.draft_2010.spec import transport as draft
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.message import Message

from .links import ACCEPTED, PAYLOAD, data, receiving, sending, state, transfer
from .pairs import linked, opened_pair, talk


def test_session_credit_bounds_what_is_sent_until_the_lowest_moves_on() -> None:
    script, link = sending(session_credit=3)
    for _ in range(3):
        assert link.send(PAYLOAD) is not None
    assert link.send(PAYLOAD) is None
    script << draft.Disposition(
        role=True, extents=(draft.Extent(first=0, last=1, settled=True, state=ACCEPTED),)
    )
    assert link.send(PAYLOAD) is None
    script << draft.Flow(handle=0, flow_state=state(3, unsettled_lwm=2, transfer_count=3, link_credit=10))
    assert link.send(PAYLOAD) is not None
    assert link.send(PAYLOAD) is not None
    assert link.send(PAYLOAD) is None
    lows = [body.flow_state.unsettled_lwm for body in script.said()]
    assert lows == [0, 0, 0, 2, 2]


def test_settled_transfers_use_the_credit_of_the_session_too() -> None:
    script, link = sending(session_credit=1)
    assert link.send(PAYLOAD, settled=True) is not None
    assert link.send(PAYLOAD, settled=True) is None
    assert script.said()[0].settled


def test_message_in_many_transfers_takes_one_of_the_credit() -> None:
    script, link = sending(session_credit=1)
    assert link.send(Message(b"x" * 500_000).to_payload()) is not None
    parts = script.said()
    assert len({part.transfer_id for part in parts}) == 1
    assert not parts[-1].more
    assert not link.in_progress
    assert link.send(PAYLOAD) is None


def test_transfer_beyond_the_credit_of_the_session_ends_it() -> None:
    script, link = receiving(credit=100, limits=Limits(incoming_window=2))
    script << transfer(0, data(b"a")) << transfer(1, data(b"b"))
    assert len(link.queue) == 2
    script << transfer(2, data(b"c"))
    (end,) = script.said()
    assert end.error.condition == "amqp:session:unsettled-limit-exceeded"
    assert "transfer 2" in end.error.description


def test_receiver_says_that_the_lowest_has_moved_on_once_half_is_used() -> None:
    script, link = receiving(credit=100, limits=Limits(incoming_window=4))
    script << transfer(0, data(b"a")) << transfer(1, data(b"b"))
    assert script.said() == []
    link.queue.popleft().accept()
    disposition, flow = script.said()
    assert isinstance(disposition, draft.Disposition)
    assert (flow.flow_state.unsettled_lwm, flow.flow_state.session_credit) == (1, 4)
    link.queue.popleft().accept()
    assert [type(body) for body in script.said()] == [draft.Disposition]
    script << transfer(2, data(b"c"))
    *_, flow = script.said()
    assert flow.flow_state.unsettled_lwm == 2


def test_settled_stream_goes_on_for_ever() -> None:
    one, two = opened_pair(limits=Limits(incoming_window=4))
    sender, receiver = linked(one, two, credit=1_000)
    for _ in range(100):
        assert sender.send(PAYLOAD, settled=True) is not None
        talk(one, two)
    assert len(receiver.queue) == 100


def test_consumer_that_holds_all_of_the_credit_stops_the_session() -> None:
    one, two = opened_pair(limits=Limits(incoming_window=4))
    sender, receiver = linked(one, two, credit=1_000)
    while sender.send(PAYLOAD):
        talk(one, two)
    assert len(receiver.queue) == 4
    receiver.queue.popleft().accept()
    talk(one, two)
    assert sender.send(PAYLOAD) is not None


def test_credit_of_a_session_without_receivers_is_told_to_nobody() -> None:
    script, _ = sending()
    script.session.owe_flow()
    assert script.said() == []
    link = script.attach(False, name="in", handle=1)
    link.set_credit(3)
    script.said()
    script.session.windows._credit = 2
    for number in range(2):
        script << transfer(number, data(b"x"), handle=1, settled=True)
    assert [body.handle for body in script.said()] == [link.handle]
    link.detach()
    script << transfer(2, data(b"x"), handle=1, settled=True)
    assert [type(body) for body in script.said()] == [draft.Detach]
