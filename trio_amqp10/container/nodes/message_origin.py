"""Who sent a message, for receivers that want none of their own (``no-local``).

A container-id proves nothing, so the peer is the same if it proved to be the same user, too. An origin is a str, for the
store: the container-id of a peer that is not authenticated, as stores have it that knew no more, else both as JSON. None can
be taken for another: a container-id that looks like JSON is written as JSON itself.

Knows peers; knows no message.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from .node import Owner, Peer

__all__ = ["origin_of", "origin_of_owner", "user_of"]


def origin_of(peer: Peer) -> str:
    """The origin of what this peer sends."""
    return origin_of_owner((peer.container_id, user_of(peer.identity)))


def origin_of_owner(owner: Owner) -> str:
    """The same, of the peer with this container-id that proved to be this user, or none."""
    container_id, user = owner
    return container_id if user is None and not container_id.startswith("[") else json.dumps(owner)


def user_of(identity: Any) -> str | None:
    """The name that a peer proved to have; None for one that proved nothing, with ANONYMOUS or without SASL."""
    return None if identity is None or identity.mechanism == "ANONYMOUS" else cast("str", identity.name)
