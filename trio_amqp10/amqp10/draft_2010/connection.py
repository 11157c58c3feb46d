"""A connection of the draft: the engine of the final standard, with another wire.

Frames of the peer are given to the engine as performatives of the final standard (``frame_translator``), and
performatives of the engine are sent as frames of the draft (``frame_writer``). States, sessions, links and settlement
are the engine's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.idle_timeout import IdleTimeout
from trio_amqp10.amqp10.engine.states import ConnectionState, SessionState
from trio_amqp10.amqp10.wire.frames import AMQP_FRAME
from trio_amqp10.core import peer_rules as rules
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.core.peer_rules import Strict

from .flow_states import credit_of
from .frame_reader import DraftFrameReader
from .frame_translator import FrameTranslator
from .frame_writer import FrameWriter
from .protocol_rules import DraftCondition
from .session_credit import SessionCredit
from .spec.transport import MIN_MAX_FRAME_SIZE

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.frame_reader import FrameReader
    from trio_amqp10.amqp10.engine.session import Session
    from trio_amqp10.amqp10.engine.write_buffer import WriteBuffer

NAME: Final = "1.0-draft-2010"
"""The name of the dialect in options."""


class DraftConnection(Connection):
    """A ``Connection`` with the wire of the draft.

    Args:
        container_id: the container-id of this peer.
        options: as of ``Connection``; with ``strict=True`` encodings that only the final standard has are refused.

    Attributes:
        ending: sessions that must end because of an error of a link (D 1516-1522).
        frame_writer: the same as ``write_buffer``.
    """

    __slots__ = ("_translator", "ending", "frame_writer")

    def __init__(self, container_id: str, **options: Any) -> None:
        super().__init__(container_id, **options)
        if self.limits.max_frame_size < MIN_MAX_FRAME_SIZE:
            raise LocalProtocolError(
                f"max_frame_size={self.limits.max_frame_size}: the draft of 2010 needs at least "
                f"{MIN_MAX_FRAME_SIZE} octets (D 1630)"
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
        """See ``Connection``; a frame of 4,096 octets is always accepted (D 649-651)."""
        return max(super().frame_limit(), MIN_MAX_FRAME_SIZE)

    def on_frame(self, kind: int, channel: int, body: bytes) -> None:
        """See ``Connection``; the frame is one of the draft."""
        if kind != AMQP_FRAME or channel > self.limits.channel_max or not body:
            super().on_frame(kind, channel, body)
        elif self.state is ConnectionState.DISCARDING:
            self._discard(channel, body)
        else:
            self._translator.on_body(channel, body)

    def _discard(self, channel: int, body: bytes) -> None:
        """Read a frame after a failure, when only open and close count."""
        try:
            self._translator.on_body(channel, body)
        except RemoteProtocolError:
            return

    def _feed(self, channel: int, octets: bytes) -> None:
        super().on_frame(AMQP_FRAME, channel, octets)

    def check_opened(self, body: object) -> None:
        """Refuse a frame before the peer's open.

        Raises:
            RemoteProtocolError: the peer has not sent its open.
        """
        if self.remote is None:
            raise rules.OPEN_FIRST.broken(f"{type(body).__name__.lower()} before open")

    def agree(self, idle_time_out: int | None) -> None:
        """Set the time-out that follows from both opens.

        Without heartbeats, silence means nothing (D 1166-1170).
        """
        idle = self._idle
        announced = idle.announced
        if announced is None:
            return
        seconds = None if idle_time_out is None else max(announced / 500, idle_time_out / 1000)
        self._idle = IdleTimeout(seconds)
        self._idle.last_received = idle.last_received

    def bound_partials(self) -> None:
        """Detach the link with the largest partial message, if these take too much memory."""
        limits, pool = self.limits, self.context.pool
        if limits.partial_octets is not None and self.context.partial_octets > limits.partial_octets:
            self.context.drop_largest(f"{limits.partial_octets} octets on this connection")
        elif pool is not None and not pool.relieve(self.context):
            self.context.drop_largest(str(pool))

    def data_to_send(self) -> bytes | None:
        """See ``Connection``; first end the sessions with a failed link, and grant credit."""
        while self.ending:
            session, _ = self.ending.popitem()
            text = "a link with error-mode end has met an error (D 1522)"
            session.fail(RemoteProtocolError(text, DraftCondition.LINK_ERROR, "session"))
        self.context.flush()  # Dispositions must be written before the credit that they free.
        for session in self.channels.ours.values():
            if session.state is SessionState.MAPPED and credit_of(session).is_due():
                self.frame_writer.write_credit(session)
        return super().data_to_send()

    def has_output(self) -> bool:
        """True: the credit to grant is found only when it is written. See ``Connection``."""
        return True
