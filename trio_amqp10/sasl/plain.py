"""PLAIN: a user name and a password in the clear (RFC 4616).

So neither side uses it without secrecy unless the peer is this machine, or the user permitted it
explicitly. Names and passwords are compared octet by octet, as UTF-8: SASLprep is not applied.
"""

from __future__ import annotations

from functools import partial
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Final

from trio_amqp10.core.errors import LocalProtocolError

from .mechanism import (
    ClientContext,
    ClientExchange,
    ClientMechanism,
    Question,
    Refused,
    ServerContext,
    ServerExchange,
    ServerMechanism,
    ServerStep,
    SoleResponse,
    Verified,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

NAME: Final = "PLAIN"
PART_LIMIT: Final = 255
"""Octets of a user name or password that a server accepts (RFC 4616, section 2)."""


class Plain(ClientMechanism):
    """Log in with a user name and a password.

    The password may be longer than the 255 octets that every server accepts, because some accept a token there.

    Raises:
        LocalProtocolError: the user name is empty or longer than 255 octets of UTF-8, or a part contains a NUL.
    """

    __slots__ = ("_message", "username")

    name = NAME
    needs_secrecy = True

    def __init__(self, username: str, password: str) -> None:
        user = _encode("user name", username)
        if not 0 < len(user) <= PART_LIMIT:
            raise LocalProtocolError(
                f"a user name must have 1 to {PART_LIMIT} octets, not {len(user)} (RFC 4616, 2)"
            )
        self.username: Final = username
        self._message: Final = b"\0%b\0%b" % (user, _encode("password", password))

    def begin(self, context: ClientContext) -> ClientExchange:  # noqa: ARG002 - of no use to it
        return SoleResponse(self._message)

    def __repr__(self) -> str:
        return f"Plain({self.username!r}, ...)"


class PlainServer(ServerMechanism):
    """Check user names and passwords, by a mapping or by a function.

    Args:
        users: passwords by user name; read at every attempt, so it may change.
        verify: an async function that takes user name and password, and returns True if they belong together.
        permitted: whether this transport keeps the password secret, or need not. If False, every exchange is
            refused, even if the mechanism was offered by mistake.

    Raises:
        LocalProtocolError: not exactly one of ``users`` and ``verify``.
    """

    __slots__ = ("_permitted", "_users", "_verify")

    name = NAME
    needs_secrecy = True

    def __init__(
        self,
        users: Mapping[str, str] | None = None,
        *,
        verify: Callable[[str, str], Awaitable[bool]] | None = None,
        permitted: bool = False,
    ) -> None:
        if (users is None) is (verify is None):
            raise LocalProtocolError("PLAIN needs either users or verify, to check passwords against")
        self._users: Final = users
        self._verify: Final = verify
        self._permitted: Final = permitted

    def begin(self, context: ServerContext) -> ServerExchange:  # noqa: ARG002 - of no use to it
        return _PlainServer(self._check, permitted=self._permitted)

    def _check(self, username: str, password: str) -> ServerStep:
        if self._verify is not None:
            return Question(f"PLAIN: verify user {username!r}", partial(self._verify, username, password))
        assert self._users is not None
        expected = self._users.get(username)
        # An unknown user takes the same work as a wrong password, and digests have one length, so that
        # the time reveals neither which users exist nor how long a password is.
        same = compare_digest(_digest(password), _digest(password + "?" if expected is None else expected))
        return Verified(username) if same and expected is not None else Refused()


class _PlainServer(ServerExchange):
    __slots__ = ("_check", "_permitted", "_username")

    def __init__(self, check: Callable[[str, str], ServerStep], *, permitted: bool) -> None:
        self._check = check
        self._permitted = permitted
        self._username = ""

    @property
    def claimed_name(self) -> str | None:
        return self._username or None

    def start(self, initial_response: bytes | None) -> ServerStep:
        return super().start(initial_response) if self._permitted else Refused()

    def response(self, data: bytes) -> ServerStep:
        parts = _parse(data)
        if parts is None:
            return Refused()
        self._username, password = parts
        return self._check(self._username, password)

    def answer(self, value: object) -> ServerStep:
        # ``is True``: a coroutine that was not awaited, or a record of the user, must not count as True.
        return Verified(self._username) if value is True else Refused()


def _parse(message: bytes) -> tuple[str, str] | None:
    """Return user name and password, or None for an invalid message.

    RFC 4616, section 2 has the grammar.
    """
    parts = message.split(b"\0")
    if len(parts) != 3 or not all(len(part) <= PART_LIMIT for part in parts):
        return None
    authzid, authcid, password = parts
    if not authcid or not password or authzid not in (b"", authcid):
        return None  # we cannot authorise a user to act as another
    try:
        return authcid.decode(), password.decode()
    except UnicodeDecodeError:
        return None


def _encode(what: str, text: str) -> bytes:
    try:
        octets = text.encode()
    except UnicodeEncodeError:
        # ``from None``, because the original exception contains the whole text, which may be the password.
        raise LocalProtocolError(f"the {what} contains a lone surrogate, which UTF-8 cannot encode") from None
    if b"\0" in octets:
        raise LocalProtocolError(f"the {what} contains a NUL, which PLAIN cannot carry (RFC 4616, 2)")
    return octets


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
