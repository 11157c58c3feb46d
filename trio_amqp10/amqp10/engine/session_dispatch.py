"""Dispatch the frames of a session, and contain errors (1.4, 2.5, 2.8.15).

A wrong field is an error of the link, session or connection that the frame is about. After octets that are no
value (``amqp:decode-error``) nothing can be trusted, so they end the connection (2.8.14). Usual transfers and
dispositions are read directly in the buffer; every other performative arrives decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp10.spec.transport import Attach, Detach, Disposition, End, Flow, Transfer
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.values import Described, UInt
from trio_amqp10.core import peer_rules as rules
from trio_amqp10.core.errors import Condition, LocalProtocolError

from .attach_handler import on_attach
from .codec_shortcut import read_disposition
from .incoming_transfers import cannot_answer, on_transfer, skip
from .receiver import ReceiverLink
from .serial_numbers import add
from .session_windows import INITIAL_ID
from .states import LinkState, SessionState

if TYPE_CHECKING:
    from trio_amqp10.core.errors import RemoteProtocolError, Scope

    from .link import Link
    from .session import Session

_OPEN, _BEGIN, _TRANSFER, _DETACH, _CLOSE = 0x10, 0x11, 0x14, 0x16, 0x18
_NAMES = {
    "amqp:open:list": _OPEN,
    "amqp:begin:list": _BEGIN,
    "amqp:transfer:list": _TRANSFER,
    "amqp:detach:list": _DETACH,
    "amqp:close:list": _CLOSE,
}


def fast_disposition(session: Session, buf: bytes, pos: int, end: int) -> bool:
    """Process a disposition of a common shape, or return False for the general path."""
    fields = read_disposition(buf, pos, end)
    if fields is None:
        return False
    session.settlement.on_range(*fields)
    return True


def _room_for_transfer(session: Session) -> bool:
    """Count a transfer in the incoming window; return False if it exceeds it (2.5.6).

    If the rule is not enforced, one more window of transfers is accepted.
    """
    left = session.windows.received()
    if left <= session.windows.low:
        session.refill_if_due()
    if left >= 0:
        return True
    if session.context.strict.incoming_window or not session.windows.overrun():
        return False
    session.context.tolerances.note(rules.INCOMING_WINDOW)
    return True


def dispatch(session: Session, performative: Any, payload: bytes) -> None:
    """Process any frame of this session except begin."""
    if (
        session.state is not SessionState.MAPPED
        and session.state is not SessionState.BEGIN_RCVD
        and not isinstance(performative, End)
    ):
        return  # the peer sent this before it read our end: discard it (2.5.5)
    try:
        _dispatch(session, performative, payload)
    except LocalProtocolError as failure:
        cannot_answer(session, failure)


def scope_of(
    fault: RemoteProtocolError, session: Session | None, body: bytes
) -> tuple[Scope, Link | None, list[Any] | None]:
    """Return what ``fault`` in the frame ``body`` ends.

    The result is the scope, the link if the scope is a link, and the raw fields if the frame is a transfer.
    """
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
    """End the link, or otherwise the session, because of a malformed performative.

    ``transfer`` holds the fields of a transfer, which is counted anyway.
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
    """Count a malformed transfer; return False if its numbers are wrong as well."""
    if not _room_for_transfer(session):
        return False
    delivery_id = transfer[1] if len(transfer) > 1 else None
    if link.state is LinkState.DETACH_SENT or not isinstance(link, ReceiverLink):
        # Its delivery is dropped anyway, but its id counts (2.6.6).
        skip(session, delivery_id)
    elif link.incoming is None:
        # It begins a delivery, so its id must be the next one.
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
                    # The peer detached before we answered its attach.
                    session.context.charge_churn("links attached and detached")
                link.on_detach(performative)
                session.emit_detached(link, performative.closed, performative.error)
        case _:
            if session.state is SessionState.BEGIN_RCVD:
                # The peer ended the session before we answered its begin.
                session.context.charge_churn("sessions begun and ended")
            session.on_end(performative)
            session.emit_ended(performative.error)


def _attached(session: Session, handle: int, what: str) -> Link | None:
    """Return the link with this handle, or end the session and return None."""
    link = session.by_remote_handle.get(handle)
    if link is None:
        errant = handle in (session.errant or ())
        rule = rules.ERRANT_LINK if errant else rules.UNATTACHED_HANDLE
        how = "whose link was detached" if errant else "which has no link"
        session.fail(rule.broken(f"{what} for handle {handle}, {how}"))
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
        # Also if the state is wrong, the transfer is counted by ``on_transfer``, as one that is dropped.
        if isinstance(transfer.state, Described) and link.state is not LinkState.DETACH_SENT:
            text = f"delivery state {transfer.state.descriptor!r} is not known here"
            link.fail(rules.DELIVERY_STATE.broken(text))
        on_transfer(link, transfer, payload)
    elif link is not None:
        # A transfer on a link whose sender is this end.
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
                f"flow with next-incoming-id {flow.next_incoming_id}, but the next transfer is {windows.next_outgoing_id}"
            )
        )
        return
    # The session's window comes first: it may let other links send (2.5.6).
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
            # The peer sent the flow although it knows that the link ended with an error (2.6.5).
            return
    if flow.echo:
        session.owe_flow(link)
