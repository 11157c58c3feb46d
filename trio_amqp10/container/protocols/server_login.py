"""The part of a login that is the same in each dialect: the steps of a mechanism of ``sasl``.

Knows mechanisms and who failed before; knows no octet of any dialect, and no container.
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

__all__ = ["ServerLogin", "context_of"]

_log = logging.getLogger("trio_amqp10.listen")

_MOST_CHALLENGES: Final = 16
"""Of one login."""

OctetsT = TypeVar("OctetsT")
StepT = TypeVar("StepT")


def context_of(accepted: AcceptedConnection) -> ServerContext:
    """What mechanisms may know of a connection."""
    transport = accepted.transport
    return ServerContext(
        channel_bindings=transport.channel_bindings, peer_certificate=transport.peer_certificate
    )


class ServerLogin:
    """One login. A dialect subclasses it, and reads and writes what goes over the wire.

    Args:
        accepted: what is known of the peer.

    Attributes:
        identity: who the peer proved to be, once it logged in.
    """

    __slots__ = ("_challenges", "accepted", "exchange", "identity")

    def __init__(self, accepted: AcceptedConnection) -> None:
        self.identity: Identity | None = None
        self.accepted: AcceptedConnection = accepted
        self.exchange: ServerExchange | None = None
        self._challenges = 0

    def begin(self, mechanism: ServerMechanism) -> ServerExchange:
        """The peer has chosen a mechanism."""
        self.exchange = mechanism.begin(context_of(self.accepted))
        return self.exchange

    async def outcome(
        self, exchange: ServerExchange, step: Callable[[OctetsT], ServerStep], octets: OctetsT
    ) -> Challenge | Verified | Refused:
        """What follows from octets of the peer, once the application has answered what it is asked.

        Refused too: too many challenges, and a peer that has to wait because it, or its user's name, failed too often.
        Cancelled: the login is of no use.

        Args:
            exchange: the login's.
            step: of the exchange.
            octets: what it is called with.
        """
        found = await self.answered(exchange, self.attempt(step, octets))
        if isinstance(found, Challenge):
            self._challenges += 1
            return found if self._challenges <= _MOST_CHALLENGES else Refused()
        if isinstance(found, Verified) and self.accepted.failures.permits(exchange.claimed_name):
            return found
        return Refused()

    def attempt(self, step: Callable[[OctetsT], StepT], value: OctetsT) -> StepT | Refused:
        """Call a step of a mechanism; one that raises refuses."""
        try:
            return step(value)
        except Exception:
            # A mechanism may be a user's, and the octets are a stranger's.
            _log.debug("a login failed", exc_info=True)
            return Refused()

    async def answered(self, exchange: ServerExchange, step: ServerStep) -> ServerStep:
        """The step that follows, once the application has answered what it is asked."""
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
        """The peer is not let in: it counts against its host, and against the name that it claimed."""
        claimed = None if self.exchange is None else self.exchange.claimed_name
        if self.accepted.failures.permits(claimed):
            self.accepted.failures.failed(claimed)
