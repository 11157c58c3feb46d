"""What a container has to tell of its peers, for management: one map for each connection, link and identity.

Knows where figures are; what they mean is told by ``peer.statistics``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .rights.access import user_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .links.conversation import Conversation

__all__ = ["ACCOUNT", "CONNECTION", "LINK", "OVERVIEWS", "accounts", "connections", "links"]


def connections(conversations: Iterable[Conversation]) -> list[dict[str, Any]]:
    """Every connection that there is, by a number that no other has had."""
    found: list[dict[str, Any]] = []
    for peer in conversations:
        identity = f"{peer.number}"
        who = {
            "name": peer.container_id,
            "identity": identity,
            "type": "connection",
            "user": user_of(peer.identity),
            "leases": peer.leases,
            "working": peer.working,
        }
        found.append(who | _figures(peer.connection.statistics()))
    return found


def links(conversations: Iterable[Conversation]) -> list[dict[str, Any]]:
    """Every link that there is: its role is ours, as is the address that it leads to."""
    found: list[dict[str, Any]] = []
    for peer in conversations:
        for link in peer.connection.links:
            figures = _figures(link.statistics())
            identity = f"{peer.number}/{figures['role']}/{link.name}"
            who = {
                "name": link.name,
                "identity": identity,
                "type": "link",
                "connection": f"{peer.number}",
                "peer": peer.container_id,
            }
            found.append(who | figures)
    return found


def accounts(conversations: Iterable[Conversation]) -> list[dict[str, Any]]:
    """What each identity has that is connected; nothing where there are no quotas."""
    found = dict.fromkeys(peer.account for peer in conversations if peer.account is not None)
    return [
        {
            "name": account.name,
            "identity": account.name,
            "type": "account",
            "connections": len(account.open),
            "links": account.links,
            "unsettled": account.unsettled,
            "unsettled-octets": account.octets,
        }
        for account in found
    ]


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

OVERVIEWS = {
    "connection": (connections, CONNECTION),
    "link": (links, LINK),
    "account": (accounts, ACCOUNT),
}
"""What there is to see beside nodes: how to get it, and its attributes."""
