"""The client's side of the SASL layer: mechanism, responses, outcome (5.3.2).

The choice is the client's alone: the first of its own list that the server offers and that this
connection has what it needs for. The server's order means nothing, or anyone on the way could
steer us to the weakest.

Knows no mechanism; see ``layer`` for what is common to both sides.
"""

from __future__ import annotations

from dataclasses import replace
from os import urandom
from typing import TYPE_CHECKING, Any

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.protocol_rules import SASL_ROUNDS
from trio_amqp10.spec.security import (
    SaslChallenge,
    SaslCode,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)

from .errors import AuthenticationError, NoAcceptableMechanismError, PlaintextPasswordError
from .layer import DEFAULT_MAX_FRAME_SIZE, MAX_ROUNDS, SaslLayer, SaslState
from .mechanism import (
    NO_BINDINGS,
    ClientContext,
    ClientExchange,
    ClientMechanism,
    ClientStep,
    Question,
    check_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["SaslClient", "check_allowed"]


def check_allowed(
    mechanisms: Sequence[ClientMechanism], *, secure: bool, allow_plaintext_password: bool = False
) -> tuple[ClientMechanism, ...]:
    """Those of ``mechanisms`` that may be used on a transport, in the same order.

    Args:
        mechanisms: what the user would use.
        secure: whether nobody can read along: TLS, or a peer that is loopback, a Unix socket or memory.
        allow_plaintext_password: whether the user allowed by name what needs secrecy, e.g. PLAIN.

    Raises:
        PlaintextPasswordError: nothing is left, because all need a secrecy that is not there.
    """
    if secure or allow_plaintext_password:
        return tuple(mechanisms)
    allowed = tuple(mechanism for mechanism in mechanisms if not mechanism.needs_secrecy)
    if mechanisms and not allowed:
        names = ", ".join(mechanism.name for mechanism in mechanisms)
        raise PlaintextPasswordError(
            f"{names} would send the password in the clear, or a token: use TLS, or allow_plaintext_password=True"
        )
    return allowed


class SaslClient(SaslLayer):
    """Authenticate to a server, which has just agreed to the SASL protocol header.

    Args:
        mechanisms: what may be used, best first. What needs secrecy was sorted out before, by
            ``check_allowed``.
        hostname: the host that we mean to reach, for servers that serve several (5.3.3.2).
        channel_bindings: what ties an exchange to the TLS connection below, by type (RFC 5056).
        entropy: gives so many octets that nobody can guess.
        max_frame_size: octets of a frame, in either direction; 512 is strictly the standard.
        max_rounds: challenges that we answer.

    Attributes:
        mechanism: the name of the chosen mechanism, once there is one.
    """

    __slots__ = ("_context", "_exchange", "_max_rounds", "_mechanisms", "_rounds", "mechanism")

    def __init__(
        self,
        mechanisms: Sequence[ClientMechanism],
        *,
        hostname: str | None = None,
        channel_bindings: Mapping[str, bytes] = NO_BINDINGS,
        entropy: Callable[[int], bytes] = urandom,
        max_frame_size: int = DEFAULT_MAX_FRAME_SIZE,
        max_rounds: int = MAX_ROUNDS,
    ) -> None:
        super().__init__(SaslState.EXPECT_MECHANISMS, max_frame_size)
        if not mechanisms:
            raise LocalProtocolError("a SASL client needs at least one mechanism")
        for mechanism in mechanisms:
            check_name(mechanism.name)
        self.mechanism: str | None = None
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
        context = replace(self._context, offered=tuple(offered))
        usable = [mechanism for mechanism in self._mechanisms if mechanism.usable(context)]
        chosen = next((mechanism for mechanism in usable if mechanism.name in offered), None)
        if chosen is None:
            raise NoAcceptableMechanismError(offered, [mechanism.name for mechanism in usable])
        self.mechanism = chosen.name
        self._exchange = chosen.begin(context)
        self._take(self._exchange.start())

    def _challenged(self, data: bytes) -> None:
        self._rounds += 1
        if self._rounds > self._max_rounds:
            raise SASL_ROUNDS.broken(f"more than {self._max_rounds} SASL challenges")
        self._take(self._running().challenge(data))

    def _take(self, step: ClientStep) -> None:
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
        assert self.mechanism is not None
        if outcome.code is not SaslCode.OK:
            raise AuthenticationError(outcome.code, self.mechanism, self._running().explain())
        doubt = self._running().finish(outcome.additional_data)
        if doubt is not None:
            raise AuthenticationError(SaslCode.OK, self.mechanism, doubt)
        self._enter(SaslState.DONE)

    def _running(self) -> ClientExchange:
        assert self._exchange is not None
        return self._exchange
