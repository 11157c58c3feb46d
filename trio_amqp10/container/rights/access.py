"""Who may do what in a container: the question, and a table that answers it.

================  ==========================================  ==============================================
action            a peer wants to                             address
================  ==========================================  ==============================================
open              have a connection                           None
send              send to a node                              of the node
receive           receive from a node, browse or purge it     of the node
create            have a node made                            of the node; None if the container makes up its
                                                              name, as for a dynamic node (3.5.3)
delete            have a node deleted                         of the node
transact          declare transactions (4.1)                  None
================  ==========================================  ==============================================

A link to the anonymous terminus needs no permission; each message on it needs one, by its ``to``. A reply
that a node sends to the address in the request needs one too: otherwise a peer that may send a request could have
the node write for it. Nodes that were made for a connection are that connection's own, and need no permission.

The question comes before the look at what is there, so a refusal is the same whether the node exists or not.

Knows no links and no connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from trio_amqp10.container.nodes.message_origin import user_of
from trio_amqp10.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio_amqp10.sasl import Identity

    from .claims import Claim

__all__ = ["Access", "Action", "Authorise", "Rules", "permit_claimed", "shown"]

Action = Literal["open", "send", "receive", "create", "delete", "transact"]

_ACTIONS: Final = frozenset(get_args(Action))

_SHOWN: Final = 64
"""Characters of a name that an error shows."""

_DOINGS: Final = {
    "open": "have a connection",
    "send": "send to",
    "receive": "receive from",
    "create": "create",
    "delete": "delete",
    "transact": "declare transactions",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a peer wants to do: the question that ``Container(authorise=...)`` answers.

    Attributes:
        action: ``"open"``, ``"send"``, ``"receive"``, ``"create"``, ``"delete"`` or ``"transact"``; as seen from the peer.
        address: of the node; None for ``open`` and ``transact``, and for ``create`` if the container makes up the name.
        identity: the authenticated identity of the peer; None without a SASL layer.
        container_id: what the peer calls itself, and has not proved.
        claims: what tokens that it put to ``$cbs`` say, as long as they are good.
    """

    action: Action
    address: str | None
    identity: Identity | None
    container_id: str
    claims: tuple[Claim, ...] = ()

    @property
    def user(self) -> str | None:
        """The name that the peer proved to have; None for one that proved nothing, with ANONYMOUS or without SASL."""
        return user_of(self.identity)

    @property
    def claimed(self) -> bool:
        """Whether one of the claims permits it."""
        return any(claim.permits(self.action, self.address) for claim in self.claims)

    def refusal(self) -> str:
        """The description for a peer that may not."""
        who = "a peer that is not authenticated" if self.user is None else shown(self.user)
        if self.address is not None:
            return f"{who} may not {_DOINGS[self.action]} {shown(self.address)}"
        doing = "have a node made" if self.action == "create" else _DOINGS[self.action]
        return f"{who} may not {doing}"


def shown(name: str) -> str:
    """Part of an error that has to fit into the smallest frame."""
    return repr(name) if len(name) <= _SHOWN else f"{name[:_SHOWN]!r}..."


Authorise: TypeAlias = "Callable[[Access], bool | Awaitable[bool]]"
"""A function, or an async one, that returns True to permit; all else refuses. ``RefusedError`` refuses in its words."""


def permit_claimed(access: Access) -> bool:
    """Everybody may connect, and then do what their claims permit; what holds where only ``$cbs`` is asked."""
    return access.action == "open" or access.claimed


class Rules:
    """A table of who may do what: ``Container(authorise=Rules(("ada", "send receive", "orders/*"), ...))``.

    What no rule permits is refused. Whom a rule names may open a connection, without a rule of its own.

    Args:
        rules: each a user, actions and addresses, as strings. The user is a name that was proved, or
            ``*`` for everybody, proved or not. The actions are any of ``send``, ``receive``,
            ``create``, ``delete``, ``transact`` and ``open``. The addresses are one address, or the beginning of
            many and ``*``; addresses that begin with ``$``, such as ``$management``, are meant only by a
            rule that begins so too. Both lists are separated by spaces. Addresses may be left out if
            the actions are any of the last four: ``create`` and ``delete`` are then permitted for every address
            that does not begin with ``$``. Whoever may ``create`` at some address may also have nodes whose
            names the container makes up.

    Raises:
        LocalProtocolError: a rule that is none.
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
                f"{rule!r} is no rule: (user, actions, addresses), as in ('ada', 'send receive', 'orders/*')"
            )
        user, actions = rule[0], rule[1].split()
        addresses = rule[2].split() if len(rule) == 3 else []
        if not user or not actions or not _ACTIONS.issuperset(actions):
            raise LocalProtocolError(f"{rule!r}: a user, and any of {', '.join(get_args(Action))}, are due")
        if not addresses and not {"send", "receive"}.isdisjoint(actions):
            raise LocalProtocolError(f"{rule!r}: to send to or receive from which addresses? * means all")
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

    def __repr__(self) -> str:
        return f"<Rules for {len(self._known)} users>"


def _matches(start: str, rest: bool, address: str) -> bool:
    if not rest:
        return address == start
    return address.startswith(start) and (not address.startswith("$") or start.startswith("$"))
