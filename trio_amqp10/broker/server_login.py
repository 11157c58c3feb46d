"""The part of a login that is the same in each dialect: the steps of a mechanism.

Knows mechanisms of ``sasl`` and earlier failures; knows no octet of any dialect, and no container.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from trio_amqp10.sasl.mechanism import (
    Challenge,
    Identity,
    Question,
    Refused,
    ServerContext,
    ServerExchange,
    ServerMechanism,
    Verified,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.net.dialect import AcceptedConnection
    from trio_amqp10.sasl.mechanism import ServerStep

_log = logging.getLogger("trio_amqp10.listen")

_MOST_CHALLENGES: Final = 16
"""Challenges in one login."""

OctetsT = TypeVar("OctetsT")
StepT = TypeVar("StepT")


def context_of(accepted: AcceptedConnection) -> ServerContext:
    """Return the properties of a connection that mechanisms may use."""
    transport = accepted.transport
    return ServerContext(
        channel_bindings=transport.channel_bindings, peer_certificate=transport.peer_certificate
    )


class ServerLogin:
    """One login. A dialect subclasses it, and reads and writes the frames.

    Args:
        accepted: the connection of the peer.

    Attributes:
        identity: the authenticated identity of the peer, once it has logged in.
    """

    __slots__ = ("_challenges", "accepted", "exchange", "identity")

    def __init__(self, accepted: AcceptedConnection) -> None:
        self.identity: Identity | None = None
        self.accepted: AcceptedConnection = accepted
        self.exchange: ServerExchange | None = None
        self._challenges = 0

    def begin(self, mechanism: ServerMechanism) -> ServerExchange:
        """Begin the mechanism that the peer has chosen."""
        self.exchange = mechanism.begin(context_of(self.accepted))
        return self.exchange

    async def outcome(
        self, exchange: ServerExchange, step: Callable[[OctetsT], ServerStep], octets: OctetsT
    ) -> Challenge | Verified | Refused:
        """Return the result of a step, once the application has answered its questions.

        ``Refused`` also for too many challenges, and for a peer that must wait because it, or its user's name, failed too often.
        Cancelled: the login cannot continue.

        Args:
            exchange: the exchange of the login.
            step: a method of the exchange.
            octets: its argument.
        """
        found = await self.answered(exchange, self.attempt(step, octets))
        if isinstance(found, Challenge):
            self._challenges += 1
            return found if self._challenges <= _MOST_CHALLENGES else Refused()
        if isinstance(found, Verified) and self.accepted.failures.permits(exchange.claimed_name):
            return found
        return Refused()

    def attempt(self, step: Callable[[OctetsT], StepT], value: OctetsT) -> StepT | Refused:
        """Call a step of a mechanism; if it raises, return ``Refused``."""
        try:
            return step(value)
        except Exception:
            # The mechanism may be a user's, and the octets come from a peer that is not authenticated.
            _log.debug("a login failed", exc_info=True)
            return Refused()

    async def answered(self, exchange: ServerExchange, step: ServerStep) -> ServerStep:
        """Return the next step, once the application has answered its questions."""
        while isinstance(step, Question):
            try:
                work = step.work
                value = await (step.ask() if work is None else trio.to_thread.run_sync(work))
            except Exception:
                _log.exception("a login could not be checked")
                return Refused()
            step = self.attempt(exchange.answer, value)
        return step

    def count_failure(self) -> None:
        """Count a failed login against the peer's host and the name that it claimed."""
        claimed = None if self.exchange is None else self.exchange.claimed_name
        if self.accepted.failures.permits(claimed):
            self.accepted.failures.failed(claimed)
