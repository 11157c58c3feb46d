"""The mechanisms that a client may use, by default the strongest first.

With credentials ANONYMOUS is never used, because a user with a password wants to be identified. Without secrecy only SCRAM is
used, because third parties could read anything else (RFC 5802; RFC 4616, section 4).

Knows mechanisms by their names; the caller knows whether a connection is secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.core.errors import LocalProtocolError

from .anonymous import Anonymous
from .errors import PlaintextPasswordError
from .external import External
from .oauth import OAuthBearer, XOAuth2
from .plain import Plain
from .scram_client import Scram
from .scram_messages import PLUS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from .mechanism import ClientMechanism

_STRONG: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")
_IN_THE_CLEAR: Final = (*_STRONG, "SCRAM-SHA-1")
"""SHA-1 is better than no mechanism: HMAC does not suffer from its collisions."""


def default_mechanisms(
    username: str | None = None,
    password: str | None = None,
    token_source: Callable[[], Awaitable[str]] | None = None,
    *,
    secure: bool,
    has_certificate: bool = False,
) -> tuple[ClientMechanism, ...]:
    """Return mechanisms for ``SaslClient``, best first.

    Args:
        username, password: as in a URL; a user without a password has an empty one.
        token_source: an async function that fetches a token; it takes precedence over a password.
        secure: whether no third party can read the octets (as in ``check_allowed``), or the user permits that.
        has_certificate: whether the TLS layer presents our own certificate.

    Returns:
        With a token source OAUTHBEARER and XOAUTH2 alone. With a user SCRAM, then EXTERNAL if there is a certificate, then
        PLAIN if ``secure``. Otherwise EXTERNAL if there is a certificate, then ANONYMOUS.
        SCRAM is left out if it does not permit the name or password (RFC 4013), as for a token
        instead of a password: that is an error only if just SCRAM could be used.

    Raises:
        LocalProtocolError: no mechanism permits the name or password.
    """
    if token_source is not None:
        return (OAuthBearer(token_source), XOAuth2(token_source, username or ""))
    external: tuple[ClientMechanism, ...] = (External(),) if has_certificate else ()
    if username is None:
        return (*external, Anonymous())
    password = password or ""
    try:
        # All with -PLUS come first: if an attacker removes one from the server's list, the next one must
        # still be bound to the TLS connection.
        names = _STRONG if secure else _IN_THE_CLEAR
        bound = [Scram(username, password, name + PLUS) for name in names]
        scram = (*bound, *(Scram(username, password, name) for name in names))
    except LocalProtocolError:
        if not secure:
            raise
        scram = ()
    return (*scram, *external, Plain(username, password)) if secure else (*scram, *external)


def check_allowed(
    mechanisms: Sequence[ClientMechanism], *, secure: bool, allow_plaintext_password: bool = False
) -> tuple[ClientMechanism, ...]:
    """Return the ``mechanisms`` that may be used on a transport, in the same order.

    Args:
        mechanisms: the mechanisms that the user configured.
        secure: whether no third party can read the octets: TLS, or a peer on loopback, a Unix socket or in memory.
        allow_plaintext_password: whether the user explicitly permits mechanisms that need secrecy, e.g. PLAIN.

    Raises:
        PlaintextPasswordError: none is left, because all need secrecy and the transport has none.
    """
    if secure or allow_plaintext_password:
        return tuple(mechanisms)
    allowed = tuple(mechanism for mechanism in mechanisms if not mechanism.needs_secrecy)
    if mechanisms and not allowed:
        names = ", ".join(mechanism.name for mechanism in mechanisms)
        raise PlaintextPasswordError(
            f"{names} would send the password in the clear, or a token: use TLS, or allow_plaintext_password=True"
        )
    return allowed
