"""A receiver that counts in transfer units gets as much of a message as its credit covers (D 1264-1278)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import Any

from trio_amqp10.amqp10.draft_2010.spec import transport as draft
from trio_amqp10.amqp10.message import Data, Message

from .links import ACCEPTED, PAYLOAD, data, state, transfer
from .pairs import Script


def counting(unit: int, link_credit: int | None) -> tuple[Script, Any]:
    script = Script()
    link = script.attach(True, transfer_unit=unit, flow_state=state(100, link_credit=link_credit))
    script.said()
    return script, link


def said_of(script: Script) -> list[tuple[int, int, bool]]:
    """Return count, octets and the flag ``more`` of each transfer."""
    return [
        (
            body.flow_state.transfer_count,
            sum(len(fragment.payload) for fragment in body.fragments),
            bool(body.more),
        )
        for body in script.said()
        if isinstance(body, draft.Transfer)
    ]


def test_message_takes_the_credit_of_all_its_units() -> None:
    script, link = counting(10, 7)
    assert link.send(Message(b"x" * 25).to_payload()) is not None
    assert link.send(Message(b"").to_payload()) is not None
    assert link.send(Message(b"x" * 30).to_payload()) is not None
    assert link.send(Message(b"x").to_payload()) is None
    assert said_of(script) == [(3, 25, False), (4, 0, False), (7, 30, False)]


def test_message_is_sent_as_far_as_the_credit_goes() -> None:
    script, link = counting(10, 2)
    delivery = link.send(Message(b"x" * 55).to_payload())
    assert delivery is not None
    assert link.send(Message(b"y").to_payload()) is None
    assert said_of(script) == [(2, 20, True)]
    script << draft.Flow(handle=0, flow_state=state(transfer_count=2, link_credit=0))
    assert said_of(script) == []
    script << draft.Flow(handle=0, flow_state=state(transfer_count=2, link_credit=1))
    assert said_of(script) == [(3, 10, True)]
    script << draft.Flow(handle=0, flow_state=state(transfer_count=3, link_credit=4))
    assert said_of(script) == [(6, 25, False)]
    assert link.credit == 1
    assert link.send(Message(b"y").to_payload()) is not None
    assert said_of(script) == [(7, 1, False)]
    script << draft.Disposition(role=True, extents=(draft.Extent(first=0, settled=True, state=ACCEPTED),))
    assert delivery.settled


def test_fragments_are_joined_again_that_the_credit_has_parted() -> None:
    script, link = counting(100, 1)
    link.send(Message(Data(b"a" * 150, b"b" * 150)).to_payload())
    fragments = list(script.said()[0].fragments)
    for count in (1, 2):
        script << draft.Flow(handle=0, flow_state=state(transfer_count=count, link_credit=1))
        fragments += script.said()[0].fragments
    assert [
        (each.first, each.last, each.fragment_offset, len(each.payload))
        for each in fragments
        if each.format_code == 3
    ] == [
        (True, False, 0, 100),
        (False, True, 100, 50),
        (True, False, 150, 50),
        (False, True, 200, 100),
    ]


def test_drain_gives_up_what_is_left_in_units() -> None:
    script, link = counting(10, 5)
    script << draft.Flow(handle=0, flow_state=state(transfer_count=0, link_credit=5, drain=True))
    link.drained()
    (flow,) = script.said()
    assert (flow.flow_state.transfer_count, flow.flow_state.link_credit) == (5, 0)
    script << draft.Flow(handle=0, flow_state=state(transfer_count=None, link_credit=8))
    link.send(PAYLOAD)
    assert said_of(script) == [(6, 1, False)]


def test_message_in_the_middle_is_not_given_up_by_a_drain() -> None:
    script, link = counting(10, 1)
    link.send(Message(b"x" * 15).to_payload())
    script.said()
    script << draft.Flow(handle=0, flow_state=state(transfer_count=1, link_credit=0, drain=True))
    link.drained()
    (flow,) = script.said()
    assert flow.flow_state.transfer_count == 1


def test_message_that_has_begun_waits_where_credit_was_taken_back() -> None:
    script, link = counting(10, 2)
    partial = link.begin(Message(Data(b"", b"x" * 12)).to_payload())
    assert said_of(script) == [(0, 0, True)]
    script << draft.Flow(handle=0, flow_state=state(transfer_count=0, link_credit=0))
    partial.finish()
    assert said_of(script) == []
    script << draft.Flow(handle=0, flow_state=state(transfer_count=0, link_credit=1))
    first = script.said()[0].fragments
    script << draft.Flow(handle=0, flow_state=state(transfer_count=1, link_credit=1))
    second = script.said()[0].fragments
    assert [each.format_code for each in (*first, *second)] == [0, 1, 3, 3, 3, 2]


def test_units_of_an_outgoing_end_are_ignored_and_without_a_limit_all_is_sent() -> None:
    script = Script()
    link = script.attach(False, transfer_unit=5)
    link.set_credit(1)
    script.said()
    script << transfer(0, data(b"x" * 50))
    assert len(link.queue) == 1
    script, link = counting(10, None)
    link.send(Message(b"x" * 500).to_payload())
    assert said_of(script) == [(50, 500, False)]


def test_receiver_that_names_no_count_counts_from_the_first() -> None:
    script, link = counting(10, 5)
    assert link.send(Message(b"x" * 50).to_payload()) is not None
    assert said_of(script) == [(5, 50, False)]
    script << draft.Flow(handle=0, flow_state=state(transfer_count=None, link_credit=8))
    assert link.send(Message(b"y" * 50).to_payload()) is not None
    assert said_of(script) == [(8, 30, True)]
