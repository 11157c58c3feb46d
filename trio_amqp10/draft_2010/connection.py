"""A connection of the draft: the engine of the final standard, with another wire.

What the peer writes is given to the engine as performatives of the final standard (``frame_translator``), and what the engine writes
leaves as frames of the draft (``frame_writer``). States, sessions, links and settlement are the engine's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10 import protocol_rules as rules
from trio_amqp10.engine.connection import Connection
from trio_amqp10.engine.idle_timeout import IdleTimeout
from trio_amqp10.engine.states import ConnectionState, SessionState
from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.frames import AMQP_FRAME
from trio_amqp10.protocol_rules import Strict

from .faults import DraftCondition
from .flow_states import credit_of
from .frame_reader import DraftFrameReader
from .frame_translator import FrameTranslator
from .frame_writer import FrameWriter
from .session_credit import SessionCredit
from .spec.transport import MIN_MAX_FRAME_SIZE

if TYPE_CHECKING:
    from trio_amqp10.engine.frame_reader import FrameReader
    from trio_amqp10.engine.session import Session
    from trio_amqp10.engine.write_buffer import WriteBuffer

__all__ = ["NAME", "DraftConnection"]

NAME: Final = "1.0-draft-2010"
"""What the dialect is called where one is named."""


class DraftConnection(Connection):
    """As of ``Connection``, on the wire of the draft.

    Args:
        container_id: who we are.
        options: as of ``Connection``; with ``strict=True`` encodings that only the final standard has are refused.

    Attributes:
        ending: sessions that an error of a link is to end (D 1516-1522).
        frame_writer: the same as ``write_buffer``.
    """

    __slots__ = ("_translator", "ending", "frame_writer")

    def __init__(self, container_id: str, **options: Any) -> None:
        super().__init__(container_id, **options)
        if self.limits.max_frame_size < MIN_MAX_FRAME_SIZE:
            raise LocalProtocolError(
                f"max_frame_size={self.limits.max_frame_size}: at least {MIN_MAX_FRAME_SIZE} octets are due "
                "in the draft of 2010 (D 1630)"
            )
        self.frame_writer: Final = FrameWriter(self.limits.output_soft, self)
        self.context.write_buffer = self.frame_writer
        self.write_buffer: WriteBuffer = self.frame_writer
        self.frame_reader: FrameReader = DraftFrameReader(self.context)
        strict = self.strict == Strict.all(True)
        self._translator = FrameTranslator(self, self._feed, strict=strict)
        self.ending: dict[Session, None] = {}

    def _make_session(self, channel: int) -> Session:
        session = super()._make_session(channel)
        session.windows = SessionCredit(session, self.limits.incoming_window)
        return session

    def frame_limit(self) -> int:
        """As of ``Connection``; 4,096 octets are always taken (D 649-651)."""
        return max(super().frame_limit(), MIN_MAX_FRAME_SIZE)

    def on_frame(self, kind: int, channel: int, body: bytes) -> None:
        """As of ``Connection``, for a frame of the draft."""
        if kind != AMQP_FRAME or channel > self.limits.channel_max or not body:
            super().on_frame(kind, channel, body)
        elif self.state is ConnectionState.DISCARDING:
            self._discard(channel, body)
        else:
            self._translator.on_body(channel, body)

    def _discard(self, channel: int, body: bytes) -> None:
        """Only open and close count where the rest is discarded."""
        try:
            self._translator.on_body(channel, body)
        except RemoteProtocolError:
            return

    def _feed(self, channel: int, octets: bytes) -> None:
        super().on_frame(AMQP_FRAME, channel, octets)

    def check_opened(self, body: object) -> None:
        """Refuse a frame before the peer's open.

        Raises:
            RemoteProtocolError: it has not opened.
        """
        if self.remote is None:
            raise rules.OPEN_FIRST.broken(f"{type(body).__name__.lower()} before open")

    def agree(self, idle_time_out: int | None) -> None:
        """What both say of heartbeats is known: without them silence means nothing (D 1166-1170)."""
        idle = self._idle
        announced = idle.announced
        if announced is None:
            return
        seconds = None if idle_time_out is None else max(announced / 500, idle_time_out / 1000)
        self._idle = IdleTimeout(seconds)
        self._idle.last_received = idle.last_received

    def bound_partials(self) -> None:
        """Messages in progress fill a budget: the largest goes, with its link."""
        limits, pool = self.limits, self.context.pool
        if limits.partial_octets is not None and self.context.partial_octets > limits.partial_octets:
            self.context.drop_largest(f"{limits.partial_octets} octets on this connection")
        elif pool is not None and not pool.relieve(self.context):
            self.context.drop_largest(str(pool))

    def data_to_send(self) -> bytes | None:
        """As of ``Connection``, with the sessions that a link ends, and the credit that is due."""
        while self.ending:
            session, _ = self.ending.popitem()
            text = "a link with error-mode end has met an error (D 1522)"
            session.fail(RemoteProtocolError(text, DraftCondition.LINK_ERROR, "session"))
        self.context.flush()  # of what is settled the dispositions come first
        for session in self.channels.ours.values():
            if session.state is SessionState.MAPPED and credit_of(session).is_due():
                self.frame_writer.tell_credit(session)
        return super().data_to_send()

    def has_output(self) -> bool:
        """As of ``Connection``; credit that is due is found when it is written."""
        return True
