"""The server's side of the SASL layer: offer, challenge, outcome (5.3.2).

Every fault in a client's credentials ends in the same outcome, ``auth``: a mechanism that was not offered, a
performative out of order, a malformed response, an unknown user, a wrong password. While a tally permits no
attempt, right and wrong credentials both end in ``sys-temp``. Only an input that no client of the SASL layer
would send is irrecoverable, see ``sasl_layer``.

Against guessing there is one attempt per connection, and a delay. The layer knows no time: it has the outcome
ready at once, and ``penalty`` is the number of seconds to hold it back. A caller with a clock waits as long
(with jitter, by a timer: no task needs to wait), then takes ``data_to_send`` and closes. Octets that arrive
meanwhile are dropped.

Knows no mechanism and no user.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp10.spec.security import (
    SaslChallenge,
    SaslCode,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from trio_amqp10.amqp10.wire import codes
from trio_amqp10.amqp10.wire.composite import plan_of
from trio_amqp10.amqp10.wire.encode import encode_into, write_compound
from trio_amqp10.amqp10.wire.values import Array, Symbol
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.sasl.mechanism import (
    NOTHING_KNOWN,
    Challenge,
    Identity,
    Question,
    ServerContext,
    ServerStep,
    Verified,
    check_name,
)
from trio_amqp10.sasl.tally import FAILURE_PENALTY

from .sasl_layer import DEFAULT_MAX_FRAME_SIZE, MAX_ROUNDS, SaslLayer, SaslState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trio_amqp10.core.tolerances import Tolerances
    from trio_amqp10.sasl.mechanism import ServerExchange, ServerMechanism
    from trio_amqp10.sasl.tally import Tally


class SaslServer(SaslLayer):
    """Authenticate a client after both ends have sent the SASL protocol header.

    The list of mechanisms is ready to be sent at once.

    Args:
        mechanisms: the mechanisms to offer, best first (5.3.3.1).
        context: facts about the connection below; the same that ``Server.offer`` was given.
        max_frame_size: octets of a frame, in either direction; the standard allows 512.
        max_rounds: the number of challenges that a mechanism may send.
        tally: counts failures, and may refuse further attempts for a while; None for no tally.

    Attributes:
        mechanism: the name of the mechanism that the client chose, if it was offered; or None.
        hostname: the host that the client asked for, for servers that serve several (5.3.3.2); or None.
        identity: the client's identity, once ``done``; otherwise None.
        error: the exception of a mechanism that made the attempt fail: log it, but never send it.

    Raises:
        LocalProtocolError: there is no mechanism to offer (5.3.3.1), or a name is illegal.
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
        tolerances: Tolerances | None = None,
    ) -> None:
        super().__init__(SaslState.EXPECT_INIT, max_frame_size, tolerances)
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
        """Seconds to wait before ``data_to_send``: 0.0 unless the attempt failed."""
        return self._penalty

    def abandon(self, error: Exception | None = None) -> None:
        """Fail the open question, e.g. because the user's coroutine raised ``error``.

        The outcome is ``sys``: the system is at fault, not the client's credentials (5.3.3.6).

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
            self._fail(SaslCode.AUTH)  # a performative of a client, but out of order
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
            self._fail(SaslCode.AUTH)  # the client chose a mechanism that was not offered (5.3.3.2)
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
            # The mechanism may be a user's code, and the octets come from an unknown peer. So any exception
            # only fails this authentication, and does not stop the listener.
            self.error = error
            self._fail(SaslCode.AUTH)

    def _take(self, step: ServerStep) -> None:
        """Process a step of the mechanism: ask, challenge, or send the outcome."""
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
        """End with this outcome, or with ``sys-temp`` if the tally refuses (5.3.3.6)."""
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
    """Return sasl-mechanisms with an array, even for a single name.

    A single symbol means the same (1.4), but some clients accept only an array.
    """
    body = bytearray()
    encode_into(body, Array([Symbol(name) for name in names]))
    out = bytearray(plan_of(SaslMechanisms).prefix)
    write_compound(out, codes.LIST8, codes.LIST32, 1, body)
    return bytes(out)
