"""The server's side of the SASL layer: offer, challenge, outcome (5.3.2).

Whatever is wrong with a client's credentials ends in the same outcome, ``auth``: a name that was
not offered, a message out of its order, a malformed one, an unknown user, a wrong password. While
a tally permits no attempt, right and wrong ones end in ``sys-temp`` alike. Only
what no client of the SASL layer would send is irrecoverable, see ``layer``.

Against guessing there is one attempt a connection, and a delay. The layer knows no time: it has
the outcome ready at once, and ``penalty`` says how many seconds to keep it back. Those who own a
clock wait so long (with jitter, by a timer: no task need be held), then take ``data_to_send``
and close. Octets that arrive meanwhile are dropped.

Knows no mechanism and no user.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spec.security import (
    SaslChallenge,
    SaslCode,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from trio_amqp10.wire import codes
from trio_amqp10.wire.composite import plan_of
from trio_amqp10.wire.encode import encode_into, write_compound
from trio_amqp10.wire.values import Array, Symbol

from .layer import DEFAULT_MAX_FRAME_SIZE, MAX_ROUNDS, SaslLayer, SaslState
from .mechanism import (
    NOTHING_KNOWN,
    Challenge,
    Identity,
    Question,
    ServerContext,
    ServerStep,
    Verified,
    check_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .mechanism import ServerExchange, ServerMechanism

__all__ = ["FAILURE_PENALTY", "SaslServer", "Tally"]

FAILURE_PENALTY: Final = 1.0
"""Seconds between a failed attempt and its outcome: slow for who guesses, bearable for who mistyped."""


class Tally(Protocol):
    """Who counts attempts across connections, e.g. those of one host; it has a clock, and the layer has none."""

    def permits(self, username: str | None) -> bool:
        """Whether credentials of this user count; of any user, for None. False has right and wrong ones end in
        ``sys-temp`` alike, so that attempts that go on side by side tell no more than those one after the other."""
        ...

    def failed(self, username: str | None) -> None:
        """Each outcome of ``auth`` is reported: whom the client claimed to be, if it came so far."""
        ...


class SaslServer(SaslLayer):
    """Authenticate a client, with which the SASL protocol header was just exchanged.

    The list of mechanisms is there to be sent at once.

    Args:
        mechanisms: what is offered, best first (5.3.3.1).
        context: what is known of the connection below; the same that ``Server.offer`` was given.
        max_frame_size: octets of a frame, in either direction; 512 is strictly the standard.
        max_rounds: challenges that a mechanism may send.
        tally: is told of failures, and may refuse further attempts for a while; None: nobody is.

    Attributes:
        mechanism: the name that the client chose, once it did, if it was offered.
        hostname: whom it asked for, for servers that serve several (5.3.3.2); or None.
        identity: who the client is, once ``done``; None before and otherwise.
        error: what a mechanism raised, if that is why the attempt failed: to be logged, never sent.

    Raises:
        LocalProtocolError: nothing to offer (5.3.3.1), or a name that no mechanism can have.
    """

    __slots__ = (
        "_context",
        "_exchange",
        "_max_rounds",
        "_mechanisms",
        "_penalty",
        "_rounds",
        "_tally",
        "error",
        "hostname",
        "identity",
        "mechanism",
    )

    def __init__(
        self,
        mechanisms: Sequence[ServerMechanism],
        *,
        context: ServerContext = NOTHING_KNOWN,
        max_frame_size: int = DEFAULT_MAX_FRAME_SIZE,
        max_rounds: int = MAX_ROUNDS,
        tally: Tally | None = None,
    ) -> None:
        super().__init__(SaslState.EXPECT_INIT, max_frame_size)
        if not mechanisms:
            raise LocalProtocolError("a SASL server needs at least one mechanism to offer (5.3.3.1)")
        self.mechanism: str | None = None
        self.hostname: str | None = None
        self.identity: Identity | None = None
        self.error: Exception | None = None
        self._mechanisms = {check_name(mechanism.name): mechanism for mechanism in mechanisms}
        self._context = replace(context, offered=tuple(self._mechanisms))
        self._max_rounds = max_rounds
        self._tally = tally
        self._rounds = 0
        self._penalty = 0.0
        self._exchange: ServerExchange | None = None
        self._send_body(_encode_mechanisms(list(self._mechanisms)))

    @property
    def penalty(self) -> float:
        """Seconds to wait before ``data_to_send`` is taken: 0.0 unless the attempt failed."""
        return self._penalty

    def abandon(self, error: Exception | None = None) -> None:
        """Give up on the open question, e.g. because the user's coroutine raised ``error``.

        The client hears ``sys``: the system is at fault, not its credentials (5.3.3.6).

        Raises:
            LocalProtocolError: no question is open.
        """
        if self.question is None:
            raise LocalProtocolError("no question of the SASL layer is open")
        self.error = error
        self._fail(SaslCode.SYS)

    def _on_performative(self, performative: Any) -> None:
        if isinstance(performative, SaslInit):
            self._begin(performative)
        else:
            self._step(lambda: self._running().response(performative.response))

    def _on_misplaced(self, performative: Any) -> None:
        if isinstance(performative, (SaslInit, SaslResponse)):
            self._fail(SaslCode.AUTH)  # a client, though a confused one
        else:
            super()._on_misplaced(performative)

    def _on_answer(self, value: object) -> None:
        self._step(lambda: self._running().answer(value))

    def _forget(self) -> None:
        self._exchange = None
        self._mechanisms = {}

    def _begin(self, init: SaslInit) -> None:
        self.hostname = init.hostname
        if not self._permits(None):
            self._fail(SaslCode.SYS_TEMP)
            return
        mechanism = self._mechanisms.get(init.mechanism)
        if mechanism is None:
            self._fail(SaslCode.AUTH)  # (5.3.3.2)
            return
        self.mechanism = mechanism.name

        def start() -> ServerStep:
            self._exchange = mechanism.begin(self._context)
            return self._exchange.start(init.initial_response)

        self._step(start)

    def _step(self, run: Callable[[], ServerStep]) -> None:
        try:
            self._take(run())
        except Exception as error:
            # A mechanism may be a user's, and the octets are a stranger's: what it trips over is
            # one more way of not being authenticated, not a way to bring a listener down.
            self.error = error
            self._fail(SaslCode.AUTH)

    def _take(self, step: ServerStep) -> None:
        if isinstance(step, Question):
            self._ask(step)
        elif isinstance(step, Challenge) and self._rounds < self._max_rounds:
            self._rounds += 1
            self._send(SaslChallenge(challenge=step.data))
            self._enter(SaslState.EXPECT_RESPONSE)
        elif isinstance(step, Verified) and not self._permits(self._claimed_name):
            self._fail(SaslCode.SYS_TEMP)
        elif isinstance(step, Verified):
            assert self.mechanism is not None
            self._send(SaslOutcome(code=SaslCode.OK, additional_data=step.data))
            self.identity = Identity(step.name, self.mechanism, step.expires)
            self._enter(SaslState.DONE)
        else:
            self._fail(SaslCode.AUTH)

    @property
    def _claimed_name(self) -> str | None:
        return None if self._exchange is None else self._exchange.claimed_name

    def _permits(self, username: str | None) -> bool:
        return self._tally is None or self._tally.permits(username)

    def _fail(self, code: SaslCode) -> None:
        """End with this outcome; with ``sys-temp`` where wrong credentials do not count either (5.3.3.6)."""
        if code is SaslCode.AUTH and self._tally is not None:
            if self._tally.permits(self._claimed_name):
                self._tally.failed(self._claimed_name)
            else:
                code = SaslCode.SYS_TEMP
        self._send(SaslOutcome(code=code))
        self._penalty = FAILURE_PENALTY
        self._enter(SaslState.FAILED)

    def _running(self) -> ServerExchange:
        assert self._exchange is not None
        return self._exchange


def _encode_mechanisms(names: Sequence[str]) -> bytes:
    """sasl-mechanisms with an array, also for a single name.

    A single symbol would be as good by 1.4, but clients exist that look for an array and nothing else.
    """
    body = bytearray()
    encode_into(body, Array([Symbol(name) for name in names]))
    out = bytearray(plan_of(SaslMechanisms).prefix)
    write_compound(out, codes.LIST8, codes.LIST32, 1, body)
    return bytes(out)
