"""The handshake of a server: login by the mechanisms of ``sasl``, and the virtual host (0-9-1, 2.2.4).

AMQPLAIN, which only 0-9-1 has, is offered beside PLAIN. A listener without users lets everybody in: as every client of
0-9-1 logs in as ``guest`` with the password ``guest`` unless told otherwise, these count as ANONYMOUS there.

Knows mechanisms and the engine; knows no container.
"""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp091.events import ChallengeAnswered, OpenRequested, StartAnswered
from trio_amqp10.amqp091.faults import ReplyError
from trio_amqp10.amqp091.fields import USUAL, Scan, read_table
from trio_amqp10.container.protocols.server_login import ServerLogin, context_of
from trio_amqp10.sasl.config import Server
from trio_amqp10.sasl.mechanism import (
    Challenge,
    Identity,
    Refused,
    ServerContext,
    ServerExchange,
    ServerMechanism,
    Verified,
)
from trio_amqp10.sasl.plain import PlainServer
from trio_amqp10.sasl.server import FAILURE_PENALTY

if TYPE_CHECKING:
    from trio_amqp10.amqp091 import spec
    from trio_amqp10.amqp091.engine import Engine
    from trio_amqp10.net.dialect import AcceptedConnection
    from trio_amqp10.net.pump import Pump
    from trio_amqp10.sasl.mechanism import ServerStep

__all__ = ["AmqPlainServer", "Login", "mechanisms_for"]

_log = logging.getLogger("trio_amqp10.listen")

_JITTER: Final = 0.5
"""Seconds at most, by which refusals are spread: how long one takes tells a guesser nothing."""

_GUEST: Final = "guest"


class AmqPlainServer(ServerMechanism):
    """AMQPLAIN: user and password in a field table without its length.

    Args:
        plain: checks them.
    """

    __slots__ = ("_plain",)

    name = "AMQPLAIN"
    needs_secrecy = True

    def __init__(self, plain: ServerMechanism) -> None:
        self._plain: Final = plain

    def begin(self, context: ServerContext) -> ServerExchange:
        return _AmqPlainExchange(self._plain.begin(context))


class _AmqPlainExchange(ServerExchange):
    __slots__ = ("_plain",)

    def __init__(self, plain: ServerExchange) -> None:
        self._plain = plain

    @property
    def claimed_name(self) -> str | None:
        return self._plain.claimed_name

    def response(self, data: bytes) -> ServerStep:
        try:
            table, _ = read_table(len(data).to_bytes(4, "big") + data, 0, len(data) + 4, Scan(USUAL))
        except ReplyError:
            return Refused()
        user, password = table.get("LOGIN"), table.get("PASSWORD")
        if not isinstance(user, str) or not isinstance(password, str):
            return Refused()
        # By way of ``start``: it refuses where the transport does not keep a password secret.
        return self._plain.start(f"\0{user}\0{password}".encode())

    def answer(self, value: object) -> ServerStep:
        return self._plain.answer(value)


def mechanisms_for(accepted: AcceptedConnection) -> list[ServerMechanism]:
    """What is offered, best first; PLAIN, then AMQPLAIN, for ``guest`` alone where everybody is let in."""
    server: Server = accepted.sasl or Server()
    offered = server.offer(accepted.private, accepted.allow_plaintext_password, context_of(accepted))
    if not server.requires_sasl:
        offered = [PlainServer({_GUEST: _GUEST}, permitted=True), *offered]
    for place, mechanism in enumerate(offered):
        if isinstance(mechanism, PlainServer):
            return [*offered[: place + 1], AmqPlainServer(mechanism), *offered[place + 1 :]]
    return offered


