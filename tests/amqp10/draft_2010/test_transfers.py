"""Transfers of the draft begin, stream and abort a message, and carry its transaction (7.5)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.spec import messaging as final
from trio_amqp10.amqp10.spec.transactions import TransactionalState

from .links import PAYLOAD, sending
from .pairs import attached_pair, talk


def test_abort_of_ours_is_said() -> None:
    script, link = sending()
    partial = link.begin(b"abc")
    partial.abort()
    opening, abort = script.said()
    assert opening.more
    assert abort.aborted
    assert abort.transfer_id == opening.transfer_id


def test_streamed_message_leaves_when_it_is_finished() -> None:
    one, two, sender, receiver = attached_pair()
    payload = Message(b"y" * 30_000).to_payload()
    partial = sender.begin(payload[:10])
    talk(one, two)
    partial.append(payload[10:])
    talk(one, two)
    assert receiver.incoming is not None
    partial.finish()
    talk(one, two)
    assert receiver.queue.popleft().payload == payload


def test_work_in_a_transaction_carries_it_both_ways() -> None:
    one, two, sender, receiver = attached_pair()
    working = TransactionalState(txn_id=b"t")
    sent = sender.send(PAYLOAD, state=working)
    talk(one, two)
    delivery = receiver.queue.popleft()
    assert delivery.word == working
    outcome = TransactionalState(txn_id=b"t", outcome=final.Accepted())
    receiver.session.settlement.dispose(delivery, outcome)
    talk(one, two)
    assert sent.state == outcome
