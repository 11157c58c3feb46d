"""Translation of the engine's performatives to frames of the draft.

Each performative of the final standard becomes a frame body of the draft, before it is counted or held. A message is
sent whole: if the engine writes it in parts, only a first transfer without content is sent before its last part, so
that the transfers of a session keep their order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.engine.error_encoding import fit
from trio_amqp10.amqp10.engine.serial_numbers import add
from trio_amqp10.amqp10.engine.write_buffer import WriteBuffer
from trio_amqp10.amqp10.spec import PERFORMATIVES
from trio_amqp10.amqp10.spec import transport as final
from trio_amqp10.amqp10.spec.transactions import Coordinator
from trio_amqp10.amqp10.wire.decode_budget import Budget
from trio_amqp10.amqp10.wire.frames import FRAME_HEADER_SIZE, encode_frame
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.core.errors import Condition, LocalProtocolError

from .draft_link_state import LinkNotes
from .flow_states import credit_of, drop_all, flow_state, link_state, lowest_outgoing
from .frame_body_translation import draft_attach, draft_begin, draft_close, draft_linkage, draft_open
from .outcomes import bare_outcome, draft_error, draft_state
from .outgoing_message import FRAGMENT_OVERHEAD, OutgoingMessage, cut
from .registries import write
from .sections import draft_message
from .spec import transport as draft
from .spec.messaging import TransferState
from .spec.transport import MIN_MAX_FRAME_SIZE
from .transaction_translation import draft_command
from .transfers import begun, bound, link_of, transfer_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.engine.session import Session

    from .connection import DraftConnection
    from .sections import DraftSection

TXN_ID: Final = Symbol("txn-id")
"""The option of a flow that names the transaction of acquired messages (D 2107)."""

_SPARE: Final = 256
"""The most octets by which a frame body of the draft exceeds a performative.

