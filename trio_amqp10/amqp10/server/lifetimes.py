"""The address, lifetime and properties of a dynamic node (3.5.3, 3.5.9 to 3.5.13).

================================  =================================================================
lifetime-policy                   the node exists
================================  =================================================================
delete-on-close                   while the link exists that created it; this is also the default
delete-on-no-links                while links to it or from it exist
delete-on-no-messages             while the link exists that created it, or the node has messages
delete-on-no-links-or-messages    while links to it or from it exist, or the node has messages
================================  =================================================================

Knows what keeps a node; does not know which nodes there are.
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.spec.messaging import (
    DeleteOnClose,
    DeleteOnNoLinks,
    DeleteOnNoLinksOrMessages,
    DeleteOnNoMessages,
    DistributionMode,
)
from trio_amqp10.amqp10.wire.values import Array

if TYPE_CHECKING:
    from collections.abc import Mapping

TEMPORARY: Final = "temporary/"
"""The prefix of the addresses of dynamic nodes, and of no others."""
_SHOWN: Final = 64

_LIFETIMES: Final[dict[type, frozenset[str]]] = {
    DeleteOnClose: frozenset({"maker"}),
    DeleteOnNoLinks: frozenset({"links"}),
    DeleteOnNoMessages: frozenset({"maker", "messages"}),
    DeleteOnNoLinksOrMessages: frozenset({"links", "messages"}),
}


def temporary_address(container_id: str, link_name: str) -> str:
    """Return an address that cannot be guessed and names its creator (3.5.3).

    Each of both names is cut to 64 characters, and has ``_`` in place of characters that a path would have to quote.
    """
    names = [re.sub(r"[^\w.-]", "_", name[:_SHOWN]) for name in (container_id, link_name)]
    return TEMPORARY + "/".join([str(uuid.uuid4()), *names])


def kept_by(asked: Mapping[Any, Any] | None) -> frozenset[str]:
    """Return what keeps a node: any of ``maker``, ``links`` and ``messages``."""
    return _LIFETIMES[type(_policy(asked))]


def actual_properties(asked: Mapping[Any, Any] | None) -> dict[str, Any]:
    """Return the properties of a dynamic node, given the properties asked for (3.5.9)."""
    return {
        "lifetime-policy": _policy(asked),
        "supported-dist-modes": Array([DistributionMode.MOVE, DistributionMode.COPY], "symbol"),
    }


def _policy(asked: Mapping[Any, Any] | None) -> Any:
    policy: Any = asked.get("lifetime-policy") if asked else None
    return policy if type(policy) in _LIFETIMES else DeleteOnClose()
