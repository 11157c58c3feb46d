"""The origin of a message, for receivers that exclude their own (``no-local``).

A container-id alone proves nothing, so two peers are the same if their authenticated user is the same as well. An origin is
a ``str``, for the store: the container-id of a peer that is not authenticated, or both names as JSON. The two forms cannot
be confused, because a container-id that looks like JSON is itself written as JSON.

Knows peers; knows no message.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from .node import Owner, Peer


def origin_of(peer: Peer) -> str:
    """Return the origin of messages from this peer."""
    return origin_of_owner((peer.container_id, user_of(peer.identity)))


def origin_of_owner(owner: Owner) -> str:
    """Return the origin of messages from the peer with these names."""
    container_id, user = owner
    return container_id if user is None and not container_id.startswith("[") else json.dumps(owner)


def user_of(identity: Any) -> str | None:
    """Return the authenticated name of a peer, or None.

    None for ANONYMOUS, and without SASL.
    """
    return None if identity is None or identity.mechanism == "ANONYMOUS" else cast("str", identity.name)
