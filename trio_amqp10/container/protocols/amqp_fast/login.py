"""The login of a client of AMQP/Fast by the mechanisms of ``sasl`` (RFC 006, 3.2.3, 3.2.4, 3.2.12).

NONE is ANONYMOUS. PLAIN has the fields LOGIN and PASSWORD. Any other mechanism has one field each way, CHALLENGE and RESPONSE,
as text. Who may not come in is not told why: the engine pauses, and ends the transport.

Knows mechanisms and the engine; knows no container.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp_fast.events import Initiated, OpenRequested, Responded
from trio_amqp10.container.protocols.server_login import ServerLogin, context_of
from trio_amqp10.sasl.config import Server
from trio_amqp10.sasl.mechanism import Challenge, Identity, ServerMechanism, Verified

if TYPE_CHECKING:
    from trio_amqp10.amqp_fast import spec
    from trio_amqp10.amqp_fast.engine import Engine
    from trio_amqp10.net.dialect import AcceptedConnection
    from trio_amqp10.net.pump import Pump
    from trio_amqp10.sasl.mechanism import Refused

__all__ = ["Login", "mechanisms_for"]

_NAMES: Final = {"ANONYMOUS": "NONE"}
"""Mechanisms that AMQP/Fast calls otherwise."""

_PLAIN: Final = "PLAIN"
_SILENT: Final = frozenset({"NONE", "EXTERNAL"})
"""Mechanisms whose client need not say anything."""


def mechanisms_for(accepted: AcceptedConnection) -> dict[str, ServerMechanism]:
    """What is offered, best first, by the names that AMQP/Fast has."""
    server: Server = accepted.sasl or Server()
    offered = server.offer(accepted.private, accepted.allow_plaintext_password, context_of(accepted))
    return {_NAMES.get(each.name, each.name): each for each in offered}


class Login(ServerLogin):
    """One negotiation, from the first challenge to the wish for a virtual path.

    Args:
        engine: of the connection.
        pump: that drives it.
        accepted: what is known of the peer.
        events: what the engine reports meanwhile.

    Attributes:
        identity: who the peer proved to be, once it logged in.
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
        """What the client opens; None if it came no further.

        Cancelled: the connection is of no use.
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
            self._refuse(f"mechanism: {name[:20]}")
            return
        octets = _octets_of(name, response.responses)
        if octets is None and name not in _SILENT:
            self._refuse("responses: LOGIN and PASSWORD" if name == _PLAIN else "responses: RESPONSE")
            return
        if self._proof is not None:  # the answer to the last challenge, which had the server's proof
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
        elif step.data is not None:  # there is no outcome that carries it (SCRAM)
            self._proof = step.name, mechanism.name
            self._challenge({"CHALLENGE": step.data})
        else:
            self._finish(step.name, mechanism.name)

    def _finish(self, name: str, mechanism: str) -> None:
        self.identity: Identity | None = Identity(name, mechanism)
        self._pump.feed(self._engine.accept_login, trio.current_time())

    def _refuse(self, why: str = "") -> None:
        """The same for every login that fails; ``why`` only of a response that is not understood."""
        self.count_failure()
        self._engine.refuse_login(trio.current_time(), why)
        self._pump.wake_writer()


def _octets_of(mechanism: str, responses: dict[str, Any]) -> bytes | None:
    """The response that a mechanism reads; None if there is none."""
    if mechanism == _PLAIN:
        login, password = responses.get("LOGIN"), responses.get("PASSWORD")
        if not isinstance(login, str) or not isinstance(password, str):
            return None
        return f"\0{login}\0{password}".encode("utf-8", "surrogateescape")
    response = responses.get("RESPONSE")
    return response.encode("utf-8", "surrogateescape") if isinstance(response, str) else None
