"""Frames of the draft become those of the engine: links that come and go, transfers, transactions."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from trio_amqp10.amqp10.draft_2010.registries import TYPES, read
from trio_amqp10.amqp10.draft_2010.spec import messaging, transactions
from trio_amqp10.amqp10.draft_2010.spec import transport as draft
from trio_amqp10.amqp10.draft_2010.spec.messaging import SectionCode, Source, TransferState
from trio_amqp10.amqp10.engine.events import LinkAttached
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.message import Message, Value
from trio_amqp10.amqp10.spec import messaging as final
from trio_amqp10.amqp10.spec.transactions import Coordinator, Declare, Declared, Discharge
from trio_amqp10.amqp10.wire.values import Symbol

from .links import BOTH, data, receiving, sending, state, transfer
from .pairs import Script, events_of, linked, opened_pair, talk

# Linkages -------------------------------------------------------------------------------------------


def test_detach_of_no_link_ends_the_session() -> None:
    script = Script()
    script << draft.Detach(handle=9)
    (end,) = script.said()
    assert end.error.condition == "amqp:session:unattached-handle"


def test_link_may_be_stolen() -> None:
    script, link = receiving()
    script << draft.Attach(name="link", handle=1, role=False, local=BOTH, flow_state=state(transfer_count=0))
    (detach,) = script.said()
    assert detach.error.condition == "amqp:link:stolen"
    assert link.state is LinkState.DETACH_SENT
    events = events_of(script.connection)
    again = next(event.link for event in events if isinstance(event, LinkAttached))
    again.attach(source=final.Source(address="q"), target=final.Target(address="q"))
    script << draft.Detach(handle=0, local=BOTH)
    assert link.state is LinkState.GONE
    again.set_credit(3)
    *_, flow = script.said()
    assert flow.handle == again.handle
    script << transfer(0, data(b"x"), handle=1)
    assert len(again.queue) == 1


def test_attach_on_a_handle_in_use_ends_the_session() -> None:
    script, _ = receiving()
    script << draft.Attach(name="other", handle=0, role=False, local=BOTH, flow_state=state(transfer_count=0))
    assert script.said()[-1].error.condition == "amqp:session:handle-in-use"


# Credit of the link ---------------------------------------------------------------------------------


def test_delivery_without_credit_detaches() -> None:
    script, link = receiving(credit=1)
    script << transfer(0, data(b"x")) << transfer(1, data(b"y"))
    *_, detach = script.said()
    assert detach.error.condition == "amqp:link:transfer-limit-exceeded"
    assert link.state is LinkState.DETACH_SENT
    script << transfer(2, data(b"z"))
    assert script.said() == []


def test_transaction_of_acquired_messages_is_an_option_of_the_flow() -> None:
    script, link = sending()
    flow = draft.Flow(
        handle=0, flow_state=state(transfer_count=0, link_credit=1), options={Symbol("txn-id"): b"t"}
    )
    script << flow
    assert link.txn_id == b"t"
    other, receiver = receiving()
    receiver.flow_properties = {Symbol("txn-id"): b"u"}
    receiver.set_credit(4)
    (said,) = other.said()
    assert said.options == {"txn-id": b"u"}


# Fragments ------------------------------------------------------------------------------------------


def test_message_that_has_to_be_understood_is_rejected() -> None:
    script, link = receiving()
    header = messaging.Header(message_attrs={Symbol("a"): 2, Symbol("x-req-magic"): 1})
    from trio_amqp10.amqp10.draft_2010.registries import write

    for number, settled in ((0, False), (1, True)):
        octets = write(header)
        script << transfer(
            number,
            draft.Fragment(first=True, last=True, format_code=0, fragment_offset=0, payload=octets),
            data(b"x", offset=len(octets)),
            settled=settled,
        )
    (disposition,) = script.said()
    (extent,) = disposition.extents
    assert extent.first == 0
    assert extent.settled
    assert "x-req-magic" in extent.state.outcome.error.description
    assert not link.queue


def test_transfer_to_a_sender_or_to_no_link_is_the_engines_affair() -> None:
    script, _ = sending()
    script << transfer(0, data(b"x"))
    assert isinstance(script.said()[-1], draft.Detach)
    script << transfer(1, data(b"x"), handle=77)
    assert isinstance(script.said()[-1], draft.End)


# Transactions ---------------------------------------------------------------------------------------


def test_transaction_is_declared_and_discharged() -> None:
    one, two = opened_pair()
    sender, receiver = linked(one, two, target=Coordinator(), credit=10)
    declared = sender.send(Message(Value(Declare())).to_payload())
    talk(one, two)
    delivery = receiver.queue.popleft()
    assert delivery.payload == Message(Value(Declare())).to_payload()
    two_session = receiver.session
    two_session.settlement.dispose(delivery, Declared(txn_id=b"t"))
    talk(one, two)
    assert declared.state == Declared(txn_id=b"t")
    assert one.sessions[0].windows.declares == set()
    discharged = sender.send(Message(Value(Discharge(txn_id=b"t", fail=True))).to_payload())
    talk(one, two)
    delivery = receiver.queue.popleft()
    assert delivery.payload == Message(Value(Discharge(txn_id=b"t", fail=True))).to_payload()
    assert delivery.word is None
    delivery.accept()
    talk(one, two)
    assert discharged.state == final.Accepted()
    sender.send(Message("no command").to_payload())
    talk(one, two)
    assert Message.from_payload(receiver.queue.popleft().payload).body == "no command"


def test_discharge_names_its_transaction_in_the_state_of_the_transfer() -> None:
    script = Script()
    there = draft.Linkage(source=Source(), target=transactions.Coordinator())
    link = script.session.sender("tx")
    link.attach(source=final.Source(), target=Coordinator())
    script << draft.Attach(name="tx", handle=0, role=True, local=there, flow_state=state(link_credit=5))
    script.said()
    link.send(Message(Value(Discharge(txn_id=b"t"))).to_payload())
    (body,) = script.said()
    assert body.state == TransferState(txn_id=b"t")
    command = next(each for each in body.fragments if each.format_code == SectionCode.AMQP_DATA)
    assert read(command.payload, TYPES) == transactions.Discharge()


def test_discharge_of_no_transaction_detaches() -> None:
    script = Script()
    there = draft.Linkage(source=Source(), target=transactions.Coordinator())
    link = script.attach(False, local=there)
    link.set_credit(1)
    script.said()
    from trio_amqp10.amqp10.draft_2010.registries import write

    script << transfer(0, data(write(transactions.Discharge()), code=4))
    (detach,) = script.said()
    assert detach.error.condition == "amqp:invalid-field"
