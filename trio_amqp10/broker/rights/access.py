"""Access: the question whether a peer may do something, and a table of answers.

================  ==========================================  ==============================================
action            the peer wants to                           address
================  ==========================================  ==============================================
open              have a connection                           None
send              send to a node                              of the node
receive           receive from a node, browse or purge it     of the node
create            have a node made                            of the node; None if the container makes up its
                                                              name, as for a dynamic node (3.5.3)
delete            have a node deleted                         of the node
transact          declare transactions (4.1)                  None
monitor           see what a node is, and its figures         of the node; ``$management/connection`` and the like for
                                                              what is no node
manage            do all of that, and change, browse, purge   as for ``monitor``
                  or move through management
================  ==========================================  ==============================================

A link to the anonymous terminus needs no permission; each message on it needs one, by its ``to``. A reply that a node sends to
the address in the request needs one too: otherwise a peer that may send a request could make the node write to any address.
Nodes that were made for a connection belong to it, and need no permission.

The question is asked before the node is looked up, so a refusal is the same whether the node exists or not.

Knows no links and no connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from trio_amqp10.broker.nodes.message_origin import user_of
from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio_amqp10.sasl import Identity

    from .claims import Claim

Action = Literal["open", "send", "receive", "create", "delete", "transact", "monitor", "manage"]

_ACTIONS: Final = frozenset(get_args(Action))

_SHOWN: Final = 64
"""Characters of a name that an error contains at most."""

_DOINGS: Final = {
    "open": "have a connection",
    "send": "send to",
    "receive": "receive from",
    "create": "create",
    "delete": "delete",
    "transact": "declare transactions",
    "monitor": "monitor",
    "manage": "manage",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The question that ``Container(authorise=...)`` answers: may this peer do this?

    Attributes:
        action: ``"open"``, ``"send"``, ``"receive"``, ``"create"``, ``"delete"``, ``"transact"``, ``"monitor"`` or
            ``"manage"``; as seen from the peer.
        address: the address of the node; None for ``open`` and ``transact``, and for ``create`` if the container makes up the
            name.
        identity: the authenticated identity of the peer; None without a SASL layer.
        container_id: the name that the peer chose for itself, without proof.
        claims: the claims of the tokens that it put to ``$cbs``, as long as they are valid.
    """

    action: Action
    address: str | None
    identity: Identity | None
    container_id: str
    claims: tuple[Claim, ...] = ()

    @property
    def user(self) -> str | None:
        """The authenticated name of the peer; None for ANONYMOUS, and without SASL."""
        return user_of(self.identity)

    @property
    def claimed(self) -> bool:
        """Whether one of the claims permits it."""
        return any(claim.permits(self.action, self.address) for claim in self.claims)

    def refusal(self) -> str:
        """Return the error description for the peer."""
        who = "a peer that is not authenticated" if self.user is None else shown(self.user)
        if self.address is not None:
            return f"{who} may not {_DOINGS[self.action]} {shown(self.address)}"
        doing = "have a node made" if self.action == "create" else _DOINGS[self.action]
        return f"{who} may not {doing} (permission {self.action!r})"


def shown(name: str) -> str:
    """Return a name for an error, shortened to fit into the smallest frame."""
    return repr(name) if len(name) <= _SHOWN else f"{name[:_SHOWN]!r}..."


Authorise: TypeAlias = "Callable[[Access], bool | Awaitable[bool]]"
"""A function, or an async one, that returns True to permit.

Any other value refuses. A ``RefusedError`` refuses with its own condition and description.
"""


def permit_claimed(access: Access) -> bool:
    """Permit every connection, and then only what its claims permit.

    The default of a container with ``$cbs`` and without ``authorise``.
    """
    return access.action == "open" or access.claimed


class Rules:
    """A table of permissions.

    For example, ``Container(authorise=Rules(("ada", "send receive", "orders/*"), ...))``. An action that no rule permits is
    refused. A user that a rule names may open a connection, without a rule for that.

    Args:
        rules: each is a user, actions and addresses, as strings. The user is an authenticated name, or ``*`` for every peer,
            authenticated or not. The actions are any of ``send``, ``receive``, ``create``, ``delete``, ``monitor``,
            ``manage``, ``transact`` and ``open``. The addresses are an address, or a prefix and ``*``; an address that begins
            with ``$``, such as ``$management``, matches only a rule that begins with ``$`` too. Both lists are separated by
            spaces. Addresses may be left out if the actions are any but ``send`` and ``receive``: ``create``, ``delete``,
            ``monitor`` and ``manage`` are then permitted for every address that does not begin with ``$``. A user that may
            ``create`` at some address may also have nodes whose names the container makes up.

    Raises:
        LocalProtocolError: a rule is not valid.
    """

    __slots__ = ("_known", "_rules")

    def __init__(self, *rules: tuple[str, str, str] | tuple[str, str]) -> None:
        self._rules: Final[dict[tuple[str, str], list[tuple[str, bool]]]] = {}
        self._known: Final[set[str]] = set()
        for rule in rules:
            self._add(rule)

    def _add(self, rule: tuple[str, ...]) -> None:
        if len(rule) not in (2, 3) or not all(isinstance(part, str) for part in rule):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise LocalProtocolError(
                f"{rule!r} is no rule: expected (user, actions, addresses), as in ('ada', 'send receive', 'orders/*')"
            )
        user, actions = rule[0], rule[1].split()
        addresses = rule[2].split() if len(rule) == 3 else []
        if not user or not actions or not _ACTIONS.issuperset(actions):
            raise LocalProtocolError(f"{rule!r}: expected a user, and any of {', '.join(get_args(Action))}")
        if not addresses and not {"send", "receive"}.isdisjoint(actions):
            raise LocalProtocolError(
                f"{rule!r}: expected addresses to send to or receive from, or * for all of them"
            )
        self._known.add(user)
        for action in actions:
            known = self._rules.setdefault((user, action), [])
            known.extend((each.removesuffix("*"), each.endswith("*")) for each in addresses or ("*",))

    def __call__(self, access: Access) -> bool:
        """Whether a rule permits this."""
        return any(self._permits(who, access) for who in (access.user, "*") if who is not None)

    def _permits(self, who: str, access: Access) -> bool:
        if access.action == "open":
            return who in self._known
        addresses = self._rules.get((who, access.action))
        if access.address is None or addresses is None:
            return addresses is not None
        return any(_matches(start, rest, access.address) for start, rest in addresses)

    @property
    def users(self) -> tuple[str, ...]:
        """The users that the rules name, ``*`` included, in no order."""
        return tuple(self._known)

    def __repr__(self) -> str:
        return f"<Rules for {len(self._known)} users>"


def _matches(start: str, rest: bool, address: str) -> bool:
    if not rest:
        return address == start
    return address.startswith(start) and (not address.startswith("$") or start.startswith("$"))
