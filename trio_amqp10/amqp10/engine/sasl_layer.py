"""The common part of both sides of the SASL layer: states, frames (5.3.1, 5.3.2).

Only the layer's own state decides which performative may come: only the five SASL performatives, only in
frames of the SASL type. An error that the standard calls irrecoverable raises ``RemoteProtocolError``; the
transport must then be aborted without another frame.

The layer has three inputs (``receive_data``, ``answer``, and the configuration) and one output
(``data_to_send``). It knows no mechanism, not which side is the client, and no clock: the delay that protects
against guessing is a number (``SaslServer.penalty``) for a caller that has one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.spec import SASL_PERFORMATIVES
from trio_amqp10.amqp10.spec.security import (
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.frames import MIN_MAX_FRAME_SIZE, SASL_FRAME, encode_frame, parse_frame
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.peer_rules import SASL_FRAME as SASL_FRAME_RULE
from trio_amqp10.core.peer_rules import SASL_FRAME_SIZE, SASL_ORDER, SASL_PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.core.peer_rules import Strict
    from trio_amqp10.core.tolerances import Tolerances
    from trio_amqp10.sasl.mechanism import Question

DEFAULT_MAX_FRAME_SIZE: Final = 8192
"""The largest SASL frame; the standard has 512 (5.3.1), too few for real tokens.

See ``Strict.sasl_frame_size``.
"""

HELD_LIMIT: Final = 32_768
"""Octets that are kept unread while the application is asked.

The limit is small, because the peer is not authenticated yet.
"""

MAX_ROUNDS: Final = 8
"""The largest number of challenges in one exchange."""


def sasl_frame_size(strict: Strict) -> int:
    """Return the largest frame of this layer, in both directions."""
    return MIN_MAX_FRAME_SIZE if strict.sasl_frame_size else DEFAULT_MAX_FRAME_SIZE


class SaslState(Enum):
    """The state of one side of an exchange, named after what it waits for (5.3.2)."""

    EXPECT_MECHANISMS = "client: waits for sasl-mechanisms"
    EXPECT_CHALLENGE = "client: waits for sasl-challenge or sasl-outcome"
    EXPECT_INIT = "server: waits for sasl-init"
    EXPECT_RESPONSE = "server: waits for sasl-response"
    ASKING = "waits for the application; reads nothing"
    DONE = "authenticated; reads nothing: what follows belongs to the AMQP layer"
    FAILED = "not authenticated; drops whatever comes"

    def __repr__(self) -> str:
        return f"<{self.name}>"


_S = SaslState

RECEIVES: Final[Mapping[SaslState, tuple[type[Any], ...]]] = MappingProxyType(
    {
        _S.EXPECT_MECHANISMS: (SaslMechanisms,),
        _S.EXPECT_CHALLENGE: (SaslChallenge, SaslOutcome),
        _S.EXPECT_INIT: (SaslInit,),
        _S.EXPECT_RESPONSE: (SaslResponse,),
    }
)
"""The performatives that each state accepts; other states read nothing (5.3.2)."""

MOVES: Final[Mapping[SaslState, frozenset[SaslState]]] = MappingProxyType(
    {
        _S.EXPECT_MECHANISMS: frozenset({_S.EXPECT_CHALLENGE, _S.ASKING, _S.FAILED}),
        _S.EXPECT_CHALLENGE: frozenset({_S.EXPECT_CHALLENGE, _S.ASKING, _S.DONE, _S.FAILED}),
        _S.EXPECT_INIT: frozenset({_S.EXPECT_RESPONSE, _S.ASKING, _S.DONE, _S.FAILED}),
        _S.EXPECT_RESPONSE: frozenset({_S.EXPECT_RESPONSE, _S.ASKING, _S.DONE, _S.FAILED}),
        _S.ASKING: frozenset({_S.EXPECT_CHALLENGE, _S.EXPECT_RESPONSE, _S.ASKING, _S.DONE, _S.FAILED}),
        _S.DONE: frozenset(),
        _S.FAILED: frozenset(),
    }
)
"""The states that may follow each state.

