"""The handshake of a server: login by ``sasl``, and the virtual host (2.2.4).

AMQPLAIN, which only 0-9-1 has, is offered together with PLAIN. A listener without users accepts every client.
By default 0-9-1 clients log in as ``guest`` with the password ``guest``, so such a listener treats that login
as ANONYMOUS.
"""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp091.engine.events import ChallengeAnswered, OpenRequested, StartAnswered
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.fields import USUAL, Scan, read_table
from trio_amqp10.broker.server_login import ServerLogin, context_of
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
from trio_amqp10.sasl.tally import FAILURE_PENALTY

if TYPE_CHECKING:
    from trio_amqp10.amqp091 import spec
    from trio_amqp10.amqp091.engine.engine import Engine
    from trio_amqp10.net.dialect import AcceptedConnection
    from trio_amqp10.net.pump import Pump
    from trio_amqp10.sasl.mechanism import ServerStep

_log = logging.getLogger("trio_amqp10.listen")

_JITTER: Final = 0.5
"""The largest random delay of a refusal in seconds; it hides how long checks take."""

_GUEST: Final = "guest"


class AmqPlainServer(ServerMechanism):
    """AMQPLAIN: user and password in a field table without its length.

    Args:
        plain: the mechanism that checks user and password.
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
        # Use ``start``, because it refuses a password on a transport that does not keep it secret.
        return self._plain.start(f"\0{user}\0{password}".encode())

    def answer(self, value: object) -> ServerStep:
        return self._plain.answer(value)


def mechanisms_for(accepted: AcceptedConnection) -> list[ServerMechanism]:
    """Return the mechanisms to offer, best first; AMQPLAIN follows PLAIN.

    A listener that accepts every client offers PLAIN and AMQPLAIN for ``guest`` only, beside ANONYMOUS.
    """
    server: Server = accepted.sasl or Server()
    offered = server.offer(accepted.private, accepted.allow_plaintext_password, context_of(accepted))
    if not server.requires_sasl:
        offered = [PlainServer({_GUEST: _GUEST}, permitted=True), *offered]
    for place, mechanism in enumerate(offered):
        if isinstance(mechanism, PlainServer):
            return [*offered[: place + 1], AmqPlainServer(mechanism), *offered[place + 1 :]]
    return offered


class Login(ServerLogin):
    """One handshake, from connection.start-ok to connection.open.

    Args:
        engine: the engine of the connection.
        pump: the pump of the engine.
        accepted: information about the connection.

    Attributes:
        identity: the identity of the peer after its login.
        expires: the expiry of its token in seconds since 1970; None if it does not expire.
        virtual_host: the requested virtual host, after connection.open.
        insists: whether the peer asks not to be redirected.
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
        """Return the virtual host that the peer asks for; None if the login fails.

        ``events`` are those of the engine.

        Cancelled: the connection cannot be used any more.
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
        # An empty response means no response, except for mechanisms whose response may be empty.
        first = answer.response or (b"" if mechanism.name in ("EXTERNAL", "ANONYMOUS") else None)
        return await self._take(await self.outcome(exchange, exchange.start, first))

    async def _take(self, step: Challenge | Verified | Refused) -> bool:
        """Continue after a step of the mechanism; return False if the login is refused."""
        mechanism = self._mechanism
        assert mechanism is not None
        now = trio.current_time()
        if isinstance(step, Challenge):
            self._pump.feed(self._engine.challenge, step.data, now)
            return True
        if not isinstance(step, Verified):
            return await self._refuse(mechanism.name)
        if step.data is not None:
            # AMQP has no outcome with data, so SCRAM's last message is another challenge with an empty answer.
            self.exchange: ServerExchange | None = _Done(step.name)
            self._pump.feed(self._engine.challenge, step.data, now)
            return True
        proves = not isinstance(mechanism, PlainServer | AmqPlainServer) or self._accepted_users
        self.identity: Identity | None = Identity(step.name, mechanism.name if proves else "ANONYMOUS")
        self.expires = step.expires
        self._pump.feed(self._engine.accept_login, step.name, now)
        return True

    async def renew(self, secret: bytes) -> bool:
        """Whether a new secret is accepted: a valid token of the same user.

        Other mechanisms have no secret that expires, so nothing is checked.

        Cancelled: nothing has changed.
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
        """Whether the listener checks passwords."""
        server: Server | None = self.accepted.sasl
        return server is not None and server.requires_sasl

    async def _refuse(self, mechanism: str) -> bool:
        """Refuse the login in the same way, and after the same time, for every cause."""
        self.count_failure()
        await trio.sleep(FAILURE_PENALTY + random.random() * _JITTER)
        self._engine.refuse_login(f"Login was refused using authentication mechanism {mechanism[:20]}")
        return False


class _Done(ServerExchange):
    """A successful login whose last challenge the client must still answer."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def claimed_name(self) -> str | None:
        return self._name

    def response(self, data: bytes) -> ServerStep:
        return Verified(self._name) if not data else Refused()
