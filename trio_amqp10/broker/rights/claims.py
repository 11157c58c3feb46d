"""Claims: the permissions by tokens of one connection, and SAS tokens.

"Claims-based security" (an OASIS draft, in use by Azure Service Bus and Event Hubs) lets a client connect as anonymous, and put
a token for each node that it wants to use. The content of a token is a claim, and expires with the token.

Knows times and addresses; knows neither links nor how tokens arrive (``cbs``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import Condition, LocalProtocolError, RemoteProtocolError
from trio_amqp10.core.tokens import SasToken, Token, covers, is_below, path_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from trio_amqp10.sasl import Identity

_ALL: Final = frozenset({"send", "receive", "create", "delete", "transact"})


@dataclass(frozen=True, slots=True)
class Claim:
    """The permissions by one token.

    Attributes:
        audience: the URI of a node, or its address, or a URI without a path for all nodes.
        expires: seconds since 1970; None for as long as the connection lasts.
        rights: any of ``"send"``, ``"receive"``, ``"create"``, ``"delete"`` and ``"transact"``.
        subject: the owner of the token, or the name of its key; for your own use.
    """

    audience: str
    expires: float | None
    rights: frozenset[str] = _ALL
    subject: str | None = None

    def permits(self, action: str, address: str | None) -> bool:
        """Whether it permits this action at this address or below it.

        ``$management`` and other addresses that begin with ``$`` must be named.
        """
        if action not in self.rights or address is None:
            return action in self.rights
        path = path_of(self.audience)
        return is_below(address, path) and (bool(path) or not address.startswith("$"))


@dataclass(frozen=True, slots=True)
class TokenOffer:
    """A token that a peer has put, which must be verified.

    Attributes:
        audience: the node or nodes that the peer wants to use with it.
        token: the token; its ``expires`` is the peer's value, or None.
        identity: the authenticated identity of the peer; None without a SASL layer.
        now: seconds since 1970.
    """

    audience: str
    token: Token
    identity: Identity | None
    now: float


Verify: TypeAlias = "Callable[[TokenOffer], Claim | Awaitable[Claim | None] | None]"
"""A function, or an async one, that returns the claim of a token.

If the token is not valid, it returns None, or raises a ``RefusedError`` with the reason.
"""


class SasKeys:
    """Verifies SAS tokens: ``container.add_cbs(SasKeys({"sender": (key, "send")}))``.

    Args:
        keys: for each name, a key and the rights that it gives, as a string of them.
        ignore_case: whether a token for ``hub`` is valid for ``Hub`` too, for a container that finds both.

    Raises:
        LocalProtocolError: a key is empty, or a right does not exist.
    """

    __slots__ = ("_ignore_case", "_keys")

    def __init__(
        self, keys: Mapping[str, tuple[str, str | Iterable[str]]], *, ignore_case: bool = False
    ) -> None:
        self._ignore_case: Final = ignore_case
        self._keys: Final[dict[str, tuple[str, frozenset[str]]]] = {}
        for name, (key, rights) in keys.items():
            given = frozenset(rights.split() if isinstance(rights, str) else rights)
            if not key or not given or not given <= _ALL:
                raise LocalProtocolError(
                    f"{name!r}: expected a key, and any of {', '.join(sorted(_ALL))}, not {sorted(given)}"
                )
            self._keys[name] = key, given

    def __call__(self, offer: TokenOffer) -> Claim:
        """Return the claim of the token.

        Raises:
            RefusedError: the token is not valid; with the reason.
        """
        try:  # The type of the token is ignored, because azure-servicebus calls its SAS tokens jwt.
            token = SasToken.parse(offer.token.value)
        except RemoteProtocolError as fault:
            raise _refused(fault.description) from None
        key, rights = self._keys.get(token.key_name, ("-", _ALL))
        if not token.is_signed_by(key) or token.key_name not in self._keys:
            raise _refused("the signature was not made with the key that has this name here")
        if token.expires <= offer.now:
            raise _refused("the token has expired")
        resource, audience = token.resource, offer.audience
        if self._ignore_case:
            resource, audience = resource.casefold(), audience.casefold()
        if not covers(resource, audience):
            raise _refused(f"the token is for {token.resource!r}, not for {offer.audience!r}")
        given = offer.token.expires
        expires = token.expires if given is None else min(given, token.expires)
        return Claim(offer.audience, expires, rights, token.key_name)

    def __repr__(self) -> str:
        return f"<SasKeys of {len(self._keys)} keys>"


def _refused(description: str) -> Any:
    return RefusedError(Condition.UNAUTHORIZED_ACCESS, description)
