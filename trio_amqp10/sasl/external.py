"""EXTERNAL: identity from the TLS certificate (RFC 4422, appendix A).

The server accepts only a certificate that its TLS layer requested and verified, and takes a name from it only
by a function of the user: authorities differ in which field of a certificate is the name, and a wrong guess would let in
strangers.

Knows nothing of certificates: they are passed on unchanged.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

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
    from collections.abc import Awaitable, Callable

NAME: Final = "EXTERNAL"
AUTHZID_LIMIT: Final = 255
"""Octets, as for the user names of other mechanisms."""


class External(ClientMechanism):
    """Log in with the identity in the TLS certificate of this connection.

    Args:
        authzid: another identity to act as, if the server permits it; empty: the certificate's own.

    Raises:
        LocalProtocolError: the authzid contains a NUL or a lone surrogate, or has more than 255 octets.
    """

    __slots__ = ("_authzid",)

    name = NAME

    def __init__(self, authzid: str = "") -> None:
        try:
            octets = authzid.encode()
        except UnicodeEncodeError:
            raise LocalProtocolError(
                "the authzid contains a lone surrogate, which UTF-8 cannot encode"
            ) from None
        if b"\0" in octets or len(octets) > AUTHZID_LIMIT:
            raise LocalProtocolError(
                f"an authzid must have no NUL and at most {AUTHZID_LIMIT} octets (RFC 4422, A)"
            )
        self._authzid: Final = octets

    def begin(self, context: ClientContext) -> ClientExchange:  # noqa: ARG002 - of no use to it
        return SoleResponse(self._authzid)  # sent even if empty, otherwise the server must ask for it


class ExternalServer(ServerMechanism):
    """Accept clients whose certificate belongs to a known name.

    It is offered only on connections whose client has presented a certificate that was verified.

    Args:
        identify: takes the certificate, as the TLS layer has it, and returns the name of its owner, or
            None if unknown. If it raises, the client is refused, and the exception is kept in
            ``SaslServer.error``. None: every client is refused.
        authorize: an async function that takes the owner's name and the other authzid that the client asks
            to act as, and returns True if it may. None: no client may.
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
        # Check both again: this must hold even if the caller offered a mechanism that is not usable.
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