class Login(ServerLogin):
    """One handshake, from the answer to connection.start to the wish for a virtual host.

    Args:
        engine: of the connection.
        pump: that drives it.
        accepted: what is known of the peer.

    Attributes:
        identity: who the peer proved to be, once it logged in.
        expires: when the token ends that proved it, in seconds since 1970; None if it does not end.
        virtual_host: that the peer asks for, once it did.
        insists: whether it asks not to be redirected.
    """

    __slots__ = ("_engine", "_mechanism", "_pump", "expires", "insists", "virtual_host")

    def __init__(
        self,
        engine: Engine,
        pump: Pump,
        accepted: AcceptedConnection,
    ) -> None:
        super().__init__(accepted)
        self.expires: float | None = None
        self.virtual_host: str = ""
        self.insists: bool = False
        self._engine = engine
        self._pump = pump
        self._mechanism: ServerMechanism | None = None

    async def run(self, events: trio.MemoryReceiveChannel[Any]) -> str | None:
        """The virtual host that the peer asks for; None if it came no further. ``events`` are what the engine reports.

        Cancelled: the connection is of no use.
        """
        async for event in events:
            if isinstance(event, StartAnswered):
                if not await self._begin(event.answer):
                    return None
            elif isinstance(event, ChallengeAnswered):
                exchange = self.exchange
                assert exchange is not None
                if not await self._take(await self.outcome(exchange, exchange.response, event.response)):
                    return None
            elif isinstance(event, OpenRequested):
                self.virtual_host, self.insists = event.virtual_host, event.insist
                return self.virtual_host
        return None

    async def _begin(self, answer: spec.ConnectionStartOk) -> bool:
        offered = {each.name: each for each in mechanisms_for(self.accepted)}
        mechanism = offered.get(answer.mechanism)
        if mechanism is None or not self.accepted.failures.permits(None):
            return await self._refuse(answer.mechanism)
        self._mechanism = mechanism
        exchange = self.begin(mechanism)
        # An empty response is none for a mechanism in which the server speaks first.
        first = answer.response or (b"" if mechanism.name in ("EXTERNAL", "ANONYMOUS") else None)
        return await self._take(await self.outcome(exchange, exchange.start, first))

    async def _take(self, step: Challenge | Verified | Refused) -> bool:
        """Go on with a step of the mechanism; False if the peer may not come in."""
        mechanism = self._mechanism
        assert mechanism is not None
        now = trio.current_time()
        if isinstance(step, Challenge):
            self._pump.feed(self._engine.challenge, step.data, now)
            return True
        if not isinstance(step, Verified):
            return await self._refuse(mechanism.name)
        if step.data is not None:
            # There is no outcome that carries it: it is one more challenge, whose answer is empty (SCRAM).
            self.exchange: ServerExchange | None = _Done(step.name)
            self._pump.feed(self._engine.challenge, step.data, now)
            return True
        proves = not isinstance(mechanism, PlainServer | AmqPlainServer) or self._accepted_users
        self.identity: Identity | None = Identity(step.name, mechanism.name if proves else "ANONYMOUS")
        self.expires = step.expires
        self._pump.feed(self._engine.accept_login, step.name, now)
        return True

    async def renew(self, secret: bytes) -> bool:
        """Whether a secret that replaces that of the login is accepted: a token, if it lets in the same user.

        Any other login has no secret that ends: nothing is verified. Cancelled: nothing has changed.
        """
        exchange, identity = self.exchange, self.identity
        assert exchange is not None
        assert identity is not None
        step = self.attempt(exchange.renewed, secret)
        if step is None:
            return True
        step = await self.answered(exchange, step)
        if not isinstance(step, Verified) or step.name != identity.name:
            _log.info("%s: the new token of %r is not accepted", self.accepted.name, identity.name)
            return False
        self.expires = step.expires
        return True

    @property
    def _accepted_users(self) -> bool:
        """Whether a password proves anything here."""
        server: Server | None = self.accepted.sasl
        return server is not None and server.requires_sasl

    async def _refuse(self, mechanism: str) -> bool:
        """The same for every cause, after the same time."""
        self.count_failure()
        await trio.sleep(FAILURE_PENALTY + random.random() * _JITTER)
        self._engine.refuse_login(f"Login was refused using authentication mechanism {mechanism[:20]}")
        return False


class _Done(ServerExchange):
    """A login that has succeeded, and whose last word the client has to answer."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def claimed_name(self) -> str | None:
        return self._name

    def response(self, data: bytes) -> ServerStep:
        return Verified(self._name) if not data else Refused()
