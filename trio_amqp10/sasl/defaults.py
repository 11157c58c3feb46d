"""The default mechanisms of a client: the strongest first.

With credentials never ANONYMOUS: who gives a password wants to be someone. Without secrecy nothing
that could be read along: SCRAM or nothing (RFC 5802; RFC 4616, section 4).

Knows mechanisms by their names; whether a connection is secret it is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.errors import LocalProtocolError

from .anonymous import Anonymous
from .external import External
from .oauth import OAuthBearer, XOAuth2
from .plain import Plain
from .scram_client import Scram
from .scram_messages import PLUS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .mechanism import ClientMechanism

__all__ = ["default_mechanisms"]

_STRONG: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")
_IN_THE_CLEAR: Final = (*_STRONG, "SCRAM-SHA-1")
"""Where the alternative is nothing, SHA-1 will do: HMAC does not suffer from its collisions."""


def default_mechanisms(
    username: str | None = None,
    password: str | None = None,
    token_source: Callable[[], Awaitable[str]] | None = None,
    *,
    secure: bool,
    has_certificate: bool = False,
) -> tuple[ClientMechanism, ...]:
    """Mechanisms for ``SaslClient``, best first.

    Args:
        username, password: as in a URL; a user without a password has an empty one.
        token_source: an async function that fetches a token; it goes before a password.
        secure: whether nobody can read along (as for ``check_allowed``), or the user does not mind.
        has_certificate: whether the TLS layer shows a certificate of ours.

    Returns:
        With a token source OAUTHBEARER and XOAUTH2 alone; with a user SCRAM, then EXTERNAL if there
        is a certificate, then PLAIN if ``secure``; else EXTERNAL if there is one, then ANONYMOUS.
        SCRAM is left out where name or password are none that it takes (RFC 4013), e.g. for a token
        in place of a password: it fails only if nothing but SCRAM would do.

    Raises:
        LocalProtocolError: name or password can be used in none of these.
    """
    if token_source is not None:
        return (OAuthBearer(token_source), XOAuth2(token_source, username or ""))
    external: tuple[ClientMechanism, ...] = (External(),) if has_certificate else ()
    if username is None:
        return (*external, Anonymous())
    password = password or ""
    try:
        # All with -PLUS first: one that was struck from the list on the way must not lead past the next.
        names = _STRONG if secure else _IN_THE_CLEAR
        bound = [Scram(username, password, name + PLUS) for name in names]
        scram = (*bound, *(Scram(username, password, name) for name in names))
    except LocalProtocolError:
        if not secure:
            raise
        scram = ()
    return (*scram, *external, Plain(username, password)) if secure else (*scram, *external)
