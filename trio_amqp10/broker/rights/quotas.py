"""Quotas: limits for one identity over all its connections, and for one node.

An authenticated user is one identity, with all its connections. An anonymous peer is identified by its IP address: an IPv4
address, or the /64 of an IPv6 address; all anonymous peers in memory or on Unix sockets are one identity. A connection or link
beyond the quota is refused with ``amqp:resource-limit-exceeded`` (2.8.15), logged and counted. Deliveries are not refused: they
wait until there is room.

Knows figures; does not know the purpose of a link.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from trio_amqp10.broker.nodes.message_origin import user_of
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import Condition, LocalProtocolError
from trio_amqp10.core.number_fields import check_numbers
from trio_amqp10.net.login_failures import place_of

from .access import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sized

    from trio_amqp10.broker.nodes.node import Node

    from .rights_holder import Subject

_log = logging.getLogger("trio_amqp10.container")

_OF_NODES: Final = ("node_senders", "node_receivers")
_FIGURES: Final = ("refused_connections", "refused_links", "withheld_deliveries")
_IDLE: Final = 1000
"""Accounts without connections, beyond the number in use, before they are removed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Quotas:
    """Limits for one identity of a container; None, the default, for no limit.

    An identity is an authenticated name. Anonymous peers are one identity for each address: an IPv4 address, or the /64 of an IPv6
    address; those in memory or on Unix sockets are one together.

    Args:
        connections: connections at a time; one more is refused.
        links: links on all its connections; one more is refused.
        unsettled: deliveries to it that have no outcome yet; above that its links get no more until it settles some.
        unsettled_octets: the same in octets of messages, with 200 for each; one message may be larger by itself.
        node_senders: links on which all peers together send to one node; one more is refused.
        node_receivers: links on which all peers together receive from one node. Nodes that begin with ``$`` have no such
            limit, nor has the relay.
        users: quotas of single identities, by authenticated name. A limit that is None there is no limit for that user.

    Raises:
        LocalProtocolError: a quota is below 1; or a user has a quota that is for nodes, or ``users``.
    """

    connections: int | None = None
    links: int | None = None
    unsettled: int | None = None
    unsettled_octets: int | None = None
    node_senders: int | None = None
    node_receivers: int | None = None
    users: Mapping[str, Quotas] = field(default_factory=dict[str, "Quotas"])

    def __post_init__(self) -> None:
        check_numbers(self)
        for each in fields(self):
            if each.name != "users":
                limit = getattr(self, each.name)
                if limit is not None and limit < 1:
                    raise LocalProtocolError(
                        f"{each.name}={limit}: expected at least 1, or None for any number"
                    )
        for user, quotas in self.users.items():
            if quotas.users or any(getattr(quotas, name) is not None for name in _OF_NODES):
                raise LocalProtocolError(
                    f"quotas of user {user!r}: {', '.join(_OF_NODES)} and users cannot be set for one user"
                )


