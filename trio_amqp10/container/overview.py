"""What management shows of a container: connections, links and accounts.

Entities come one by one, each with its identity and a function that makes its map: a request for one of them, or for a
page, makes no more. Knows where figures are; ``peer.statistics`` describes what they mean.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from .nodes.message_origin import user_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .connected_peer import ConnectedPeer, LinkView
    from .nodes.node import Node
    from .nodes.queue import Queue
    from .nodes.topic import Topic
    from .nodes.watermark import Watermark
    from .rights.quotas import Account
    from .stores.node_settings import NodeSettings

__all__ = [
    "ACCOUNT",
    "CONNECTION",
    "CONTAINER",
    "LINK",
    "OVERVIEWS",
    "Found",
    "Managed",
    "Overseen",
    "accounts",
    "connections",
    "links",
]

Found: TypeAlias = tuple[str, Callable[[], dict[str, Any]]]
"""An entity: its identity, and what makes its map."""


class Overseen(Protocol):
    """A container, as far as it is shown."""

    @property
    def name(self) -> str:
        """What peers see as its container-id."""
        ...

    @property
    def watermark(self) -> Watermark:
        """Counts what messages take."""
        ...

    @property
    def connected(self) -> Sequence[ConnectedPeer]:
        """The peers that are connected now, oldest first."""
        ...


class Managed(Overseen, Protocol):
    """A container, as far as it is managed."""

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes that there are, by address."""
        ...

    @property
    def settings(self) -> NodeSettings | None:
        """The nodes that were made through management; None without a store."""
        ...

    @property
    def add_queue(self) -> Callable[..., Queue]:
        """See ``Container.add_queue``."""
        ...

    @property
    def add_topic(self) -> Callable[..., Topic]:
        """See ``Container.add_topic``."""
        ...

    def remove_node(self, address: str) -> None:
        """See ``Container.remove_node``."""
        ...


def itself(container: Overseen) -> Iterator[Found]:
    """The container: how much memory its messages take."""
    yield container.name, partial(_of_container, container)


def _of_container(container: Overseen) -> dict[str, Any]:
    mark = container.watermark
    return {
        "name": container.name,
        "identity": container.name,
        "type": "container",
        "held-octets": mark.octets,
        "memory-limit": mark.limit,
        "throttled": mark.high,
        "refused-for-memory": mark.refused,
    }


def connections(container: Overseen) -> Iterator[Found]:
    """Every connection that there is, by a number that no other has had."""
    for peer in container.connected:
        yield f"{peer.number}", partial(_of_connection, peer)


def _of_connection(peer: ConnectedPeer) -> dict[str, Any]:
    who = {
        "name": peer.container_id,
        "identity": f"{peer.number}",
        "type": "connection",
        "user": user_of(peer.identity),
        "leases": peer.leases,
        "working": peer.working,
        "protocol": "AMQP 1.0",
    }
    return who | _figures(peer.statistics())


def links(container: Overseen) -> Iterator[Found]:
    """Every link that there is: its role is ours, as is the address that it leads to."""
    for peer in container.connected:
        for link in peer.links():
            yield f"{peer.number}/{link.role}/{link.name}", partial(_of_link, peer, link)


def _of_link(peer: ConnectedPeer, link: LinkView) -> dict[str, Any]:
    figures = _figures(link.statistics())
    who = {
        "name": link.name,
        "identity": f"{peer.number}/{link.role}/{link.name}",
        "type": "link",
        "connection": f"{peer.number}",
        "peer": peer.container_id,
        "role": link.role,
    }
    return who | figures


def accounts(container: Overseen) -> Iterator[Found]:
    """What each identity has that is connected; nothing where there are no quotas."""
    found = dict.fromkeys(peer.account for peer in container.connected if peer.account is not None)
    for account in found:
        yield account.name, partial(_of_account, account)


def _of_account(account: Account) -> dict[str, Any]:
    return {
        "name": account.name,
        "identity": account.name,
        "type": "account",
        "connections": len(account.open),
        "links": account.links,
        "unsettled": account.unsettled,
        "unsettled-octets": account.octets,
    }


def _figures(statistics: Mapping[str, Any]) -> dict[str, Any]:
    """Named as attributes of management are."""
    return {name.replace("_", "-"): value for name, value in statistics.items()}


_PEER = ("name", "identity", "type")

CONNECTION = (
    *_PEER,
    *(
        "user",
        "leases",
        "working",
        "state",
        "transports",
        "octets-in",
        "octets-out",
        "frames-in",
        "frames-out",
        "messages-in",
        "messages-out",
    ),
    *("reads", "writes", "waiting", "sessions", "senders", "receivers", "protocol"),
)
"""The attributes of a connection."""

LINK = (
    *_PEER,
    *("connection", "peer", "role", "state", "address", "messages", "credit", "unsettled"),
    *("draining", "waiting", "available", "buffered", "missettled"),
)
"""The attributes of a link, of either role."""

ACCOUNT = (*_PEER, "connections", "links", "unsettled", "unsettled-octets")
"""The attributes of an account, what one identity has."""

CONTAINER = (*_PEER, "held-octets", "memory-limit", "throttled", "refused-for-memory")
"""The attributes of the container itself."""

OVERVIEWS = {
    "container": (itself, CONTAINER),
    "connection": (connections, CONNECTION),
    "link": (links, LINK),
    "account": (accounts, ACCOUNT),
}
"""What there is to see beside nodes: how to get it, and its attributes."""