DONE and FAILED are final: a connection allows one attempt.
"""


class SaslLayer(ABC):
    """Read and write SASL frames until there is an outcome.

    Octets after the outcome are kept for the AMQP layer.

    Attributes:
        state: the state of the exchange.
        question: the question to the application while ``state`` is ASKING; otherwise None.
    """

    __slots__ = ("_buffer", "_max_frame_size", "_out", "_tolerances", "question", "state")

    def __init__(self, state: SaslState, max_frame_size: int, tolerances: Tolerances | None) -> None:
        self.state: SaslState = state
        self.question: Question | None = None
        self._max_frame_size = max_frame_size
        self._tolerances = tolerances
        self._buffer = b""
        self._out: list[bytes] = []

    @property
    def done(self) -> bool:
        """Whether the outcome is ok: the connection is authenticated."""
        return self.state is SaslState.DONE

    @property
    def failed(self) -> bool:
        """Whether the exchange failed; a server may still have an outcome to send."""
        return self.state is SaslState.FAILED

    def receive_data(self, data: bytes) -> None:
        """Process octets of the transport, in chunks of any size.

        No octet after the outcome is read.

        Raises:
            RemoteProtocolError: the octets are no SASL frame that may come now: abort the transport (5.3.1).
            SecurityError: a client's exchange failed.
        """
        if self.failed:
            return  # the peer may not have read the outcome yet
        self._buffer += data
        self._guard(self._read)

    def answer(self, value: object) -> None:
        """Pass the application's answer to ``question``, and continue reading.

        Raises:
            LocalProtocolError: no question is open.
            RemoteProtocolError, SecurityError: as ``receive_data``, because waiting octets are read now.
        """
        if self.question is None:
            raise LocalProtocolError("no question of the SASL layer is open")
        self.question = None
        self._guard(lambda: self._answered(value))

    def take_rest(self) -> bytes:
        """Return the octets after the outcome, for the AMQP layer, once.

        Raises:
            LocalProtocolError: the exchange is not done.
        """
        if not self.done:
            raise LocalProtocolError("there is no SASL outcome yet, and so no octets after it")
        rest, self._buffer = self._buffer, b""
        return rest

    def data_to_send(self) -> bytes:
        """Return the octets to send now, once."""
        out = b"".join(self._out)
        self._out.clear()
        return out

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.state.name}>"

    # -- for the subclasses

    @abstractmethod
    def _on_performative(self, performative: Any) -> None:
        """Process a performative that RECEIVES allows in this state."""

    @abstractmethod
    def _on_answer(self, value: object) -> None:
        """Process the application's answer."""

    def _on_misplaced(self, performative: Any) -> None:
        """Process a SASL performative that may not come now: it is irrecoverable."""
        raise SASL_ORDER.broken(f"{type(performative).__name__} while the {self.state.value}")

    @abstractmethod
    def _forget(self) -> None:
        """Drop objects that may hold secrets, because the exchange is over."""

    def _enter(self, state: SaslState) -> None:
        assert state in MOVES[self.state], f"{self.state!r} to {state!r}"
        self.state = state
        if state is SaslState.DONE or state is SaslState.FAILED:
            self.question = None
            self._forget()
        if state is SaslState.FAILED:
            self._buffer = b""

    def _ask(self, question: Question) -> None:
        self._enter(SaslState.ASKING)
        self.question = question

    def _send(self, performative: Any) -> None:
        self._send_body(encode(performative))

    def _send_body(self, body: bytes) -> None:
        frame = encode_frame(0, body, SASL_FRAME)
        if len(frame) > self._max_frame_size:
            raise LocalProtocolError(
                f"a SASL frame of {len(frame)} octets would pass the limit of {self._max_frame_size}"
            )
        self._out.append(frame)

    # -- reading

    def _guard(self, run: Callable[[], None]) -> None:
        """Call ``run``; an exception ends the exchange, and nothing more is sent (5.3.1)."""
        try:
            run()
        except Exception:
            self._enter(SaslState.FAILED)
            self._out.clear()
            raise

    def _answered(self, value: object) -> None:
        self._on_answer(value)
        self._read()

    def _read(self) -> None:
        while self.state in RECEIVES:
            frame = parse_frame(self._buffer, 0, self._max_frame_size, SASL_FRAME_SIZE)
            if frame is None:
                return
            frame_type, _, start, end = frame  # the octets of the channel are ignored here (5.3.1)
            if end > MIN_MAX_FRAME_SIZE and self._tolerances is not None:
                self._tolerances.note(SASL_FRAME_SIZE)
            body, self._buffer = self._buffer[start:end], self._buffer[end:]
            performative = self._decode_body(frame_type, body)
            if isinstance(performative, RECEIVES[self.state]):
                self._on_performative(performative)
            else:
                self._on_misplaced(performative)
        if self.state is SaslState.ASKING and len(self._buffer) > HELD_LIMIT:
            raise SASL_PATIENCE.broken(
                f"{len(self._buffer)} octets sent before the outcome of the SASL exchange"
            )

    @staticmethod
    def _decode_body(frame_type: int, body: bytes) -> Any:
        """Decode the only performative of a SASL frame (5.3.1)."""
        if frame_type != SASL_FRAME:
            raise SASL_FRAME_RULE.broken(f"a frame of type {frame_type} in the SASL layer")
        if not body:
            raise SASL_FRAME_RULE.broken("an empty frame in the SASL layer")
        performative, end = SASL_PERFORMATIVES.decode(body)
        if end != len(body):
            raise SASL_FRAME_RULE.broken(
                f"{len(body) - end} octets follow {type(performative).__name__} in its frame"
            )
        return performative
