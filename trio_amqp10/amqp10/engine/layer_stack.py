"""The protocol layers of one transport: SASL, then AMQP (2.2, 5.3).

A pump drives the stack. The stack negotiates each layer by its protocol header, passes octets to the current
layer, and moves on when that layer is done. Only the stack and the layers below know which end dialled: the
dialler chooses the layer, and the acceptor agrees or sends the header that it wants.

No frame of the AMQP layer is dispatched, and none of its octets are sent, before the SASL layer has
succeeded: our own state decides which layer is current, never an octet of the peer.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError, SecurityError
from trio_amqp10.core.peer_rules import SECURITY_LAYER
from trio_amqp10.core.protocol_headers import (
    AMQP_HEADER,
    AMQP_ID,
    HEADER_SIZE,
    SASL_HEADER,
    SASL_ID,
    TLS_HEADER,
    header_id,
)
from trio_amqp10.sasl import SaslClient, SaslServer, SecurityDowngradeError

from .events import Authenticated, Event, QuestionAsked
from .states import ConnectionState

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.spec.transport import Error
    from trio_amqp10.sasl import Question

    from .connection import Connection
    from .delivery import Touchable

_INSISTING: Final = {
    SASL_HEADER: "SASL (it answered with protocol id 3): dial it with a mechanism, or a user",
    TLS_HEADER: "TLS (it answered with protocol id 2): dial it with amqps:// or amqp+tls://",
}
"""The headers of layers that a peer may demand, with a text for the error (2.2)."""


class Layer(Enum):
    """The layer that the next octets belong to."""

    CHOICE = auto()
    """The acceptor waits for the first header."""
    SASL_HEADER = auto()
    """The dialler waits for the answer to its SASL header."""
    SASL = auto()
    AMQP = auto()
    DEAD = auto()
    """Refused before the AMQP layer: only waiting output is sent."""


class Stack:
    """The interface that a pump drives, over the layers of one transport.

    Args:
        connection: the AMQP layer. A dialler may open it, begin and attach at once: its octets wait.
        now: seconds of the caller's clock; the deadline of the header counts from here.
        sasl: the SASL layer of a dialler, or None.
        accept_sasl: on the accepting side, makes the SASL layer for a peer that asks for it.
        accept_plain: on the accepting side, whether AMQP without SASL is accepted.
        accepting: whether the peer sends the first header.
        began: the time from which the deadline of the peer's ``open`` counts; ``now`` if None.
        jitter: seconds that a failed authentication is held longer than its penalty.
    """

    __slots__ = (
        "_accept_plain",
        "_accept_sasl",
        "_asked",
        "_context",
        "_events",
        "_header_deadline",
        "_hold_until",
        "_in",
        "_jitter",
        "_looks",
        "_open_deadline",
        "_out",
        "connection",
        "identity",
        "layer",
        "sasl",
    )

    def __init__(
        self,
        connection: Connection,
        now: float,
        *,
        sasl: SaslClient | None = None,
        accept_sasl: Callable[[], SaslServer] | None = None,
        accept_plain: bool = True,
        accepting: bool = False,
        began: float | None = None,
        jitter: float = 0.0,
    ) -> None:
        self.connection: Connection = connection
        self._context = connection.context
        self.sasl: SaslClient | SaslServer | None = sasl
        self.identity: Any = None
        self._accept_sasl = accept_sasl
        self._accept_plain = accept_plain
        self._out = b""
        self._in = b""
        self._events: list[Event] = []
        self._hold_until: float | None = None
        self._asked: Question | None = None
        limits = connection.limits
        self._header_deadline = None if limits.header_timeout is None else now + limits.header_timeout
        whole = limits.handshake_timeout
        self._open_deadline = None if whole is None else (now if began is None else began) + whole
        self._jitter = jitter
        # A dialler without SASL looks at the header of the answer, because a peer that demands another layer
        # deserves a better error than a wrong protocol header (2.2).
        self._looks = not accepting and sasl is None
        if accepting:
            self.layer: Layer = Layer.CHOICE
        elif sasl is not None:
            self.layer = Layer.SASL_HEADER
            self._out = SASL_HEADER
        else:
            self.layer = Layer.AMQP

    # -- what a pump calls ------------------------------------------------------------------

    def receive_data(self, data: bytes, now: float) -> None:
        """Process octets from the transport.

        Raises:
            RemoteProtocolError: the peer broke a rule that ends the connection; see ``Connection``.
            SecurityError: SASL failed, or the peer offered a weaker layer than we asked for.
        """
        try:
            self.receive_slice(data, now)
        finally:
            self._read_on(now)

    def receive_slice(self, data: bytes, now: float) -> None:
        """Do as ``receive_data``, but only one slice: see ``Connection.has_input``.

        Raises:
            RemoteProtocolError, SecurityError: as ``receive_data``.
        """
        if self.layer is Layer.AMQP:
            if self._looks:
                self._look_at_answer(data)
            self.connection.receive_slice(data, now)
            return
        try:
            self._receive_below(data, now)
        except Exception as failure:
            self._fail(failure)
            raise

    def has_input(self) -> bool:
        """Whether received octets are left: call ``receive_slice`` again."""
        return self.connection.has_input()

    def unread_input(self) -> bytes | None:
        """Return the received octets that the AMQP layer has not read yet.

        None before that layer.
        """
        reads = self.layer is Layer.AMQP and not self._looks
        return self.connection.frame_reader.unread() if reads else None

    def _read_on(self, now: float) -> None:
        if self.connection.has_input():
            self.connection.receive_data(b"", now)

    def receive_eof(self, now: float) -> None:
        """Note that the peer will send no more octets."""
        if self.layer is Layer.AMQP:
            self.connection.receive_eof(now)
        elif self.layer is not Layer.DEAD:
            self._die(f"the peer ended the transport, {self._waiting_for()}")

    def transport_lost(self) -> None:
        """End the connection, because the transport failed."""
        self._out = b""
        self._hold_until = None
        if self.sasl is not None:
            self.sasl.data_to_send()  # drop its output
        if self.layer is not Layer.DEAD and self.layer is not Layer.AMQP:
            self._die(f"the transport was lost, {self._waiting_for()}")
        self.connection.transport_lost()

    @property
    def on_output(self) -> Callable[[], object] | None:
        """Called when output waits; see ``net.engine_interface.Engine``.

        Below the AMQP layer only calls of the pump make output, and the pump looks for output after each
        call.
        """
        return self.connection.write_buffer.on_output

    @on_output.setter
    def on_output(self, call: Callable[[], object] | None) -> None:
        self.connection.write_buffer.on_output = call

    def next_event(self) -> Event | None:
        """Return the oldest event that was not returned yet, or None."""
        if self._events:
            return self._events.pop(0)
        return self.connection.next_event()

    def data_to_send(self) -> bytes | None:
        """Return octets for the transport; None if there will never be any again."""
        if self.layer is Layer.AMQP:
            if self._out:
                out, self._out = self._out, b""
                return out + (self.connection.data_to_send() or b"")
            return self.connection.data_to_send()
        if self._hold_until is not None:
            return b""
        out, self._out = self._out, b""
        if self.sasl is not None:
            out += self.sasl.data_to_send()
        return None if not out and self.layer is Layer.DEAD else out

    def has_output(self) -> bool:
        """Whether ``data_to_send`` may return more than ``b""``."""
        return self.layer is not Layer.AMQP or bool(self._out) or self.connection.has_output()

    def next_deadline(self) -> float | None:
        """Return the time at which ``handle_timer`` must be called, or None."""
        due = self.connection.next_deadline()
        for deadline in (self._hold_until, self._header_deadline, self._open_deadline):
            if deadline is not None and (due is None or deadline < due):
                due = deadline
        return due

    def handle_timer(self, now: float) -> None:
        """Do everything that is due at ``now``: see ``Connection.handle_timer``.

        Raises:
            RemoteProtocolError: the peer was silent for too long.
        """
        if self._hold_until is not None and now >= self._hold_until:
            self._hold_until = None
        if self.layer is Layer.AMQP and self.connection.frame_reader.greeted:
            self._header_deadline = None
        if self.connection.remote is not None or self.layer is Layer.DEAD:
            self._header_deadline = self._open_deadline = None
        for deadline in (self._header_deadline, self._open_deadline):
            if deadline is not None and now >= deadline:
                self._header_deadline = self._open_deadline = None
                self._die(f"the peer took too long, {self._waiting_for()}")
                return
        self.connection.handle_timer(now)

    def take_touched(self) -> list[Touchable]:
        """Return the objects to wake now, each once, and clear the list."""
        return self._context.take_touched()

    # -- below AMQP -------------------------------------------------------------------------

    def _look_at_answer(self, data: bytes) -> None:
        """Raise if the peer answers an AMQP header with the header of another layer."""
        self._in = head = (self._in + data)[:HEADER_SIZE]
        if head in _INSISTING:
            reason = f"the peer accepts no connection without {_INSISTING[head]}"
            self._die(reason)
            raise SecurityError(reason)
        self._looks = any(header.startswith(head) for header in _INSISTING)
        if not self._looks:
            self._in = b""

    def answer(self, value: object, now: float) -> None:
        """Pass the application's answer to the SASL mechanism (``QuestionAsked``).

        Raises:
            LocalProtocolError: no question is open.
            RemoteProtocolError, SecurityError: as ``receive_data``, because waiting octets are read now.
        """
        self._resume(lambda sasl: sasl.answer(value), now)

    def abandon_question(self, failure: Exception, now: float) -> None:
        """Fail the SASL exchange, because the application raised ``failure``.

        Raises:
            LocalProtocolError: no question is open.
            SecurityError: on the dialling side, which cannot continue.
        """

        def report_failure(sasl: SaslClient | SaslServer) -> None:
            if isinstance(sasl, SaslServer):
                sasl.abandon(failure)
            else:
                raise SecurityError(f"no credentials: {failure}") from failure

        self._resume(report_failure, now)

    def _resume(self, step: Callable[[SaslClient | SaslServer], None], now: float) -> None:
        if self.sasl is None or self.layer is not Layer.SASL:
            return  # the connection ended before the application answered
        if self.sasl.question is None:
            raise LocalProtocolError("no question of the SASL layer is open")
        try:
            step(self.sasl)
            self._after_sasl(now)
            self._read_on(now)
        except Exception as failure:
            self._fail(failure)
            raise

    def _receive_below(self, data: bytes, now: float) -> None:
        """Process octets that belong to a layer below AMQP."""
        if self.layer is Layer.DEAD:
            return
        if self.layer is Layer.SASL:
            assert self.sasl is not None
            self.sasl.receive_data(data)
            self._after_sasl(now)
            return
        self._in += data
        try:
            protocol_id = header_id(self._in)
        except RemoteProtocolError:
            if self.layer is Layer.CHOICE:
                self._out = self._wanted_header()
            raise
        if protocol_id is None:
            return
        rest, self._in = self._in[HEADER_SIZE:], b""
        self._header_deadline = None
        if self.layer is Layer.CHOICE:
            self._accept(protocol_id, rest, now)
        elif protocol_id == SASL_ID:
            # The peer agreed to SASL: frames of the SASL layer follow.
            self.layer = Layer.SASL
            if rest:
                self._receive_below(rest, now)
        elif protocol_id == AMQP_ID:
            # Without SASL the connection would not be authenticated: an attacker between the ends may have
            # changed the header.
            raise SecurityDowngradeError(
                "SASL (protocol id 3) was requested, and the peer answered with protocol id 0: "
                "it wants to continue without authentication"
            )
        else:
            raise SecurityError(f"the peer accepts no connection without {_INSISTING[TLS_HEADER]}")

    def _accept(self, protocol_id: int, rest: bytes, now: float) -> None:
        """Agree to the header of a dialler, or refuse it with the header to use (2.2)."""
        if protocol_id == SASL_ID and self._accept_sasl is not None:
            self._out = SASL_HEADER
            self.sasl = self._accept_sasl()
            self.layer = Layer.SASL
            if rest:
                self._receive_below(rest, now)
        elif protocol_id == AMQP_ID and self._accept_plain:
            self.layer = Layer.AMQP
            self._accept_sasl = None
            self.connection.receive_slice(AMQP_HEADER + rest, now)
        else:
            self._out = self._wanted_header()
            without = " without SASL" if protocol_id == AMQP_ID else ""
            raise SECURITY_LAYER.broken(f"protocol id {protocol_id} is not accepted here{without}")

    def _wanted_header(self) -> bytes:
        """Return the header that a refused peer should have sent (2.2)."""
        if self._accept_sasl is not None and not self._accept_plain:
            return SASL_HEADER
        return AMQP_HEADER if self._accept_plain else TLS_HEADER

    def _after_sasl(self, now: float) -> None:
        """Move on to the AMQP layer, ask the application, or end, by the SASL state."""
        sasl = self.sasl
        assert sasl is not None
        if sasl.question is not None:
            if sasl.question is not self._asked:  # more octets may arrive before the application answers
                self._asked = sasl.question
                self._events.append(QuestionAsked(sasl.question))
            return
        hostname = None
        if isinstance(sasl, SaslServer):
            if sasl.failed:
                # The outcome is sent only after the penalty, which slows down guessing of passwords.
                self._hold_until = now + sasl.penalty + self._jitter
                self._die("the peer failed to authenticate")
                return
            self.identity = sasl.identity
            hostname = sasl.hostname
        if not sasl.done:
            return
        self._out += sasl.data_to_send()
        self.layer = Layer.AMQP
        self._events.append(Authenticated(self.identity, hostname))
        rest = sasl.take_rest()
        # The stack lives as long as the connection: free the secrets and buffers of the SASL layer.
        self.sasl = self._accept_sasl = self._asked = None
        if rest:
            self.connection.receive_slice(rest, now)

    def _waiting_for(self) -> str:
        """Return which step the peer did not complete, for an error message."""
        if self.layer is Layer.AMQP:
            state = self.connection.state
            return "before its open" if state is not ConnectionState.OPENED else "before its close"
        if self.layer is Layer.SASL:
            return "before SASL was done"
        return "before its protocol header"

    def _fail(self, failure: Exception) -> None:
        if self.layer is not Layer.AMQP:  # the AMQP layer sends a close by itself
            self._die(str(failure))

    def _die(self, reason: str) -> None:
        """End the connection before the AMQP layer has begun, or without a close."""
        self.layer = Layer.DEAD
        self._header_deadline = self._open_deadline = None
        self.connection.abandon(reason)

    def close(self, error: Error | None = None, now: float | None = None) -> None:
        """Close the connection, or end the handshake that comes before it."""
        if self.layer is Layer.AMQP:
            self.connection.close(error, now)
        elif self.layer is not Layer.DEAD:
            self._die("this end closed the connection during the handshake")
