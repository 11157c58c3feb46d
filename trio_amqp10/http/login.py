"""The login of a client of HTTP: basic authentication, or its certificate.

The users are those of AMQP: a ``sasl.Server``. A password is checked by its mechanism PLAIN, with its counts of failures and
its delay. Without users everybody at the loopback is let in, without a name.

Knows headers and mechanisms; knows no route.
"""

from __future__ import annotations

import base64
import binascii
import random
from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.broker.server_login import ServerLogin, context_of
from trio_amqp10.sasl.mechanism import Identity, Verified
from trio_amqp10.sasl.tally import FAILURE_PENALTY

from .errors import RequestError

if TYPE_CHECKING:
    from trio_amqp10.net.dialect import AcceptedConnection
    from trio_amqp10.sasl import Server
    from trio_amqp10.sasl.mechanism import ServerMechanism

ABORT: Final = "abort"
"""The name of a function that ends the connection, in the state of its requests."""

CONNECTION: Final = "connection"
"""The name of the login of a connection in the state of its requests."""

_JITTER: Final = 0.5
"""The largest random delay of a refusal in seconds; it hides how long checks take."""


class ConnectionLogin:
    """The logins on one connection; the last one that succeeded is remembered.

    Args:
        accepted: the connection of the client.
    """

    __slots__ = ("_accepted", "_known", "_proof")

    def __init__(self, accepted: AcceptedConnection) -> None:
        self._accepted = accepted
        self._proof: str | None = None
        self._known: Identity | None = None

    @property
    def host(self) -> str | None:
        """The IP address of the client."""
        return self._accepted.host

    async def identify(self, authorization: str | None) -> Identity | None:
        """Return the identity of a client.

        None for a client without a name, if there are no users.

        Args:
            authorization: the value of the header ``Authorization``; None without one.

        Raises:
            RequestError: 401, the client is not authenticated; 403, its password would not be secret.

        Cancelled: the client is not authenticated.
        """
        accepted = self._accepted
        users: Server | None = accepted.sasl
        if users is None or not users.requires_sasl:
            accepted.opened()
            return None
        if self._known is not None and authorization == self._proof:
            return self._known
        mechanisms = {
            each.name: each
            for each in users.offer(accepted.private, accepted.allow_plaintext_password, context_of(accepted))
        }
        if authorization is None:
            name, response = "EXTERNAL", b""
        elif not accepted.private and not accepted.allow_plaintext_password:
            raise RequestError(403, "forbidden", "a password would not be secret here: use https://")
        else:
            name, response = "PLAIN", _plain(authorization)
        mechanism = mechanisms.get(name)
        if mechanism is None:
            raise RequestError(401, "not_authorized", "a user and a password are needed")
        self._known = await self._prove(mechanism, response)
        self._proof = authorization
        accepted.opened()
        return self._known

    async def _prove(self, mechanism: ServerMechanism, response: bytes) -> Identity:
        login = ServerLogin(self._accepted)
        if self._accepted.failures.permits(None):
            exchange = login.begin(mechanism)
            step = await login.outcome(exchange, exchange.start, response)
            if isinstance(step, Verified):
                return Identity(step.name, mechanism.name, step.expires)
            login.count_failure()
        await trio.sleep(FAILURE_PENALTY + random.random() * _JITTER)
        raise RequestError(401, "not_authorized", "user or password is not valid")


def _plain(authorization: str) -> bytes:
    """Return the message of PLAIN for the header of basic authentication (RFC 7617)."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() == "basic":
        try:
            user, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
        except (binascii.Error, ValueError):
            colon = b""
        else:
            if colon:
                return b"\0" + user + b"\0" + password
    raise RequestError(
        401, "not_authorized", "the header Authorization: give Basic, and user:password in base64"
    )
