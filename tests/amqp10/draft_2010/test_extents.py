"""The extents of a disposition say which transfers it is about (8.10)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from trio_amqp10.amqp10.draft_2010.spec import messaging, transactions
from trio_amqp10.amqp10.draft_2010.spec import transport as draft
from trio_amqp10.amqp10.draft_2010.spec.messaging import Source, TransferState
from trio_amqp10.amqp10.message import Message, Value
from trio_amqp10.amqp10.spec import messaging as final
from trio_amqp10.amqp10.spec.transactions import Coordinator, Declare, Declared

from .links import ACCEPTED, PAYLOAD, data, receiving, sending, state, transfer
from .pairs import Script


def test_extents_are_ranges_of_their_own() -> None:
    script, link = sending()
    deliveries = [link.send(PAYLOAD) for _ in range(4)]
    script.said()
    released = TransferState(outcome=messaging.Released())
    extents = (
        draft.Extent(first=0, last=1, settled=True, state=ACCEPTED),
        draft.Extent(first=3, settled=True, state=released),
    )
    script << draft.Disposition(role=True, extents=extents)
    assert [type(each.state) for each in deliveries] == [
        final.Accepted,
        final.Accepted,
        type(None),
        final.Released,
    ]


def test_extent_with_a_handle_is_about_that_link_alone() -> None:
    script, link = sending()
    other = script.attach(True, name="other", handle=1, flow_state=state(100, link_credit=10))
    deliveries = [each.send(PAYLOAD) for each in (link, other, other, link, other)]
    script << draft.Disposition(
        role=True, extents=(draft.Extent(first=0, last=3, handle=1, settled=True, state=ACCEPTED),)
    )
    assert [each.settled for each in deliveries] == [False, True, True, False, False]


def test_extent_of_the_senders_own_settles_what_came() -> None:
    script, link = receiving()
    for number in range(3):
        script << transfer(number, data(b"x"))
    script << draft.Disposition(role=False, extents=(draft.Extent(first=0, last=1, handle=0, settled=True),))
    assert [each.settled for each in link.queue] == [True, True, False]
    script << draft.Disposition(role=False, extents=(draft.Extent(first=2, settled=True),))
    assert all(each.settled for each in link.queue)


def test_extent_with_a_handle_that_says_nothing_changes_nothing() -> None:
    script, link = sending()
    delivery = link.send(PAYLOAD)
    script << draft.Disposition(role=True, extents=(draft.Extent(first=0, last=3, handle=0),))
    assert delivery.state is None
    assert not delivery.settled


def test_extent_that_ends_before_it_begins_ends_the_session() -> None:
    script, _ = sending()
    script << draft.Disposition(role=True, extents=(draft.Extent(first=3, last=2),))
    assert script.said()[-1].error.condition == "amqp:invalid-field"


def test_declare_refused_is_no_transaction() -> None:
    script = Script()
    link = script.session.sender("tx")
    link.attach(source=final.Source(), target=Coordinator())
    there = draft.Linkage(source=Source(), target=transactions.Coordinator())
    script << draft.Attach(name="tx", handle=0, role=True, local=there, flow_state=state(link_credit=5))
    first, second = (link.send(Message(Value(Declare())).to_payload()) for _ in range(2))
    script.said()
    rejected = TransferState(outcome=messaging.Rejected())
    made = TransferState(outcome=messaging.Accepted(), txn_id=b"t")
    script << draft.Disposition(
        role=True,
        extents=(
            draft.Extent(first=0, settled=True, state=rejected),
            draft.Extent(first=1, settled=True, state=made),
        ),
    )
    assert first.state == final.Rejected()
    assert second.state == Declared(txn_id=b"t")
