"""OAUTHBEARER and XOAUTH2: bearer tokens (RFC 7628, RFC 6750).

XOAUTH2 is an older form, of a few large providers; the exchange is the same. Until it expires a token is as
good as a password, so both need secrecy. It never appears in a repr, a
question or an exception; a server's error text does not either, because it may quote the token.

A server that refuses a token sends the reason in a challenge. The client must answer it with a dummy message before the
outcome follows (RFC 7628, section 3.2.3). Tokens may be longer than the 512 octets of the
standard's SASL frames (5.3.1): with ``max_frame_size=512`` the layer raises an error instead of sending.

Knows no HTTP, and of JWTs only the expiry time: the user's coroutines fetch and verify tokens.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.tokens import Token

from .mechanism import (
    Challenge,
    ClientContext,
    ClientExchange,
    ClientMechanism,
    ClientStep,
    Question,
    Refused,
    Respond,
    ServerContext,
    ServerExchange,
    ServerMechanism,
    ServerStep,
    Verified,
)
from .scram_messages import escape_name, parse_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

OAUTHBEARER: Final = "OAUTHBEARER"
XOAUTH2: Final = "XOAUTH2"
NAME_LIMIT: Final = 255
"""Octets of a user name, as for other mechanisms."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*\Z")
_BEARER: Final = re.compile(r"(?i:bearer) +([A-Za-z0-9._~+/-]+=*)\Z")
_PAIR: Final = re.compile(r"([A-Za-z]+)=([\t\r\n\x20-\x7e]*)\Z")
_MEANINGS: Final = {
    "invalid_request": "the server did not understand the request",
    "invalid_token": "the server refused the token: expired, revoked or not for this service",
    "insufficient_scope": "the server refused the token: its scope is too small",
    "400": "the server did not understand the request",
    "401": "the server refused the token: expired, revoked or not for this service",
    "403": "the server refused the token: its scope is too small",
}
"""The errors of RFC 6750, section 3.1, and the numbers of XOAUTH2 for them."""


class _BearerClient(ClientMechanism):
    """The common part of both mechanisms for clients."""

    __slots__ = ("_fetch_token", "username")

    needs_secrecy = True
    _dummy: bytes

    def __init__(self, fetch_token: Callable[[], Awaitable[str]], username: str = "") -> None:
        try:
            size = len(username.encode())
        except UnicodeEncodeError:
            raise LocalProtocolError(
                "the user name contains a lone surrogate, which UTF-8 cannot encode"
            ) from None
        if "\0" in username or "\1" in username or size > NAME_LIMIT:
            raise LocalProtocolError(
                f"a user name must have no control characters and at most {NAME_LIMIT} octets"
            )
        self.username: Final = username
        self._fetch_token: Final = fetch_token

    def begin(self, context: ClientContext) -> ClientExchange:  # noqa: ARG002 - of no use to it
        return _BearerClientExchange(self.name, self._fetch_token, self._message, self._dummy)

    @abstractmethod
    def _message(self, token: str) -> bytes:
        """Return the initial response."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(..., {self.username!r})"


class OAuthBearer(_BearerClient):
    """Log in with a token (RFC 7628).

    Args:
        fetch_token: an async function that returns a valid token; called once for each connection.
        username: the user to act as; empty: the token's own.

    Raises:
        LocalProtocolError: a user name with control characters, or longer than 255 octets.
    """

    __slots__ = ()

    name = OAUTHBEARER
    _dummy = b"\1"

    def _message(self, token: str) -> bytes:
        authzid = f"a={escape_name(self.username)}" if self.username else ""
        return f"n,{authzid},\1auth=Bearer {token}\1\1".encode()


class XOAuth2(_BearerClient):
    """Log in with a token, for servers that only know the form before RFC 7628.

    Args:
        fetch_token: as for ``OAuthBearer``.
        username: the user of the token; most servers require it.

    Raises:
        LocalProtocolError: a user name with control characters, or longer than 255 octets.
    """

    __slots__ = ()

    name = XOAUTH2
    _dummy = b""

    def _message(self, token: str) -> bytes:
        return f"user={self.username}\1auth=Bearer {token}\1\1".encode()


class _BearerClientExchange(ClientExchange):
    __slots__ = ("_dummy", "_fetch_token", "_message", "_name", "_refusal")

    def __init__(
        self,
        name: str,
        fetch_token: Callable[[], Awaitable[str]],
        message: Callable[[str], bytes],
        dummy: bytes,
    ) -> None:
        self._name = name
        self._fetch_token = fetch_token
        self._message = message
        self._dummy = dummy
        self._refusal: str | None = None

    def start(self) -> Question:
        return Question(f"{self._name}: a token", self._fetch_token)

    def answer(self, value: object) -> ClientStep:
        if not isinstance(value, str) or not _TOKEN.match(value):
            raise LocalProtocolError("the fetched token is no bearer token (RFC 6750, 2.1)")
        return Respond(self._message(value))

    def challenge(self, data: bytes) -> ClientStep:
        if self._refusal is not None:
            return super().challenge(data)
        self._refusal = _MEANINGS.get(_status(data), "the server refused the token")
        return Respond(self._dummy)

    def finish(self, data: bytes | None) -> str | None:  # noqa: ARG002 - it proves nothing
        return None if self._refusal is None else f"{self._refusal}; then it accepted the login"

    def explain(self) -> str | None:
        return self._refusal


def _status(data: bytes) -> str:
    """Return the status in a server's error; empty if it cannot be read."""
    try:
        error: object = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    status = cast("dict[str, object]", error).get("status") if isinstance(error, dict) else None
    return status if isinstance(status, str) else ""


