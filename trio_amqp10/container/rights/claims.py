"""What the tokens of one connection permit, and until when; SAS tokens.

"Claims-based security" (an OASIS draft, as Azure Service Bus and Event Hubs have it) lets a client
connect as nobody, and put a token for each node that it wants to use. What a token says is a claim,
and ends when the token does.

Knows times and addresses; knows neither links nor how tokens come (``cbs``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.errors import Condition, LocalProtocolError, RemoteProtocolError
from trio_amqp10.tokens import SasToken, Token, covers, is_below, path_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from trio_amqp10.sasl import Identity

__all__ = ["Claim", "SasKeys", "TokenOffer", "Verify"]

_ALL: Final = frozenset({"send", "receive", "create", "delete", "transact"})


@dataclass(frozen=True, slots=True)
class Claim:
    """What a token permits.

    Attributes:
        audience: what it is for: the URI of a node, or its address, or a URI without a path for all nodes.
        expires: seconds since 1970; None for as long as the connection lasts.
        rights: any of ``"send"``, ``"receive"``, ``"create"``, ``"delete"`` and ``"transact"``.
        subject: whose token it is, or which key made it; for your own use.
    """

    audience: str
    expires: float | None
    rights: frozenset[str] = _ALL
    subject: str | None = None

    def permits(self, action: str, address: str | None) -> bool:
        """Whether it permits this, at this node or below it; ``$management`` and its like only by name."""
        if action not in self.rights or address is None:
            return action in self.rights
        path = path_of(self.audience)
        return is_below(address, path) and (bool(path) or not address.startswith("$"))


@dataclass(frozen=True, slots=True)
class TokenOffer:
    """A token that a peer has put, to be verified.

    Attributes:
        audience: what the peer wants it to be good for.
        token: the token; its ``expires`` is what the peer says of it, or None.
        identity: the authenticated identity of the peer; None without a SASL layer.
        now: seconds since 1970.
    """

    audience: str
    token: Token
    identity: Identity | None
    now: float


Verify: TypeAlias = "Callable[[TokenOffer], Claim | Awaitable[Claim | None] | None]"
"""A function, or an async one: what the token permits; None, or a ``RefusedError`` that says why, if nothing."""


class SasKeys:
    """Verifies SAS tokens: ``container.add_cbs(SasKeys({"sender": (key, "send")}))``.

    Args:
        keys: by name, each a key and the rights that it gives, as a string of them.

    Raises:
        LocalProtocolError: an empty key, or a right that there is not.
    """

    __slots__ = ("_keys",)

    def __init__(self, keys: Mapping[str, tuple[str, str | Iterable[str]]]) -> None:
        self._keys: Final[dict[str, tuple[str, frozenset[str]]]] = {}
        for name, (key, rights) in keys.items():
            given = frozenset(rights.split() if isinstance(rights, str) else rights)
            if not key or not given or not given <= _ALL:
                raise LocalProtocolError(
                    f"{name!r}: a key, and any of {', '.join(sorted(_ALL))}, are due, not {sorted(given)}"
                )
            self._keys[name] = key, given

    def __call__(self, offer: TokenOffer) -> Claim:
        """What the token permits.

        Raises:
            RefusedError: nothing; says why.
        """
        try:  # whatever its type is said to be: azure-servicebus calls its SAS tokens jwt
            token = SasToken.parse(offer.token.value)
        except RemoteProtocolError as fault:
            raise _refused(fault.description) from None
        key, rights = self._keys.get(token.key_name, ("-", _ALL))
        if not token.is_signed_by(key) or token.key_name not in self._keys:
            raise _refused("the signature is not by a key that is known here under that name")
        if token.expires <= offer.now:
            raise _refused("the token has expired")
        if not covers(token.resource, offer.audience):
            raise _refused(f"the token is for {token.resource!r}, not for {offer.audience!r}")
        said = offer.token.expires
        expires = token.expires if said is None else min(said, token.expires)
        return Claim(offer.audience, expires, rights, token.key_name)

    def __repr__(self) -> str:
        return f"<SasKeys of {len(self._keys)} keys>"


def _refused(description: str) -> Any:
    return RefusedError(Condition.UNAUTHORIZED_ACCESS, description)