Octets of text and maps are not counted.
"""
_NODES: Final = 1 << 20


class FrameWriter(WriteBuffer):
    """The output of a connection of the draft."""

    __slots__ = ("_connection", "_extent_octets", "_extents")

    size: int

    def __init__(self, soft: int, connection: DraftConnection) -> None:
        super().__init__(soft)
        self._connection = connection
        self._extents: dict[tuple[int, bool, bool], list[draft.Extent]] = {}
        self._extent_octets = 0
        self.frame_size = MIN_MAX_FRAME_SIZE

    def __bool__(self) -> bool:
        return bool(self._chunks or self._extents)

    def write_frame(self, head: bytes, payload: bytes | memoryview = b"") -> None:
        """See ``WriteBuffer``; translate a complete frame of the final standard."""
        channel = int.from_bytes(head[6:8], "big")
        if len(head) == FRAME_HEADER_SIZE:
            super().write_frame(head, payload)
        else:
            self._translate(channel, head[FRAME_HEADER_SIZE:], bytes(payload))

    def write_body(self, channel: int, body: bytes, payload: bytes | memoryview = b"") -> None:
        """See ``WriteBuffer``.

        Raises:
            LocalProtocolError: as a frame of the draft it is larger than the peer accepts.
        """
        self._translate(channel, body, bytes(payload))

    def take(self) -> bytes:
        """See ``WriteBuffer``; first write the dispositions that were gathered."""
        self.write_extents()
        return super().take()

    def clear(self) -> None:
        """See ``WriteBuffer``."""
        self._extents.clear()
        super().clear()

    # -- frames -----------------------------------------------------------------------------

    def write_draft(self, channel: int, body: Any) -> None:
        """Write one frame of the draft, after the dispositions that were gathered.

        Raises:
            LocalProtocolError: it is larger than the peer accepts; nothing was written.
        """
        self._write_octets(channel, write(body))

    def _write_octets(self, channel: int, octets: bytes) -> None:
        size = FRAME_HEADER_SIZE + len(octets)
        if size > self.frame_size:
            if self._peer_opened:
                raise LocalProtocolError(
                    f"{Condition.FRAME_SIZE_TOO_SMALL}: a frame takes {size} octets in the draft of 2010, "
                    f"and the peer accepts {self.frame_size}"
                )
            self.check(len(octets))
            self.hold_until_open()
        self.write_extents()
        head = encode_frame(channel, octets)
        if self._held is not None:
            self._held += (head, b"")
            self.size += size
        else:
            super().write_frame(head)

    def write_extents(self) -> None:
        """Write the gathered dispositions: one frame for all ranges of a role (D 1326)."""
        if self._extents:
            gathered, self._extents = self._extents, {}
            self._extent_octets = 0
            for (channel, role, batchable), extents in gathered.items():
                body = draft.Disposition(role=role, batchable=batchable or None, extents=tuple(extents))
                self._write_octets(channel, write(body))

    # -- performatives ----------------------------------------------------------------------

    def _translate(self, channel: int, body: bytes, payload: bytes) -> None:
        performative, pos = PERFORMATIVES.decode(body, 0, Budget(_NODES))
        payload = body[pos:] + payload
        session = self._connection.channels.ours.get(channel)
        match performative:
            case final.Open():
                super().write_frame(encode_frame(channel, write(draft_open(performative))))
            case final.Begin():
                self.write_draft(channel, draft_begin(performative))
            case final.Close() | final.End():
                if session is not None and isinstance(performative, final.End):
                    drop_all(session)
                error = fit(performative.error, self.frame_size - _SPARE)
                self.write_draft(channel, draft_close(type(performative)(error=error)))
            case _:
                assert session is not None
                _ON[performative.__class__](self, session, performative, payload)

    def on_attach(self, session: Session, attach: final.Attach, _payload: bytes) -> None:
        """Write an attach."""
        credit = credit_of(session)
        key = attach.name, attach.role
        notes = credit.links.get(key)
        if notes is None or notes.handle is not None:
            notes = LinkNotes(attach.name, attach.role)
        if attach.role is final.Role.RECEIVER:
            lowest, session_credit = credit.announce()
            state = draft.FlowState(
                unsettled_lwm=lowest,
                session_credit=session_credit,
                transfer_count=attach.initial_delivery_count,
                link_credit=0,
            )
        else:
            lowest = lowest_outgoing(session)
            state = draft.FlowState(
                unsettled_lwm=lowest,
                session_credit=credit.remaining(lowest),
                transfer_count=attach.initial_delivery_count,
            )
        self.write_draft(session.channel, draft_attach(attach, state, notes.remote))
        notes.local = draft_linkage(attach)
        notes.handle = attach.handle
        notes.first_count = attach.initial_delivery_count or 0
        credit.links[key] = notes
        credit.by_handle[attach.handle] = notes

    def on_flow(self, session: Session, flow: final.Flow, _payload: bytes) -> None:
        """Write the flow of a link.

        The draft has no flow of a session alone: ``write_credit`` writes the credit of a session.
        """
        credit = credit_of(session)
        if flow.handle is None:
            return
        notes = credit.by_handle[flow.handle]
        if notes.units is not None and flow.drain and not flow.link_credit:
            notes.units.use_up_credit()
        state = link_state(session, notes, flow.delivery_count, flow.link_credit, flow.available, flow.drain)
        txn_id = (flow.properties or {}).get(TXN_ID)
        self.write_draft(
            session.channel,
            draft.Flow(
                options=None if txn_id is None else {TXN_ID: txn_id},
                handle=flow.handle,
                flow_state=state,
                echo=flow.echo or None,
            ),
        )

    def write_credit(self, session: Session) -> None:
        """Write the credit of the session, in the flow-state of any receiving link.

        Nothing is written if there is no such link.
        """
        for notes in credit_of(session).by_handle.values():
            if notes.role is final.Role.RECEIVER:
                body = draft.Flow(handle=bound(notes), flow_state=flow_state(session, notes))
                self.write_draft(session.channel, body)
                return

    def on_disposition(self, session: Session, disposition: final.Disposition, _payload: bytes) -> None:
        """Gather a disposition until octets are taken, or another frame is written."""
        extent = draft.Extent(
            first=disposition.first,
            last=None if disposition.last == disposition.first else disposition.last,
            settled=disposition.settled or None,
            state=draft_state(disposition.state),
        )
        octets = len(write(extent))
        if FRAME_HEADER_SIZE + octets + _SPARE > self.frame_size:
            # The engine found that the outcome fits, but the draft needs more octets: leave out its details.
            assert isinstance(extent.state, TransferState)
            state = replace(extent.state, outcome=bare_outcome(extent.state.outcome))
            extent = replace(extent, state=state)
            octets = len(write(extent))
        key = session.channel, disposition.role, disposition.batchable
        self._extent_octets += octets
        if FRAME_HEADER_SIZE + self._extent_octets + _SPARE > self.frame_size:
            self.write_extents()
            self._extent_octets = octets
        if not self._chunks and self.on_output is not None:
            self.on_output()
        self._extents.setdefault(key, []).append(extent)

    def on_detach(self, session: Session, detach: final.Detach, _payload: bytes) -> None:
        """Write a detach; it has no local linkage if it closes the link (D 964)."""
        credit = credit_of(session)
        notes = credit.by_handle.pop(detach.handle)
        notes.handle = None
        notes.drop_incoming()
        notes.outgoing = None
        credit.partials.discard(notes)
        if notes.remote_handle is None and credit.links.get((notes.name, notes.role)) is notes:
            del credit.links[notes.name, notes.role]
        self.write_draft(
            session.channel,
            draft.Detach(
                handle=detach.handle,
                local=None if detach.closed else notes.local or draft.Linkage(),
                remote=notes.remote,
                error=draft_error(fit(detach.error, self.frame_size - _SPARE)),
            ),
        )
        if detach.error is not None and notes.ends_session:
            self._connection.ending[session] = None

    # -- transfers --------------------------------------------------------------------------

    def on_transfer(self, session: Session, transfer: final.Transfer, payload: bytes) -> None:
        """Write a whole message, or keep a part of it."""
        credit = credit_of(session)
        notes = credit.by_handle[transfer.handle]
        message = notes.outgoing
        if message is None:
            message = begun(session, notes, transfer)
        if payload:
            message.chunks.append(payload)
        if transfer.settled:
            message.settled = True
        if transfer.state is not None:
            message.state = draft_state(transfer.state)
        if transfer.more:
            notes.outgoing = message
            credit.partials.add(notes)
            if not message.opened:
                message.opened = True
                self._write_part(session, notes, message, (), more=True)
        else:
            notes.outgoing = None
            credit.partials.discard(notes)
            if transfer.aborted:
                self._write_part(session, notes, message, (), aborted=True)
            else:
                self._write_message(session, notes, message)
        # The engine counts this transfer when it is written.
        credit.remote_incoming_window = credit.room(add(message.transfer_id, 1)) + 1

    def _write_message(self, session: Session, notes: LinkNotes, message: OutgoingMessage) -> None:
        sections, txn_id = self._sections(session, notes, message)
        if txn_id is not None:
            message.state = TransferState(txn_id=txn_id)
        self.write_sections(session, notes, message, sections)

    def write_sections(
        self, session: Session, notes: LinkNotes, message: OutgoingMessage, sections: list[DraftSection]
    ) -> None:
        """Write the transfers of a message, as far as the credit of its link reaches."""
        bare = transfer_of(session, notes, message, (), more=True)
        room = self.frame_size - FRAME_HEADER_SIZE - len(write(bare)) - FRAGMENT_OVERHEAD
        start, stop = notes.starts.pop(message.tag, 0) if message.resume else 0, None
        if notes.units is not None:
            start, stop = notes.units.take(message, sections)
            # The engine subtracts one from the credit when it counts the message.
            ahead = int(session.next_delivery_id == message.transfer_id)
            link_of(session, notes).credit = notes.units.messages + ahead
        *parts, last = cut(sections, max(room, FRAGMENT_OVERHEAD + 1), start, stop)
        for part in parts:
            self._write_part(session, notes, message, part, more=True)
        if last or stop is None:
            self._write_part(session, notes, message, last, more=stop is not None)

    def _sections(
        self, session: Session, notes: LinkNotes, message: OutgoingMessage
    ) -> tuple[list[DraftSection], Any]:
        payload = b"".join(message.chunks)
        link = self._connection.names.find(notes.name, notes.role, session)
        if link is not None and isinstance(link.target, Coordinator):
            command = draft_command(payload)
            if command is not None:
                sections, txn_id = command
                if txn_id is None:
                    credit_of(session).declares.add(message.transfer_id)
                return sections, txn_id
        return draft_message(payload, message.message_format), None

    def _write_part(
        self,
        session: Session,
        notes: LinkNotes,
        message: OutgoingMessage,
        fragments: tuple[draft.Fragment, ...],
        *,
        more: bool = False,
        aborted: bool = False,
    ) -> None:
        body = transfer_of(session, notes, message, fragments, more=more, aborted=aborted)
        self.write_draft(session.channel, body)


_ON: Final[dict[type[Any], Callable[..., None]]] = {
    final.Attach: FrameWriter.on_attach,
    final.Flow: FrameWriter.on_flow,
    final.Transfer: FrameWriter.on_transfer,
    final.Disposition: FrameWriter.on_disposition,
    final.Detach: FrameWriter.on_detach,
}
