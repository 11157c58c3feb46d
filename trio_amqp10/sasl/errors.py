"""Errors before a connection is authenticated (5.3).

Knows codes and names of mechanisms; never a password, a token, or any octet of an exchange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.errors import SecurityDowngradeError, SecurityError
from trio_amqp10.spec.security import SaslCode

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "AuthenticationError",
    "NoAcceptableMechanismError",
    "PlaintextPasswordError",
    "SecurityDowngradeError",
]

_MEANINGS: Final = {
    SaslCode.OK: "the server said ok, but did not prove who it is",
    SaslCode.AUTH: "the server refused the credentials",
    SaslCode.SYS: "the server could not check the credentials: a system error on its side",
    SaslCode.SYS_PERM: "the server could not check the credentials: a system error that will not pass by itself",
    SaslCode.SYS_TEMP: "the server could not check the credentials just now: a later attempt may succeed",
}
"""The codes of an outcome (5.3.3.6) in words: only one of them is about the credentials."""
_BROKEN_OFF: Final = "the server did not keep to the mechanism"


class AuthenticationError(SecurityError):
    """The exchange ended without an authenticated connection (5.3.3.5).

    Attributes:
        code: the code of the server's outcome (5.3.3.6). ``ok`` here means that the server was
            content, but that the mechanism was not: the server failed to prove its own identity.
            None: there was no outcome, because the mechanism broke off the exchange before.
        mechanism: the mechanism that was tried.
    """

    def __init__(self, code: SaslCode | None, mechanism: str, reason: str | None = None) -> None:
        meaning = reason or (_BROKEN_OFF if code is None else _MEANINGS[code])
        where = f"mechanism {mechanism}" if code is None else f"mechanism {mechanism}, code {code.value}"
        super().__init__(f"{meaning} ({where})")
        self.code: Final = code
        self.mechanism: Final = mechanism

    @property
    def temporary(self) -> bool:
        """Whether the server says that the same attempt may succeed later (sys-temp)."""
        return self.code is SaslCode.SYS_TEMP


class NoAcceptableMechanismError(SecurityError):
    """The server offers no mechanism that this client may use, or none at all (5.3.3.1).

    Attributes:
        offered: the server's list, in its order.
        acceptable: the names that the client would have used, in its own order.
    """

    def __init__(self, offered: Sequence[str], acceptable: Sequence[str]) -> None:
        theirs = ", ".join(offered) or "nothing"
        ours = ", ".join(acceptable)
        super().__init__(f"no acceptable SASL mechanism: the server offers {theirs}; acceptable here: {ours}")
        self.offered: Final = tuple(offered)
        self.acceptable: Final = tuple(acceptable)


class PlaintextPasswordError(SecurityError):
    """A mechanism would send a password or a token readable by anyone on the way (RFC 4616, section 4).

    Use TLS, or allow it by name with ``allow_plaintext_password=True``.
    """
