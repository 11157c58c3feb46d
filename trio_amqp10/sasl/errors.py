"""Errors before a connection is authenticated (5.3).

Knows codes and names of mechanisms; never a password, a token, or any octet of an exchange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.core.errors import SecurityDowngradeError, SecurityError

from .codes import SaslCode

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "AuthenticationError",
    "NoAcceptableMechanismError",
    "PlaintextPasswordError",
    "SecurityDowngradeError",
]

_MEANINGS: Final = {
    SaslCode.OK: "the server accepted the login, but did not prove its identity",
    SaslCode.AUTH: "the server refused the credentials",
    SaslCode.SYS: "the server could not check the credentials: a system error on its side",
    SaslCode.SYS_PERM: "the server could not check the credentials: a permanent system error",
    SaslCode.SYS_TEMP: "the server could not check the credentials just now: a later attempt may succeed",
}
"""The codes of an outcome (5.3.3.6) in words.

Only AUTH concerns the credentials.
"""
_BROKEN_OFF: Final = "the server broke the rules of the mechanism"


class AuthenticationError(SecurityError):
    """The exchange ended without an authenticated connection (5.3.3.5).

    Attributes:
        code: the code of the server's outcome (5.3.3.6). ``ok`` here means that the server accepted the
            client, but the mechanism did not accept the server: it failed to prove its own identity.
            None: there was no outcome, because the mechanism ended the exchange before.
        mechanism: the mechanism that was tried.
        user: the name of the user, if the mechanism has one.
    """

    def __init__(
        self, code: SaslCode | None, mechanism: str, reason: str | None = None, user: str | None = None
    ) -> None:
        meaning = reason or (_BROKEN_OFF if code is None else _MEANINGS[code])
        who = "" if user is None else f"user {user!r}, "
        where = f"mechanism {mechanism}" if code is None else f"mechanism {mechanism}, code {code.value}"
        super().__init__(f"{meaning} ({who}{where})")
        self.user: Final = user
        self.code: Final = code
        self.mechanism: Final = mechanism

    @property
    def temporary(self) -> bool:
        """Whether the same attempt may succeed later, by the server's code (sys-temp)."""
        return self.code is SaslCode.SYS_TEMP


class NoAcceptableMechanismError(SecurityError):
    """The server offers no mechanism that this client may use (5.3.3.1).

    Attributes:
        offered: the server's list, in its order; may be empty.
        acceptable: the names that the client could have used, in its own order.
    """

    def __init__(self, offered: Sequence[str], acceptable: Sequence[str]) -> None:
        theirs = ", ".join(offered) or "nothing"
        ours = ", ".join(acceptable)
        super().__init__(
            f"no acceptable SASL mechanism: the server offers {theirs}; acceptable here: {ours}"
            f"{_advice(offered, acceptable)}"
        )
        self.offered: Final = tuple(offered)
        self.acceptable: Final = tuple(acceptable)


def _advice(offered: Sequence[str], acceptable: Sequence[str]) -> str:
    """Return what to change in the URL, if user and password are the reason."""
    with_password = [name for name in offered if name == "PLAIN" or name.startswith("SCRAM-")]
    if with_password and list(acceptable) == ["ANONYMOUS"]:
        return " (the server requires a user: amqp://USER:PASSWORD@HOST)"
    if (
        "ANONYMOUS" in offered
        and not with_password
        and any(name in acceptable for name in ("PLAIN", "SCRAM-SHA-256"))
    ):
        return " (the server knows no users: leave user and password out of the URL)"
    return ""


class PlaintextPasswordError(SecurityError):
    """A mechanism would send a password or token in the clear (RFC 4616, section 4).

    Use TLS, or permit it explicitly with ``allow_plaintext_password=True``.
    """
