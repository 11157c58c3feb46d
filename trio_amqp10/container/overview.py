"""What a container has to show of itself and its peers, for management: one map for each connection, link and identity.

Entities come one by one, each with its identity and a function that makes its map: whoever wants one of them, or a page, makes
no more. Knows where figures are; what they mean is told by ``peer.statistics``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from .nodes.origins import user_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .connected import ConnectedPeer, LinkView
    from .rights.quotas import Account
    from .service import Container

__all__ = [
    "ACCOUNT",
    "CONNECTION",
    "CONTAINER",
    "LINK",
    "OVERVIEWS",
    "Found",
    "accounts",
    "connections",
    "links",
]

Found: TypeAlias = tuple[str, Callable[[], dict[str, Any]]]
"""An entity: its identity, and what makes its map."""


def itself(container: Container) -> Iterator[Found]:
    """The container: how much memory its messages take."""
    yield container.name, partial(_of_container, container)


def _of_container(container: Container) -> dict[str, Any]:
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


def connections(container: Container) -> Iterator[Found]:
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
    }
    return who | _figures(peer.statistics())


def links(container: Container) -> Iterator[Found]:
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


def accounts(container: Container) -> Iterator[Found]:
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
    *("reads", "writes", "waiting", "sessions", "senders", "receivers"),
)
"""The attributes of a connection."""

LINK = (
    *_PEER,
    *("connection", "peer", "role", "state", "address", "messages", "credit", "unsettled"),
    *("draining", "waiting", "available", "buffered"),
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
