"""Dispatch the frames of a session, and contain the errors (1.4, 2.5, 2.8.15).

A wrong field is the fault of what the frame was about. Octets that are no value at all (``amqp:decode-error``)
leave nothing to trust, and end the connection (2.8.14). The usual transfers and dispositions are read where they lie; every other performative comes decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10 import protocol_rules as rules
from trio_amqp10.errors import Condition, LocalProtocolError
from trio_amqp10.spec.transport import Attach, Detach, Disposition, End, Flow, Transfer
from trio_amqp10.wire.decode import decode
from trio_amqp10.wire.values import Described, UInt

from .attach_handler import on_attach
from .fast_codec import read_disposition
from .incoming_transfers import cannot_answer, on_transfer, skip
from .receiver import ReceiverLink
from .serial_numbers import add
from .session_windows import INITIAL_ID
from .states import LinkState, SessionState

if TYPE_CHECKING:
    from trio_amqp10.errors import RemoteProtocolError, Scope

    from .link import Link
    from .session import Session

__all__ = ["dispatch", "fast_disposition", "scope_of", "undecodable"]

_OPEN, _BEGIN, _TRANSFER, _DETACH, _CLOSE = 0x10, 0x11, 0x14, 0x16, 0x18
_NAMES = {
    "amqp:open:list": _OPEN,
    "amqp:begin:list": _BEGIN,
    "amqp:transfer:list": _TRANSFER,
    "amqp:detach:list": _DETACH,
    "amqp:close:list": _CLOSE,
}


def fast_disposition(session: Session, buf: bytes, pos: int, end: int) -> bool:
    """A disposition of a common shape; False leaves it to the general path."""
    fields = read_disposition(buf, pos, end)
    if fields is None:
        return False
    session.settlement.on_range(*fields)
    return True


def _room_for_transfer(session: Session) -> bool:
    left = session.windows.received()
    if left <= session.windows.low:
        session.refill_if_due()
    return left >= 0 or (not session.context.strict.incoming_window and session.windows.overrun())


def dispatch(session: Session, performative: Any, payload: bytes) -> None:
    """Any frame of this session but begin."""
    if (
        session.state is not SessionState.MAPPED
        and session.state is not SessionState.BEGIN_RCVD
        and not isinstance(performative, End)
    ):
        return  # discarding: the peer has not read our end yet (2.5.5)
    try:
        _dispatch(session, performative, payload)
    except LocalProtocolError as failure:
        cannot_answer(session, failure)


def scope_of(
    fault: RemoteProtocolError, session: Session | None, body: bytes
) -> tuple[Scope, Link | None, list[Any] | None]:
    """What ``fault`` in the frame ``body`` ends, which link if it is one, and a transfer's raw fields."""
    if session is None or fault.condition != Condition.INVALID_FIELD.value:
        return "connection", None, None
    value, _ = decode(body, 0)
    code = _NAMES.get(value.descriptor, value.descriptor)
    if code in (_OPEN, _BEGIN, _CLOSE):
        return "connection", None, None
    if code in (_TRANSFER, _DETACH) and value.value:
        link = session.link_at(value.value[0])
        if link is not None:
            return "link", link, value.value if code == _TRANSFER else None
    return "session", None, None


def undecodable(
    session: Session, fault: RemoteProtocolError, link: Link | None, transfer: list[Any] | None
) -> None:
    """A performative had a wrong field; ``link`` is what it was about, where it was not the session.

    ``transfer`` holds the fields of a transfer: it counts all the same.
    """
    if session.state is not SessionState.MAPPED and session.state is not SessionState.BEGIN_RCVD:
        return
    if link is not None and transfer is not None and not _count(session, link, transfer):
        link = None
    if link is not None and link.state is LinkState.DETACH_SENT:
        return
    try:
        (link or session).fail(fault)
    except LocalProtocolError as failure:
        cannot_answer(session, failure)


def _count(session: Session, link: Link, transfer: list[Any]) -> bool:
    """Go on behind a transfer that makes no sense; False where its numbers make none either."""
    if not _room_for_transfer(session):
        return False
    delivery_id = transfer[1] if len(transfer) > 1 else None
    if link.state is LinkState.DETACH_SENT or not isinstance(link, ReceiverLink):
        skip(session, delivery_id)
    elif link.incoming is None:
        due = session.next_incoming_delivery_id
        if not isinstance(delivery_id, UInt) or (due is not None and due != delivery_id):
            return False
        session.next_incoming_delivery_id = add(delivery_id, 1)
    return True


def _dispatch(session: Session, performative: Any, payload: bytes) -> None:
    match performative:
        case Transfer():
            _on_transfer(session, performative, payload)
        case Disposition():
            session.settlement.on_disposition(performative)
        case Flow():
            _on_flow(session, performative)
        case Attach():
            on_attach(session, performative)
        case Detach():
            link = _attached(session, performative.handle, "detach")
            if link is not None:
                if link.state is LinkState.ATTACH_RCVD:
                    session.context.charge_churn("links attached and detached")
                link.on_detach(performative)
                session.emit_detached(link, performative.closed, performative.error)
        case _:
            if session.state is SessionState.BEGIN_RCVD:
                session.context.charge_churn("sessions begun and ended")
            session.on_end(performative)
            session.emit_ended(performative.error)


def _attached(session: Session, handle: int, what: str) -> Link | None:
    link = session.by_remote_handle.get(handle)
    if link is None:
        errant = handle in session.errant
        rule = rules.ERRANT_LINK if errant else rules.UNATTACHED_HANDLE
        how = "no link is any more" if errant else "nothing is attached"
        session.fail(rule.broken(f"{what} for handle {handle}, on which {how}"))
    return link


def _on_transfer(session: Session, transfer: Transfer, payload: bytes) -> None:
    if not _room_for_transfer(session):
        session.fail(
            rules.INCOMING_WINDOW.broken(
                f"a transfer beyond the incoming window of {session.windows.incoming_max}"
            )
        )
        return
    link = _attached(session, transfer.handle, "transfer")
    if isinstance(link, ReceiverLink):
        if isinstance(transfer.state, Described) and link.state is not LinkState.DETACH_SENT:
            text = f"delivery state {transfer.state.descriptor!r} is not known here"
            link.fail(rules.DELIVERY_STATE.broken(text))  # and count it below, as one that is dropped
        on_transfer(link, transfer, payload)
    elif link is not None:
        skip(session, transfer.delivery_id)
        link.fail(rules.LINK_DIRECTION.broken("a transfer to the link's own sender"))


def _on_flow(session: Session, flow: Flow) -> None:
    windows = session.windows
    if not windows.flowed(
        flow.next_incoming_id,
        flow.incoming_window,
        flow.next_outgoing_id,
        flow.outgoing_window,
        INITIAL_ID,
    ):
        session.fail(
            rules.NEXT_INCOMING_ID.broken(
                f"flow expects transfer {flow.next_incoming_id}, we are at {windows.next_outgoing_id}"
            )
        )
        return
    session.settlement.tally()
    session.feed_partials()
    session.wake_hungry()
    link: Link | None = None
    if flow.handle is not None:
        link = _attached(session, flow.handle, "flow")
        if link is None:
            return
        if link.state is not LinkState.DETACH_SENT:
            link.on_flow(flow)
        elif link.check_errant():
            return
    if flow.echo:
        session.owe_flow(link)
