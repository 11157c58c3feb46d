"""The login of a client by a SASL mechanism (RFC 006, 3.2.3, 3.2.4, 3.2.12).

NONE stands for ANONYMOUS. PLAIN has the fields LOGIN and PASSWORD. Any other mechanism has one field in each direction, CHALLENGE
and RESPONSE, as text. A refused client gets no reason: the engine pauses, and ends the transport. This module does not know
containers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp_fast.engine.events import Initiated, OpenRequested, Responded
from trio_amqp10.broker.server_login import ServerLogin, context_of
from trio_amqp10.sasl.config import Server
from trio_amqp10.sasl.mechanism import Challenge, Identity, ServerMechanism, Verified

if TYPE_CHECKING:
    from trio_amqp10.amqp_fast import spec
    from trio_amqp10.amqp_fast.engine.engine import Engine
    from trio_amqp10.net.dialect import AcceptedConnection
    from trio_amqp10.net.pump import Pump
    from trio_amqp10.sasl.mechanism import Refused

_NAMES: Final = {"ANONYMOUS": "NONE"}
"""Mechanisms with another name in AMQP/Fast."""

_PLAIN: Final = "PLAIN"
_SILENT: Final = frozenset({"NONE", "EXTERNAL"})
"""Mechanisms that work without a response."""


def mechanisms_for(accepted: AcceptedConnection) -> dict[str, ServerMechanism]:
    """Return the offered mechanisms by their AMQP/Fast names, best first."""
    server: Server = accepted.sasl or Server()
    offered = server.offer(accepted.private, accepted.allow_plaintext_password, context_of(accepted))
    return {_NAMES.get(each.name, each.name): each for each in offered}


class Login(ServerLogin):
    """The login of one client, from the first challenge to its open.

    Args:
        engine: the engine of the connection.
        pump: the pump of the connection.
        accepted: the facts known about the peer.
        events: the events of the engine during the login.

    Attributes:
        identity: the proven identity of the peer, after the login.
    """

    __slots__ = ("_engine", "_events", "_mechanism", "_offered", "_proof", "_pump")

    def __init__(
        self,
        engine: Engine,
        pump: Pump,
        accepted: AcceptedConnection,
        events: trio.MemoryReceiveChannel[Any],
    ) -> None:
        super().__init__(accepted)
        self._engine = engine
        self._pump = pump
        self._events = events
        self._offered = mechanisms_for(accepted)
        self._mechanism = ""
        self._proof: tuple[str, str] | None = None

    async def run(self) -> spec.ConnectionOpen | None:
        """Wait for the client's open, and return it; None if the login failed.

        Cancelled: the connection can no longer be used.
        """
        async for event in self._events:
            if isinstance(event, Initiated):
                self._challenge({})
            elif isinstance(event, Responded):
                await self._take(event.response)
            elif isinstance(event, OpenRequested):
                return event.open
        return None

    def _challenge(self, challenges: dict[str, Any]) -> None:
        names = self._mechanism or " ".join(self._offered)
        self._pump.feed(self._engine.challenge, names, challenges, trio.current_time())

    async def _take(self, response: spec.ConnectionResponse) -> None:
        name = response.mechanism
        mechanism = self._offered.get(name)
        if mechanism is None or name != (self._mechanism or name):
            self._refuse(f"mechanism: {name[:20]} is not offered, or not the one in use")
            return
        octets = _octets_of(name, response.responses)
        if octets is None and name not in _SILENT:
            self._refuse(
                "responses: LOGIN and PASSWORD are required"
                if name == _PLAIN
                else "responses: RESPONSE is required"
            )
            return
        if self._proof is not None:  # This answers the last challenge, which contained the server's proof.
            self._finish(*self._proof)
            return
        exchange = self.exchange
        if exchange is None:
            if not self.accepted.failures.permits(None):
                self._refuse()
                return
            self._mechanism = name
            exchange = self.begin(mechanism)
            self._take_step(await self.outcome(exchange, exchange.start, octets or b""), mechanism)
        else:
            self._take_step(await self.outcome(exchange, exchange.response, octets or b""), mechanism)

    def _take_step(self, step: Challenge | Verified | Refused, mechanism: ServerMechanism) -> None:
        if isinstance(step, Challenge):
            self._challenge({"CHALLENGE": step.data})
        elif not isinstance(step, Verified):
            self._refuse()
        elif step.data is not None:
            # The server's proof needs a further challenge, because the outcome has no field for it (SCRAM).
            self._proof = step.name, mechanism.name
            self._challenge({"CHALLENGE": step.data})
        else:
            self._finish(step.name, mechanism.name)

    def _finish(self, name: str, mechanism: str) -> None:
        self.identity: Identity | None = Identity(name, mechanism)
        self._pump.feed(self._engine.accept_login, trio.current_time())

    def _refuse(self, why: str = "") -> None:
        """Refuse the login, in the same way for each reason.

        Only for a malformed response, ``why`` is sent.
        """
        self.count_failure()
        self._engine.refuse_login(trio.current_time(), why)
        self._pump.wake_writer()


def _octets_of(mechanism: str, responses: dict[str, Any]) -> bytes | None:
    """Return the response in the form of the mechanism; None if there is none."""
    if mechanism == _PLAIN:
        login, password = responses.get("LOGIN"), responses.get("PASSWORD")
        if not isinstance(login, str) or not isinstance(password, str):
            return None
        return f"\0{login}\0{password}".encode("utf-8", "surrogateescape")
    response = responses.get("RESPONSE")
    return response.encode("utf-8", "surrogateescape") if isinstance(response, str) else None
