"""The outgoing transfers of the draft (7.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10.amqp10.engine.serial_numbers import add, distance

from .flow_states import credit_of, lowest_outgoing
from .outgoing_message import OutgoingMessage
from .spec import transport as draft

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.link import Link
    from trio_amqp10.amqp10.engine.session import Session
    from trio_amqp10.amqp10.spec.transport import Transfer

    from .draft_link_state import LinkNotes


def begun(session: Session, notes: LinkNotes, transfer: Transfer) -> OutgoingMessage:
    """Return the message of a first transfer.

    The engine may have counted the delivery before it writes the transfer, or count it afterwards.
    """
    link = link_of(session, notes)
    assert transfer.delivery_id is not None
    assert transfer.delivery_tag is not None
    counted = int(session.next_delivery_id != transfer.delivery_id)
    message = OutgoingMessage(
        transfer.delivery_id,
        transfer.delivery_tag,
        transfer.message_format or 0,
        add(link.delivery_count or 0, -counted),
        link.credit + counted - 1,
    )
    message.resume = transfer.resume
    message.batchable = transfer.batchable
    return message


def transfer_of(
    session: Session,
    notes: LinkNotes,
    message: OutgoingMessage,
    fragments: tuple[draft.Fragment, ...],
    *,
    more: bool = False,
    aborted: bool = False,
) -> draft.Transfer:
    """Return a transfer of the draft; its flow-state counts it already (D 1028)."""
    credit = credit_of(session)
    lowest = lowest_outgoing(session)
    if distance(lowest, message.transfer_id) > 0:
        lowest = message.transfer_id
    done = int(not more)
    count, link_credit = add(message.count, done), max(0, message.credit + 1 - done)
    if notes.units is not None:
        count, link_credit = notes.units.count, notes.units.free
    state = draft.FlowState(
        unsettled_lwm=lowest,
        session_credit=credit.remaining(lowest),
        transfer_count=count,
        link_credit=None if notes.unlimited else link_credit,
    )
    return draft.Transfer(
        handle=bound(notes),
        flow_state=state,
        delivery_tag=message.tag,
        transfer_id=message.transfer_id,
        settled=message.settled or None,
        state=message.state,
        resume=message.resume or None,
        more=more or None,
        aborted=aborted or None,
        batchable=message.batchable or None,
        fragments=fragments,
    )


def link_of(session: Session, notes: LinkNotes) -> Link:
    """Return the link of the engine."""
    return next(each for each in session.links if each.handle == notes.handle)


def bound(notes: LinkNotes) -> int:
    """Return the handle of an attached link."""
    assert notes.handle is not None
    return notes.handle