class Account:
    """The connections and deliveries of one identity.

    Attributes:
        name: a name for people.
        quotas: its limits.
        connections: its connections.
        unsettled: deliveries to it that have no outcome yet.
        octets: the size of these.
    """

    __slots__ = ("_figures", "_waiting", "connections", "name", "octets", "quotas", "unsettled")

    def __init__(self, name: str, quotas: Quotas, figures: dict[str, int]) -> None:
        self.name: str = name
        self.quotas: Quotas = quotas
        self.connections: WeakSet[Subject] = WeakSet()
        self.unsettled: int = 0
        self.octets: int = 0
        self._figures = figures
        self._waiting: dict[Callable[[], object], None] = {}

    @property
    def open(self) -> list[Subject]:
        """The connections that are not closed."""
        return [peer for peer in self.connections if not peer.closed]

    @property
    def links(self) -> int:
        """The number of links on all connections."""
        return sum(peer.link_count for peer in self.open)

    @property
    def idle(self) -> bool:
        """Whether it has no connection and no unsettled delivery."""
        return not self.connections and not self.unsettled

    def check_connection(self) -> None:
        """Raise ``RefusedError`` if it may not have one more connection."""
        self._check("connections", self.quotas.connections, lambda: len(self.open))

    def check_link(self) -> None:
        """Raise ``RefusedError`` if it may not have one more link."""
        self._check("links", self.quotas.links, lambda: self.links)

    def _check(self, what: str, limit: int | None, count: Callable[[], int]) -> None:
        if limit is not None and count() >= limit:
            raise self._refuse(what, f"{self.name} has {what}={limit} already, which is its quota")

    @property
    def is_full(self) -> bool:
        """Whether it must settle deliveries before it gets more."""
        quotas = self.quotas
        return (quotas.unsettled is not None and self.unsettled >= quotas.unsettled) or (
            quotas.unsettled_octets is not None and self.octets >= quotas.unsettled_octets
        )

    def when_room(self, call: Callable[[], object]) -> None:
        """Call ``call`` once when it is not full any more.

        The same function is called once, even if it was given twice.
        """
        if not self._waiting:
            self._figures["withheld_deliveries"] += 1
            _log.info(
                "%s has %d unsettled deliveries of %d octets, which is its quota: no more until it settles some",
                self.name,
                self.unsettled,
                self.octets,
            )
        self._waiting[call] = None

    def forget(self, call: Callable[[], object]) -> None:
        """Cancel ``when_room``."""
        self._waiting.pop(call, None)

    def add_unsettled(self, size: int) -> None:
        """Count one more unsettled delivery."""
        self.unsettled += 1
        self.octets += size

    def remove_unsettled(self, size: int, count: int = 1) -> None:
        """Count deliveries as settled: ``size`` octets in all."""
        self.unsettled -= count
        self.octets -= size
        if self._waiting and not self.is_full:
            waiting, self._waiting = self._waiting, {}
            for call in waiting:
                call()

    def _refuse(self, what: str, description: str) -> RefusedError:
        self._figures[f"refused_{what}"] += 1
        _log.info("%s", description)
        return RefusedError(Condition.RESOURCE_LIMIT_EXCEEDED, description)


class Accounts:
    """The accounts of all identities of a container.

    Args:
        quotas: their limits.

    Attributes:
        figures: how many connections and links were refused, and how often deliveries had to wait.
    """

    def __init__(self, quotas: Quotas) -> None:
        self.figures: dict[str, int] = dict.fromkeys(_FIGURES, 0)
        self._quotas = quotas
        self._most = _IDLE
        self._accounts: dict[tuple[str, str], Account] = {}

    def __len__(self) -> int:
        return len(self._accounts)

    def replace(self, quotas: Quotas) -> None:
        """Use these limits from now on; connections and links above them stay."""
        self._quotas = quotas
        for (kind, name), account in self._accounts.items():
            account.quotas = quotas.users.get(name, quotas) if kind == "user" else quotas
            account.remove_unsettled(0, 0)

    def of(self, peer: Subject) -> Account:
        """Return the account of the peer's identity."""
        user = user_of(peer.identity)
        if user is not None:
            return self._account(("user", user), shown(user), self._quotas.users.get(user, self._quotas))
        where = place_of(peer.host)
        return self._account(("host", where), f"a peer at {where} that is not authenticated", self._quotas)

    def _account(self, key: tuple[str, str], name: str, quotas: Quotas) -> Account:
        account = self._accounts.get(key)
        if account is None:
            account = self._accounts[key] = Account(name, quotas, self.figures)
        return account

    def admit(self, peer: Subject) -> RefusedError | None:
        """Count a new connection; return the refusal if the quota is reached."""
        account = self.of(peer)
        if peer in account.connections:
            return None
        try:
            account.check_connection()
        except RefusedError as refusal:
            return refusal
        account.connections.add(peer)
        if len(self._accounts) > self._most:
            # Unsettled deliveries may outlive their connection, so accounts cannot be removed when a connection ends.
            self._accounts = {key: each for key, each in self._accounts.items() if not each.idle}
            self._most = 2 * len(self._accounts) + _IDLE
        return None

    def discard(self, peer: Subject) -> None:
        """Remove a connection that has ended."""
        self.of(peer).connections.discard(peer)

    def check_node(self, node: Node, links: Sized, what: str) -> None:
        """Raise ``RefusedError`` if this node has reached its quota.

        ``what`` is ``"senders"`` or ``"receivers"``.
        """
        limit = getattr(self._quotas, f"node_{what}")
        if limit is not None and node.address and not node.address.startswith("$") and len(links) >= limit:
            self.figures["refused_links"] += 1
            description = f"{shown(node.address)} has node_{what}={limit} already, which is its quota"
            _log.info("%s", description)
            raise RefusedError(Condition.RESOURCE_LIMIT_EXCEEDED, description)
