"""Translation of the peer's frames to performatives of the final standard.

A frame of the draft may become several performatives: its flow-state becomes a flow. The engine gets each message
whole. If a message takes several transfers, the engine gets its first transfer at once, so that it counts the delivery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.engine.receiver import ReceiverLink
from trio_amqp10.amqp10.engine.sender import SenderLink
from trio_amqp10.amqp10.engine.serial_numbers import add, distance
from trio_amqp10.amqp10.engine.states import LinkState, SessionState
from trio_amqp10.amqp10.spec import transport as final
from trio_amqp10.amqp10.spec.transactions import Coordinator
from trio_amqp10.amqp10.wire.decode_budget import Budget
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.core import peer_rules as rules
from trio_amqp10.core.errors import Condition, LocalProtocolError, RemoteProtocolError

from .draft_link_state import LinkNotes
from .extents import ranges_of
from .flow_states import credit_of, drop_all
from .frame_body_translation import (
    final_attach,
    final_begin,
    final_close,
    final_detach,
    final_end,
    final_open,
    heartbeat_interval,
)
from .frame_writer import TXN_ID
from .incoming_message import IncomingMessage
from .outcomes import draft_error, final_state
from .protocol_rules import check_options, invalid_field, required_attribute
from .registries import read
from .sections import Draft, final_message
from .spec import transport as draft
from .spec.messaging import Rejected, TransferState
from .transaction_translation import final_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.engine.link import Link
    from trio_amqp10.amqp10.engine.session import Session

    from .connection import DraftConnection
    from .credit_units import TransferUnits
    from .sections import DraftSection

_FAR: Final = 0x7FFFFFFF
_READING: Final = (SessionState.MAPPED, SessionState.BEGIN_RCVD)


class FrameTranslator:
    """The translator that gives the engine the frames of the peer.

    Args:
        connection: the connection of the peer.
        feed: takes a channel and the octets of a performative with its payload.
        strict: whether encodings that only the final standard has are refused.
    """

    __slots__ = ("_connection", "_feed", "_strict")

    def __init__(self, connection: DraftConnection, feed: Any, *, strict: bool) -> None:
        self._connection = connection
        self._feed = feed
        self._strict = strict

    def on_body(self, channel: int, octets: bytes) -> None:
        """Translate the body of one AMQP frame.

        Raises:
            RemoteProtocolError: an error that ends the connection.
        """
        connection = self._connection
        session = connection.channels.theirs.get(channel)
        try:
            body = read(octets, strict=self._strict, budget=Budget(connection.limits.performative_nodes))
            self._on(channel, session, body)
        except RemoteProtocolError as fault:
            if fault.scope == "connection" and fault.condition != Condition.INVALID_FIELD:
                raise
            session = connection.channels.theirs.get(channel)
            if session is None or fault.scope == "connection":
                raise
            if session.state in _READING:
                session.fail(fault)
        except LocalProtocolError as failure:
            raise invalid_field(str(failure), "484", "connection") from None

    def _give(self, channel: int, performative: Any, payload: bytes = b"") -> None:
        self._feed(channel, encode(performative) + payload)

    def _on(self, channel: int, session: Session | None, body: Any) -> None:
        match body:
            case draft.Open():
                self._on_open(channel, body)
                return
            case draft.Close():
                self._give(channel, final_close(body))
                return
            case draft.Begin():
                self._give(channel, final_begin(body, _FAR))
                check_options(body, "session")
                return
            case _:
                pass
        if session is None:
            self._connection.check_opened(body)
            session = self._connection.channels.at(channel)
        if isinstance(body, draft.End):
            drop_all(session)
            self._give(channel, final_end(body))
        elif session.state in _READING:
            check_options(body, "session", (TXN_ID,) if isinstance(body, draft.Flow) else ())
            _ON[type(body)](self, channel, session, body)

    def _on_open(self, channel: int, body: draft.Open) -> None:
        connection = self._connection
        ours = heartbeat_interval(connection.local.idle_time_out)
        performative = final_open(body, ours)
        if performative.max_frame_size < draft.MIN_MAX_FRAME_SIZE:
            raise rules.MIN_MAX_FRAME_SIZE.broken(
                f"max-frame-size {performative.max_frame_size}: expected at least {draft.MIN_MAX_FRAME_SIZE}"
            )
        connection.agree(performative.idle_time_out)
        self._give(channel, performative)

    # -- links ------------------------------------------------------------------------------

    def on_attach(self, channel: int, session: Session, body: draft.Attach) -> None:
        """Translate an attach, and the credit in its flow-state."""
        credit = credit_of(session)
        performative = final_attach(body)
        role = not body.role
        notes = credit.links.get((body.name, role))
        if notes is None or notes.remote_handle is not None:
            notes = LinkNotes(body.name, role)
            credit.links[body.name, role] = notes
        if body.handle not in session.by_remote_handle:
            credit.by_remote_handle[body.handle] = notes
            notes.attached(body)
        self._give(channel, performative)
        link = session.by_remote_handle.get(body.handle)
        if isinstance(link, SenderLink) and session.state in _READING:
            self._on_flow_state(channel, session, link, body.handle, body.flow_state)

    def on_flow(self, channel: int, session: Session, body: draft.Flow) -> None:
        """Translate a flow."""
        link = session.by_remote_handle.get(body.handle)
        txn_id = (body.options or {}).get(TXN_ID)
        properties = None if txn_id is None else {TXN_ID: txn_id}
        self._on_flow_state(channel, session, link, body.handle, body.flow_state, bool(body.echo), properties)

    def _on_flow_state(
        self,
        channel: int,
        session: Session,
        link: Link | None,
        handle: int,
        state: draft.FlowState,
        echo: bool = False,
        properties: dict[Any, Any] | None = None,
    ) -> None:
        """Give the engine a flow with this flow-state.

        Of the numbers for the session, only those of a receiving peer limit this sender (D 1430).
        """
        credit = credit_of(session)
        count, link_credit = state.transfer_count, state.link_credit
        if isinstance(link, SenderLink):
            credit.granted(state.unsettled_lwm, state.session_credit)
            notes = credit.by_remote_handle[handle]
            notes.unlimited = link_credit is None
            if notes.units is not None:
                self._continue(session, notes, notes.units, count, link_credit)
                count, link_credit = link.delivery_count, notes.units.messages
            elif link_credit is None:
                count, link_credit = link.delivery_count, _FAR
        flow = final.Flow(
            next_incoming_id=credit.next_outgoing_id,
            incoming_window=credit.room(session.next_delivery_id),
            next_outgoing_id=credit.next_incoming_id or 0,
            outgoing_window=_FAR,
            handle=handle,
            delivery_count=count,
            link_credit=link_credit,
            available=state.available,
            drain=bool(state.drain),
            echo=echo,
            properties=properties,
        )
        self._give(channel, flow)

    def _continue(
        self,
        session: Session,
        notes: LinkNotes,
        units: TransferUnits,
        count: int | None,
        link_credit: int | None,
    ) -> None:
        """Set the limit in units, and continue a message that waits for it."""
        if units.count == units.limit == 0:
            units.count = units.limit = notes.first_count
        base = notes.first_count if count is None else count
        units.limit = add(base, _FAR if link_credit is None else min(link_credit, _FAR))
        if units.rest is not None and units.free:
            self._connection.frame_writer.write_sections(session, notes, *units.rest)

    def on_detach(self, channel: int, session: Session, body: draft.Detach) -> None:
        """Translate a detach."""
        credit = credit_of(session)
        notes = credit.by_remote_handle.pop(body.handle, None)
        if notes is not None:
            notes.remote_handle = None
            notes.drop_incoming()
            if body.local is None:
                notes.remote = None
            if notes.handle is None and credit.links.get((notes.name, notes.role)) is notes:
                del credit.links[notes.name, notes.role]
        self._give(channel, final_detach(body))

    def on_disposition(self, channel: int, session: Session, body: draft.Disposition) -> None:
        """Translate a disposition to one for each range of each extent (D 1326)."""
        for extent in body.extents:
            last = extent.first if extent.last is None else extent.last
            if distance(last, extent.first) < 0:
                raise invalid_field(
                    f"an extent from {extent.first} to {last}: expected first <= last", "1470"
                )
            for first, until, declares in ranges_of(session, body.role, extent, last):
                disposition = final.Disposition(
                    role=body.role,
                    first=first,
                    last=until,
                    settled=bool(extent.settled),
                    state=final_state(extent.state, declares=declares),
                    batchable=bool(body.batchable),
                )
                self._give(channel, disposition)

    # -- transfers --------------------------------------------------------------------------

    def on_transfer(self, channel: int, session: Session, body: draft.Transfer) -> None:
        """Translate a transfer with a message, or with a part of a message."""
        link = session.by_remote_handle.get(body.handle)
        credit = credit_of(session)
        if not isinstance(link, ReceiverLink) or link.state is LinkState.DETACH_SENT:
            self._give(channel, _head(body))  # The engine handles the error, or drops the transfer.
            return
        notes = credit.by_remote_handle[body.handle]
        message = notes.incoming
        if message is None:
            credit.check(body.transfer_id)
            message = IncomingMessage(link, body.transfer_id, body.delivery_tag)
        elif (body.transfer_id, body.delivery_tag) != (message.transfer_id, message.tag):
            # Another message begins before this one is complete: the engine reports the error.
            self._give(channel, _head(body))
            return
        if body.aborted:
            notes.drop_incoming()
            self._give(channel, _head(body))
            return
        message.add(tuple(body.fragments))
        if link.max_message_size is not None and message.size > link.max_message_size:
            self._refuse(
                channel,
                notes,
                link,
                body,
                rules.MAX_MESSAGE_SIZE.broken(
                    f"{message.size} octets of a message so far: expected at most {link.max_message_size}"
                ),
            )
        elif body.more:
            self._note_incomplete(channel, notes, message, body)
        else:
            self._complete(channel, session, notes, link, message, body)

    def _note_incomplete(
        self, channel: int, notes: LinkNotes, message: IncomingMessage, body: draft.Transfer
    ) -> None:
        """Keep a part of a message, and limit the memory of such parts.

        The engine gets the first transfer, so that it counts the delivery.
        """
        if not message.begun:
            notes.incoming = message
            message.begin()
            self._give(channel, _head(body))
        self._connection.bound_partials()

    def _complete(
        self,
        channel: int,
        session: Session,
        notes: LinkNotes,
        link: ReceiverLink,
        message: IncomingMessage,
        body: draft.Transfer,
    ) -> None:
        try:
            made, state = self._message(link, message.sections(), body.state)
        except RemoteProtocolError as fault:
            self._refuse(channel, notes, link, body, fault)
            return
        key = required_attribute(made.message_attrs, made.delivery_attrs)
        begun = message.begun
        notes.drop_incoming()
        if key is not None:
            self._reject(channel, session, body, key)
        else:
            if begun and link.incoming is not None:
                link.incoming.delivery.message_format = made.message_format
            performative = _head(body, made.message_format, state)
            if begun:
                performative = final.Transfer(
                    handle=body.handle, settled=performative.settled, state=performative.state
                )
            self._give(channel, performative, made.payload)
        if session.state in _READING and link.state is LinkState.ATTACHED:
            self._on_count(channel, session, link, body)

    def _message(self, link: ReceiverLink, sections: list[DraftSection], state: Any) -> tuple[Draft, Any]:
        """Return the message, and the state of its delivery."""
        terminus = link.target if link.target is not None else getattr(link.remote, "target", None)
        if isinstance(terminus, Coordinator):
            txn_id = state.txn_id if isinstance(state, TransferState) else None
            command = final_command(sections, txn_id, strict=self._strict)
            if command is not None:
                return Draft(command, 0, None, None), None
        return final_message(sections, strict=self._strict), final_state(state)

    def _on_count(self, channel: int, session: Session, link: ReceiverLink, body: draft.Transfer) -> None:
        """Pass on the sender's transfer-count if it ran ahead, and its available messages.

        The count runs ahead if the sender gave up credit.
        """
        state = body.flow_state
        ahead = (
            state.transfer_count is not None and distance(state.transfer_count, link.delivery_count or 0) > 0
        )
        if ahead or state.available is not None:
            self._on_flow_state(channel, session, link, body.handle, state)

    def _refuse(
        self,
        channel: int,
        notes: LinkNotes,
        link: ReceiverLink,
        body: draft.Transfer,
        fault: RemoteProtocolError,
    ) -> None:
        """End the link of an unreadable message, which still counts as a delivery."""
        notes.drop_incoming()
        self._give(channel, _head(body, aborted=True))
        link.fail(fault)

    def _reject(self, channel: int, session: Session, body: draft.Transfer, key: str) -> None:
        """Reject a message with an attribute that must be understood, and is not (D 1837)."""
        self._give(channel, _head(body, aborted=True))
        if not body.settled:
            error = final.Error(
                condition=Condition.NOT_IMPLEMENTED.value,
                description=f"attribute {key!r} is not known, and must be understood or the message rejected (D 1837)",
            )
            extent = draft.Extent(
                first=body.transfer_id,
                settled=True,
                state=TransferState(outcome=Rejected(error=draft_error(error))),
            )
            self._connection.frame_writer.write_draft(
                session.channel, draft.Disposition(role=final.Role.RECEIVER, extents=(extent,))
            )


def _head(
    body: draft.Transfer, message_format: int = 0, state: Any = None, *, aborted: bool = False
) -> final.Transfer:
    return final.Transfer(
        handle=body.handle,
        delivery_id=body.transfer_id,
        delivery_tag=body.delivery_tag,
        message_format=message_format,
        settled=bool(body.settled),
        more=bool(body.more) and not aborted,
        state=state,
        resume=bool(body.resume),
        aborted=aborted or bool(body.aborted),
        batchable=bool(body.batchable),
    )


_ON: Final[dict[type[Any], Callable[..., None]]] = {
    draft.Attach: FrameTranslator.on_attach,
    draft.Flow: FrameTranslator.on_flow,
    draft.Transfer: FrameTranslator.on_transfer,
    draft.Disposition: FrameTranslator.on_disposition,
    draft.Detach: FrameTranslator.on_detach,
}
