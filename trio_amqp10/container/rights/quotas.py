"""How much one identity may have over all its connections, and links of a node.

Who proved a name is that identity, with all connections that it has. Who proved nothing is as many identities as
there are addresses that they come from: an IPv4 address, or the /64 of an IPv6 address; all who come in memory or by a
Unix socket are one. What is too much is refused with ``amqp:resource-limit-exceeded`` (2.8.15), logged and counted. Of deliveries nothing is refused:
they wait until there is room.

Knows figures; does not know what a link is good for.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from trio_amqp10.container.nodes.message_origin import user_of
from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.errors import Condition, LocalProtocolError
from trio_amqp10.net.login_failures import place_of

from .access import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sized

    from trio_amqp10.container.nodes.node import Node

    from .rights_holder import Subject

__all__ = ["Account", "Accounts", "Quotas"]

_log = logging.getLogger("trio_amqp10.container")

_OF_NODES: Final = ("node_senders", "node_receivers")
_FIGURES: Final = ("refused_connections", "refused_links", "withheld_deliveries")
_IDLE: Final = 1000
"""Accounts of those who have nothing, above as many as have something, before they are thrown out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Quotas:
    """How much one identity may have of a container; None, the default, for any number.

    An identity is a name that peers proved to have. Peers that proved nothing are one for each address that they
    come from: an IPv4 address, or the /64 of an IPv6 address; those in memory or on Unix sockets are one together.

    Args:
        connections: that it has at a time; one more is turned away.
        links: on all of them; one more is refused.
        unsettled: deliveries that were given to it and have no outcome yet; once it has so many, its links get no
            more until it settles some.
        unsettled_octets: the same in octets of messages, with 200 for each; one message may be larger by itself.
        node_senders: links on which peers send to one node, whoever they are; one more is refused.
        node_receivers: links on which peers receive from one node. Nodes that begin with ``$`` are not meant, nor is
            the relay.
        users: those of identities that have quotas of their own, by the name that they prove. What they leave open is
            open to them.

    Raises:
        LocalProtocolError: a quota that is not at least 1; one of a user that is not a user's own.
    """

    connections: int | None = None
    links: int | None = None
    unsettled: int | None = None
    unsettled_octets: int | None = None
    node_senders: int | None = None
    node_receivers: int | None = None
    users: Mapping[str, Quotas] = field(default_factory=dict[str, "Quotas"])

    def __post_init__(self) -> None:
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
                    f"quotas of user {user!r}: {', '.join(_OF_NODES)} and users are for all, not for one of them"
                )


class Account:
    """What one identity has.

    Attributes:
        name: for people.
        quotas: that it is held to.
        connections: that it has.
        unsettled: deliveries that were given to it and have no outcome yet.
        octets: of these.
    """

    __slots__ = ("_figures", "_waiting", "connections", "name", "octets", "quotas", "unsettled")

    def __init__(self, name: str, quotas: Quotas, figures: dict[str, int]) -> None:
        self.name: str = name
        self.quotas: Final = quotas
        self.connections: WeakSet[Subject] = WeakSet()
        self.unsettled: int = 0
        self.octets: int = 0
        self._figures = figures
        self._waiting: dict[Callable[[], object], None] = {}

    @property
    def open(self) -> list[Subject]:
        """The connections that are not over."""
        return [peer for peer in self.connections if not peer.closed]

    @property
    def links(self) -> int:
        """On all connections."""
        return sum(peer.link_count for peer in self.open)

    @property
    def idle(self) -> bool:
        """Whether it has nothing."""
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
        """Whether it is to be given nothing more until it settles something."""
        quotas = self.quotas
        return (quotas.unsettled is not None and self.unsettled >= quotas.unsettled) or (
            quotas.unsettled_octets is not None and self.octets >= quotas.unsettled_octets
        )

    def when_room(self, call: Callable[[], object]) -> None:
        """Something waits for it: call back, once, when it is not full any more; the same function is called once."""
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
        """Do not call back."""
        self._waiting.pop(call, None)

    def add_unsettled(self, size: int) -> None:
        """It was given a delivery."""
        self.unsettled += 1
        self.octets += size

    def remove_unsettled(self, size: int, count: int = 1) -> None:
        """So many deliveries, of ``size`` octets together, have their outcomes."""
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
    """The accounts of all identities that a container has to do with.

    Args:
        quotas: what they may have.

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

    def of(self, peer: Subject) -> Account:
        """The account of the peer's identity."""
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
        """Count a peer that has connected, or return why it is refused."""
        account = self.of(peer)
        if peer in account.connections:
            return None
        try:
            account.check_connection()
        except RefusedError as refusal:
            return refusal
        account.connections.add(peer)
        if len(self._accounts) > self._most:
            # What a connection leaves unsettled may outlive it, so the end of a connection is not that of an account.
            self._accounts = {key: each for key, each in self._accounts.items() if not each.idle}
            self._most = 2 * len(self._accounts) + _IDLE
        return None

    def discard(self, peer: Subject) -> None:
        """It is over."""
        self.of(peer).connections.discard(peer)

    def check_node(self, node: Node, links: Sized, what: str) -> None:
        """Raise ``RefusedError`` if this node has as many ``senders`` or ``receivers`` as it may."""
        limit = getattr(self._quotas, f"node_{what}")
        if limit is not None and node.address and not node.address.startswith("$") and len(links) >= limit:
            self.figures["refused_links"] += 1
            description = f"{shown(node.address)} has node_{what}={limit} already, which is its quota"
            _log.info("%s", description)
            raise RefusedError(Condition.RESOURCE_LIMIT_EXCEEDED, description)
