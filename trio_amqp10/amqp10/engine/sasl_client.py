"""The client's side of the SASL layer: mechanism, responses, outcome (5.3.2).

The client alone chooses: the first mechanism of its own list that the server offers and that is usable on
this connection. The server's order is ignored, because an attacker between the ends could otherwise steer the
client to the weakest mechanism.

Knows no mechanism; see ``sasl_layer`` for the common part of both sides.
"""

from __future__ import annotations

from dataclasses import replace
from os import urandom
from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp10.spec.security import (
    SaslChallenge,
    SaslCode,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.peer_rules import SASL_ROUNDS
from trio_amqp10.sasl.errors import AuthenticationError, NoAcceptableMechanismError
from trio_amqp10.sasl.mechanism import (
    NO_BINDINGS,
    ClientContext,
    ClientExchange,
    ClientMechanism,
    ClientStep,
    Question,
    check_name,
    user_of,
)

from .sasl_layer import DEFAULT_MAX_FRAME_SIZE, MAX_ROUNDS, SaslLayer, SaslState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trio_amqp10.core.tolerances import Tolerances


class SaslClient(SaslLayer):
    """Authenticate to a server that has agreed to the SASL protocol header.

    Args:
        mechanisms: the mechanisms that may be used, best first. ``defaults.check_allowed`` has removed
            mechanisms that need secrecy.
        hostname: the host that we want to reach, for servers that serve several (5.3.3.2).
        channel_bindings: data that binds an exchange to the TLS connection below, by type (RFC 5056).
        entropy: returns the given number of unpredictable octets.
        max_frame_size: octets of a frame, in either direction; the standard allows 512.
        max_rounds: the number of challenges that are answered.

    Attributes:
        mechanism: the name of the chosen mechanism, or None.
    """

    __slots__ = ("_context", "_exchange", "_max_rounds", "_mechanisms", "_rounds", "_user", "mechanism")

    def __init__(
        self,
        mechanisms: Sequence[ClientMechanism],
        *,
        hostname: str | None = None,
        channel_bindings: Mapping[str, bytes] = NO_BINDINGS,
        entropy: Callable[[int], bytes] = urandom,
        max_frame_size: int = DEFAULT_MAX_FRAME_SIZE,
        max_rounds: int = MAX_ROUNDS,
        tolerances: Tolerances | None = None,
    ) -> None:
        super().__init__(SaslState.EXPECT_MECHANISMS, max_frame_size, tolerances)
        if not mechanisms:
            raise LocalProtocolError("a SASL client needs at least one mechanism")
        for mechanism in mechanisms:
            check_name(mechanism.name)
        self.mechanism: str | None = None
        self._user: str | None = None
        self._mechanisms = tuple(mechanisms)
        self._context = ClientContext(hostname, (), channel_bindings, entropy)
        self._max_rounds = max_rounds
        self._rounds = 0
        self._exchange: ClientExchange | None = None

    def _on_performative(self, performative: Any) -> None:
        if isinstance(performative, SaslMechanisms):
            self._choose([str(name) for name in performative.sasl_server_mechanisms])
        elif isinstance(performative, SaslChallenge):
            self._challenged(performative.challenge)
        else:
            self._finish(performative)

    def _on_answer(self, value: object) -> None:
        self._take(self._running().answer(value))

    def _forget(self) -> None:
        self._exchange = None
        self._mechanisms = ()

    def _choose(self, offered: Sequence[str]) -> None:
        """Choose a mechanism from those that the server offers, and start it."""
        context = replace(self._context, offered=tuple(offered))
        usable = [mechanism for mechanism in self._mechanisms if mechanism.usable(context)]
        chosen = next((mechanism for mechanism in usable if mechanism.name in offered), None)
        if chosen is None:
            raise NoAcceptableMechanismError(offered, [mechanism.name for mechanism in usable])
        self.mechanism = chosen.name
        self._user = user_of(chosen)
        self._exchange = chosen.begin(context)
        self._take(self._exchange.start())

    def _challenged(self, data: bytes) -> None:
        self._rounds += 1
        if self._rounds > self._max_rounds:
            raise SASL_ROUNDS.broken(f"more than {self._max_rounds} SASL challenges")
        self._take(self._running().challenge(data))

    def _take(self, step: ClientStep) -> None:
        """Send the response of a step of the mechanism, or ask the application."""
        if isinstance(step, Question):
            self._ask(step)
            return
        if self._rounds == 0:
            assert self.mechanism is not None
            self._send(
                SaslInit(
                    mechanism=self.mechanism,
                    initial_response=step.data,
                    hostname=self._context.hostname,
                )
            )
        else:
            self._send(SaslResponse(response=step.data or b""))
        self._enter(SaslState.EXPECT_CHALLENGE)

    def _finish(self, outcome: SaslOutcome) -> None:
        """Process the outcome of the server (5.3.3.6)."""
        assert self.mechanism is not None
        if outcome.code is not SaslCode.OK:
            raise AuthenticationError(outcome.code, self.mechanism, self._running().explain(), self._user)
        # A mechanism may authenticate the server as well, by the data of the outcome.
        doubt = self._running().finish(outcome.additional_data)
        if doubt is not None:
            raise AuthenticationError(SaslCode.OK, self.mechanism, doubt, self._user)
        self._enter(SaslState.DONE)

    def _running(self) -> ClientExchange:
        assert self._exchange is not None
        return self._exchange
