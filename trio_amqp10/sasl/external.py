"""EXTERNAL: identity from the TLS certificate (RFC 4422, appendix A).

The server believes only a certificate that its TLS layer demanded and verified, and a name only
by a mapper that the user wrote: what in a certificate is a name differs from one authority to
the next, and guessing lets in strangers.

Knows nothing of certificates: they pass through as they come.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.errors import LocalProtocolError

from .mechanism import (
    ClientContext,
    ClientExchange,
    ClientMechanism,
    Question,
    Refused,
    Respond,
    ServerContext,
    ServerExchange,
    ServerMechanism,
    ServerStep,
    Verified,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["External", "ExternalServer"]

NAME: Final = "EXTERNAL"
AUTHZID_LIMIT: Final = 255
"""Octets, as for the user names of other mechanisms."""


class External(ClientMechanism):
    """Be whom the TLS certificate of this connection says.

    Args:
        authzid: another identity to act as, if the server lets us; empty: the certificate's own.

    Raises:
        LocalProtocolError: the authzid holds a NUL or a lone surrogate, or has more than 255 octets.
    """

    __slots__ = ("_authzid",)

    name = NAME

    def __init__(self, authzid: str = "") -> None:
        try:
            octets = authzid.encode()
        except UnicodeEncodeError:
            raise LocalProtocolError("the authzid holds a lone surrogate, which UTF-8 cannot") from None
        if b"\0" in octets or len(octets) > AUTHZID_LIMIT:
            raise LocalProtocolError(
                f"an authzid has no NUL and at most {AUTHZID_LIMIT} octets (RFC 4422, A)"
            )
        self._authzid: Final = octets

    def begin(self, context: ClientContext) -> ClientExchange:  # noqa: ARG002 - of no use to it
        return _ExternalClient(self._authzid)


class _ExternalClient(ClientExchange):
    __slots__ = ("_authzid",)

    def __init__(self, authzid: bytes) -> None:
        self._authzid = authzid

    def start(self) -> Respond:
        return Respond(self._authzid)  # empty, but there: else the server has to ask for it


class ExternalServer(ServerMechanism):
    """Let in who came with a certificate that has a name here.

    It is offered only on connections whose client has shown a certificate that was verified.

    Args:
        identify: given the certificate as the TLS layer has it, returns the name of its owner, or
            None for no one known. What it raises refuses the client, and is kept in
            ``SaslServer.error``. None: everyone is refused.
        authorize: an async function that is given the owner's name and the authzid that it asked
            to act as, where that is another, and returns True if it may. None: nobody may.
    """

    __slots__ = ("_authorize", "_identify")

    name = NAME

    def __init__(
        self,
        identify: Callable[[Any], str | None] | None = None,
        *,
        authorize: Callable[[str, str], Awaitable[bool]] | None = None,
    ) -> None:
        self._identify: Final = identify
        self._authorize: Final = authorize

    def usable(self, context: ServerContext) -> bool:
        return self._identify is not None and context.peer_certificate is not None

    def begin(self, context: ServerContext) -> ServerExchange:
        return _ExternalServer(partial(self._check, context.peer_certificate))

    def _check(self, certificate: object, authzid: str) -> ServerStep:
        # Both are looked at again: this must hold even if somebody offered it where it is not usable.
        if self._identify is None or certificate is None:
            return Refused()
        identity: object = self._identify(certificate)
        if not isinstance(identity, str) or not identity:
            return Refused()
        if authzid in ("", identity):
            return Verified(identity)
        if self._authorize is None:
            return Refused()
        return Question(
            f"EXTERNAL: may {identity!r} act as {authzid!r}", partial(self._authorize, identity, authzid)
        )


class _ExternalServer(ServerExchange):
    __slots__ = ("_authzid", "_check")

    def __init__(self, check: Callable[[str], ServerStep]) -> None:
        self._check = check
        self._authzid = ""

    @property
    def claimed_name(self) -> str | None:
        return self._authzid or None

    def response(self, data: bytes) -> ServerStep:
        try:
            self._authzid = data.decode()
        except UnicodeDecodeError:
            return Refused()
        if "\0" in self._authzid or len(data) > AUTHZID_LIMIT:
            return Refused()
        return self._check(self._authzid)

    def answer(self, value: object) -> ServerStep:
        return Verified(self._authzid) if value is True else Refused()
