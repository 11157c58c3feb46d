"""The flow-states of sessions and links, as frames of the draft have them (8.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp10.engine.serial_numbers import add
from trio_amqp10.amqp10.spec.transport import Role

from .session_credit import SessionCredit
from .spec import transport as draft

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.session import Session

    from .draft_link_state import LinkNotes


def credit_of(session: Any) -> SessionCredit:
    """Return the credit of a session, which the draft has in place of windows."""
    windows = session.windows
    assert isinstance(windows, SessionCredit)
    return windows


def lowest_outgoing(session: Session) -> int:
    """Return the lowest unsettled outgoing transfer; if none, the next transfer."""
    return next(iter(session.settlement.outgoing), session.next_delivery_id)


def drop_all(session: Session) -> None:
    """Drop all partly received messages of a session that ends."""
    for notes in credit_of(session).by_remote_handle.values():
        notes.drop_incoming()


def flow_state(session: Session, notes: LinkNotes) -> draft.FlowState:
    """Return the flow-state of a link that this peer has attached."""
    link = next(each for each in session.links if each.handle == notes.handle)
    available = link._available()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    return link_state(session, notes, link.delivery_count, link.credit, available, link.drain)


def link_state(
    session: Session,
    notes: LinkNotes,
    count: int | None,
    link_credit: int | None,
    available: int | None,
    drain: bool,
) -> draft.FlowState:
    """Return a flow-state with numbers of the engine."""
    credit = credit_of(session)
    if notes.outgoing is not None and count is not None and link_credit is not None:
        # The engine counts a delivery when it begins. In the draft it counts when it is complete (D 1270).
        count, link_credit = add(count, -1), link_credit + 1
    if notes.units is not None:
        count, link_credit = notes.units.count, notes.units.free
    if notes.role is Role.RECEIVER:
        lowest, session_credit = credit.announce()
    else:
        lowest = lowest_outgoing(session)
        session_credit = credit.remaining(lowest)
    return draft.FlowState(
        unsettled_lwm=lowest,
        session_credit=session_credit,
        transfer_count=count,
        link_credit=None if notes.unlimited else link_credit,
        available=available,
        drain=drain or None,
    )
