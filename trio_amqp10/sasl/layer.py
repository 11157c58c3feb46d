"""What both sides of the SASL layer share: states and frames (5.3.1, 5.3.2).

The layer decides by its own state which performative may come, never by an octet of the peer:
the five SASL performatives and nothing else, in frames of the SASL type and nothing else. What
the standard calls an irrecoverable error raises ``RemoteProtocolError``; the transport must
then be aborted, without another frame.

Three inputs (``receive_data``, ``answer``, and the configuration), and one output
(``data_to_send``). Knows neither mechanisms nor who is client; no clock: a delay that protects
against guessing is a number (``SaslServer.penalty``) for those who have one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.frames import MIN_MAX_FRAME_SIZE, SASL_FRAME, encode_frame, parse_frame
from trio_amqp10.protocol_rules import SASL_FRAME as SASL_FRAME_RULE
from trio_amqp10.protocol_rules import SASL_FRAME_SIZE, SASL_ORDER, SASL_PATIENCE
from trio_amqp10.spec import SASL_PERFORMATIVES
from trio_amqp10.spec.security import SaslChallenge, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse
from trio_amqp10.wire.encode import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.protocol_rules import Strict

    from .mechanism import Question

__all__ = [
    "DEFAULT_MAX_FRAME_SIZE",
    "HELD_LIMIT",
    "MAX_ROUNDS",
    "MOVES",
    "RECEIVES",
    "SaslLayer",
    "SaslState",
    "sasl_frame_size",
]

DEFAULT_MAX_FRAME_SIZE: Final = 8192
"""The standard says 512 (5.3.1), but real tokens do not fit: see ``Strict.sasl_frame_size``."""

HELD_LIMIT: Final = 32_768
"""Octets kept unread while the application is asked: nobody is authenticated yet."""

MAX_ROUNDS: Final = 8
"""Challenges of one exchange, after which it leads nowhere."""


def sasl_frame_size(strict: Strict) -> int:
    """The largest frame of this layer, each way."""
    return MIN_MAX_FRAME_SIZE if strict.sasl_frame_size else DEFAULT_MAX_FRAME_SIZE


class SaslState(Enum):
    """Where an exchange stands; a state of one side, named after what it waits for (5.3.2)."""

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
"""Which performative may come in which state; states that are not here read nothing (5.3.2)."""

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
"""Which state may follow which. Nothing leads out of DONE and FAILED: one attempt a connection."""


class SaslLayer(ABC):
    """Frames in any chunking, one outcome, and what came after it untouched.

    Attributes:
        state: where the exchange stands.
        question: what the application is asked, while ``state`` is ASKING; else None.
    """

    __slots__ = ("_buffer", "_max_frame_size", "_out", "question", "state")

    def __init__(self, state: SaslState, max_frame_size: int) -> None:
        self.state: SaslState = state
        self.question: Question | None = None
        self._max_frame_size = max_frame_size
        self._buffer = b""
        self._out: list[bytes] = []

    @property
    def done(self) -> bool:
        """Whether the outcome is ok: the connection is authenticated, and the AMQP layer begins."""
        return self.state is SaslState.DONE

    @property
    def failed(self) -> bool:
        """Whether the exchange ended otherwise; a server may still have an outcome to send."""
        return self.state is SaslState.FAILED

    def receive_data(self, data: bytes) -> None:
        """Take octets of the transport, in any chunking. Nothing after the outcome is read.

        Raises:
            RemoteProtocolError: not a SASL frame that may come now: abort the transport (5.3.1).
            SecurityError: a client's exchange came to nothing.
        """
        if self.failed:
            return  # the peer is being told, or was; it may not know yet
        self._buffer += data
        self._guard(self._read)

    def answer(self, value: object) -> None:
        """Hand over what the coroutine of ``question`` returned, and read on.

        Raises:
            LocalProtocolError: no question is open.
            RemoteProtocolError, SecurityError: as ``receive_data``, which this goes on with.
        """
        if self.question is None:
            raise LocalProtocolError("no question of the SASL layer is open")
        self.question = None
        self._guard(lambda: self._answered(value))

    def take_rest(self) -> bytes:
        """What came after the outcome: octets of the AMQP layer, once.

        Raises:
            LocalProtocolError: the exchange is not done; what is kept is not yet anyone's.
        """
        if not self.done:
            raise LocalProtocolError("octets after the SASL outcome, before there is one")
        rest, self._buffer = self._buffer, b""
        return rest

    def data_to_send(self) -> bytes:
        """Everything that is to be sent now, once."""
        out = b"".join(self._out)
        self._out.clear()
        return out

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.state.name}>"

    # -- for the two sides

    @abstractmethod
    def _on_performative(self, performative: Any) -> None:
        """Act on a performative that RECEIVES lets through."""

    @abstractmethod
    def _on_answer(self, value: object) -> None:
        """Act on what the application answered."""

    def _on_misplaced(self, performative: Any) -> None:
        """Act on a SASL performative that may not come now: by default it is irrecoverable."""
        raise SASL_ORDER.broken(f"{type(performative).__name__} while the {self.state.value}")

    @abstractmethod
    def _forget(self) -> None:
        """Drop what may hold secrets: the exchange is over, one way or the other."""

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
        """Run; what is raised ends the exchange, and nothing more is sent (5.3.1)."""
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
            frame_type, _, start, end = frame  # the channel's octets mean nothing here (5.3.1)
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
        """The one performative that a SASL frame carries, and nothing beside it (5.3.1)."""
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
