"""The login: choose a mechanism, answer challenges, explain a refusal.

It covers connection.start to connection.tune of 0-9-1. The mechanisms are those of ``sasl``, and AMQPLAIN,
which only 0-9-1 has. The client chooses: the first mechanism of its own list that the server offers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.amqp091.engine.events import Challenged, ConnectionOpened, Started
from trio_amqp10.amqp091.engine.states import ConnectionState
from trio_amqp10.amqp091.wire.fields import USUAL, write_table
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.core.reply_codes import ReplyCode091
from trio_amqp10.sasl import (
    AuthenticationError,
    ClientContext,
    ClientExchange,
    ClientMechanism,
    External,
    NoAcceptableMechanismError,
    default_mechanisms,
)
from trio_amqp10.sasl.codes import SaslCode
from trio_amqp10.sasl.mechanism import Question, SoleResponse, user_of

from .errors import ConnectionClosedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from trio_amqp10.amqp091.spec import ConnectionStart
    from trio_amqp10.sasl.mechanism import ClientStep

    from .connection_base import ConnectionBase

_ROUNDS: Final = 16
"""The challenges that are answered at most, so that every login ends."""


class AmqPlain(ClientMechanism):
    """AMQPLAIN: user and password in a field table, as readable as with PLAIN.

    Servers of 0-8 and later support it.
    """

    __slots__ = ("_password", "username")

    name = "AMQPLAIN"
    needs_secrecy = True

    def __init__(self, username: str, password: str) -> None:
        self.username: Final = username
        self._password: Final = password

    def begin(self, context: ClientContext) -> ClientExchange:
        _ = context
        out = bytearray()
        write_table(out, {"LOGIN": self.username, "PASSWORD": self._password}, USUAL)
        return SoleResponse(bytes(out[4:]))  # without the table's length

    def __repr__(self) -> str:
        return f"AmqPlain({self.username!r}, ...)"


def mechanisms_for(
    username: str | None, password: str | None, *, secure: bool, has_certificate: bool
) -> Sequence[ClientMechanism]:
    """Return the mechanisms to log in with, best first.

    These are SCRAM, then EXTERNAL with a certificate, then PLAIN and AMQPLAIN if ``secure``. Without a user and
    a certificate, the login is ``guest`` with the password ``guest``, as in every client of 0-9-1.
    """
    if username is None and has_certificate:
        return (External(),)
    if username is None:
        username, password = "guest", "guest"
    found = default_mechanisms(username, password, secure=secure, has_certificate=has_certificate)
    return (*found, AmqPlain(username, password or "")) if secure else found


class Login:
    """One login on one transport.

    Args:
        connection: the connection, for events and answers.
        mechanisms: the permitted mechanisms, best first.
        context: information about the transport for the mechanisms.
        properties: the client properties to send.
    """

    def __init__(
        self,
        connection: ConnectionBase[Any],
        mechanisms: Sequence[ClientMechanism],
        context: ClientContext,
        properties: Mapping[str, Any],
    ) -> None:
        self._connection = connection
        self._mechanisms = mechanisms
        self._context = context
        self._properties = properties
        self._exchange: ClientExchange | None = None
        self._mechanism = ""
        self._user: str | None = None
        self._rounds = 0

    async def run(self) -> None:
        """Log in, and wait until the connection is open.

        Raises:
            AuthenticationError: the server refused the login, or did not prove that it knows the password.
            NoAcceptableMechanismError: the server offers no permitted mechanism.
            ConnectionClosedError: the server closed the connection, or the connection was lost.
            RemoteProtocolError: the peer does not use AMQP 0-9-1.

        Cancelled: the connection cannot be used any more.
        """
        connection = self._connection
        try:
            while True:
                event = await connection.next_of_handshake()
                if isinstance(event, ConnectionOpened):
                    break
                if isinstance(event, Started):
                    await self._start(event.start)
                else:
                    await self._answer(event)
        except ConnectionClosedError as lost:
            refusal = self._refusal(lost)
            if refusal is None:
                raise
            raise refusal from lost
        assert self._exchange is not None
        doubt = self._exchange.finish(None)
        if doubt is not None:
            raise AuthenticationError(SaslCode.OK, self._mechanism, doubt, self._user)

    async def _start(self, start: ConnectionStart) -> None:
        offered = tuple(start.mechanisms.decode("ascii", "replace").split())
        context = replace(self._context, offered=offered)
        usable = [each for each in self._mechanisms if each.usable(context)]
        chosen = next((each for each in usable if each.name in offered), None)
        if chosen is None:
            raise NoAcceptableMechanismError(offered, [each.name for each in usable])
        self._mechanism = chosen.name
        self._user = user_of(chosen)
        self._exchange = chosen.begin(context)
        response = await self._asked(self._exchange, self._exchange.start())
        connection = self._connection
        answer = connection.engine.methods.make(
            "connection.start-ok",
            client_properties=dict(self._properties),
            mechanism=chosen.name,
            response=response,
        )
        connection.pump.feed(connection.engine.answer_start, answer, trio.current_time())

    async def _answer(self, event: Challenged) -> None:
        assert self._exchange is not None
        self._rounds += 1
        if self._rounds > _ROUNDS:
            raise RemoteProtocolError(f"the server sent more than {_ROUNDS} SASL challenges")
        response = await self._asked(self._exchange, self._exchange.challenge(event.challenge))
        connection = self._connection
        connection.pump.feed(connection.engine.answer_challenge, response, trio.current_time())

    async def _asked(self, exchange: ClientExchange, step: ClientStep) -> bytes:
        """Answer the questions of the mechanism, then return the octets to send."""
        while isinstance(step, Question):
            if step.work is not None:
                step = exchange.answer(await trio.to_thread.run_sync(step.work))
            else:
                step = exchange.answer(await step.ask())
        return step.data or b""

    def _refusal(self, lost: ConnectionClosedError) -> AuthenticationError | None:
        """Return the error if the server ended the connection because of the login.

        A server closes with 403 then; a server without the capability ``authentication_failure_close`` only
        ends the transport.
        """
        if lost.code == ReplyCode091.ACCESS_REFUSED and self._mechanism:
            return AuthenticationError(SaslCode.AUTH, self._mechanism, lost.text, self._user)
        engine = self._connection.engine
        silent = lost.code is None and engine.lost_in in (
            ConnectionState.AWAIT_TUNE,
            ConnectionState.AWAIT_SECURE_OK,
        )
        if silent and engine.capabilities.get("authentication_failure_close") is not True:
            reason = "the server ended the connection after the login: probably user or password are wrong"
            return AuthenticationError(SaslCode.AUTH, self._mechanism, reason, self._user)
        return None