Verify: TypeAlias = "Callable[[str, str], Awaitable[str | tuple[str, float] | None]]"


class _BearerServer(ServerMechanism):
    """The common part of both mechanisms for servers."""

    __slots__ = ("_error", "_verify")

    needs_secrecy = True
    _status: str

    def __init__(
        self,
        verify: Verify,
        *,
        scope: str | None = None,
        openid_configuration: str | None = None,
    ) -> None:
        error = {"status": self._status, "scope": scope, "openid-configuration": openid_configuration}
        self._verify: Final = verify
        self._error: Final = json.dumps(
            {key: value for key, value in error.items() if value is not None}
        ).encode()

    def begin(self, context: ServerContext) -> ServerExchange:  # noqa: ARG002 - of no use to it
        return _BearerServerExchange(self.name, self._parse, self._verify, self._error)

    @abstractmethod
    def _parse(self, message: bytes) -> tuple[str, str] | None:
        """Return user name and token, or None if the grammar does not allow the message."""


class OAuthBearerServer(_BearerServer):
    """Accept clients with a token that the application verifies (RFC 7628).

    Args:
        verify: an async function that takes the user name that the client asks to act as (empty
            if none) and the token, and returns the name of the authenticated user, or None. It may return a tuple of
            the name and the expiry time, in seconds since 1970; the expiry of a JWT is known without it.
            Only the returned name counts: the client's user name is a mere argument.
            If it raises, the outcome is ``sys``.
        scope: the scope that a refused client should request from its authorization server.
        openid_configuration: the URL where that client finds its authorization server.
    """

    __slots__ = ()

    name = OAUTHBEARER
    _status = "invalid_token"

    def _parse(self, message: bytes) -> tuple[str, str] | None:
        header, *pairs = message.split(b"\1")
        try:
            flag, authzid, rest = header.decode().split(",")
            username = parse_name(authzid.removeprefix("a=")) if authzid.startswith("a=") else authzid
        except ValueError:
            return None
        # ``y`` means that the client supports channel binding, which we do not offer here. ``p`` would require
        # it, so it is invalid.
        if flag not in ("n", "y") or rest or (username and not authzid.startswith("a=")):
            return None
        return _with_token(username, pairs)


class XOAuth2Server(_BearerServer):
    """``OAuthBearerServer`` for clients that only know the form before RFC 7628."""

    __slots__ = ()

    name = XOAUTH2
    _status = "401"

    def _parse(self, message: bytes) -> tuple[str, str] | None:
        header, *pairs = message.split(b"\1")
        try:
            username = header.decode()
        except UnicodeDecodeError:
            return None
        if not username.startswith("user=") or "\0" in username:
            return None
        return _with_token(username.removeprefix("user="), pairs)


def _with_token(username: str, pairs: list[bytes]) -> tuple[str, str] | None:
    """Return the user name and the token of ``key=value`` pairs, or None.

    Each pair ends with an octet of 1, and one more such octet ends the message (RFC 7628, section 3.1).
    """
    if len(username.encode()) > NAME_LIMIT or pairs[-2:] != [b"", b""]:
        return None
    matches = [_PAIR.match(pair.decode("latin-1")) for pair in pairs[:-2]]
    values = {match[1]: match[2] for match in matches if match is not None}
    if len(values) != len(matches):
        return None  # an item that is no pair, or a key that occurs twice
    token = _BEARER.match(values.get("auth", ""))
    return None if token is None else (username, token[1])


class _BearerServerExchange(ServerExchange):
    __slots__ = ("_error", "_failed", "_name", "_parse", "_token", "_username", "_verify")

    def __init__(
        self,
        name: str,
        parse: Callable[[bytes], tuple[str, str] | None],
        verify: Verify,
        error: bytes,
    ) -> None:
        self._name = name
        self._parse = parse
        self._verify = verify
        self._error = error
        self._failed = False
        self._token = ""
        self._username = ""

    @property
    def claimed_name(self) -> str | None:
        return self._username or None

    def response(self, data: bytes) -> ServerStep:
        if self._failed:
            return Refused()  # whatever the client answered: RFC 7628 requires a dummy
        parsed = self._parse(data)
        if parsed is None:
            return self._fail()
        return self._ask(*parsed)

    def _ask(self, username: str, token: str) -> Question:
        self._username, self._token = username, token
        return Question(f"{self._name}: verify a token", partial(self._verify, username, token))

    def answer(self, value: object) -> ServerStep:
        name, expires = (
            cast("tuple[object, object]", value) if _is_pair(value) else (value, _end(self._token))
        )
        if not (isinstance(name, str) and name) or not isinstance(expires, (int, float, type(None))):
            return self._fail()
        return Verified(name, expires=expires)

    def renewed(self, secret: bytes) -> ServerStep:
        token = secret.decode("latin-1")
        return self._ask(self._username, token) if _TOKEN.match(token) else Refused()

    def _fail(self) -> Challenge:
        self._failed = True
        return Challenge(self._error)


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(cast("tuple[object, ...]", value)) == 2


def _end(token: str) -> float | None:
    """Return when a token expires, if it is a JWT with that claim (RFC 7519, 4.1.4)."""
    try:
        return Token.jwt(token).expires
    except LocalProtocolError:
        return None
