"""How long a dynamic node lives, and what its maker is told of it (3.5.9 to 3.5.13).

================================  =================================================================
delete-on-close                   as long as the link that made it; so too where nothing is asked for
delete-on-no-links                as long as links to it or from it
delete-on-no-messages             as long as the link that made it, and messages on it
delete-on-no-links-or-messages    as long as links to it or from it, and messages on it
================================  =================================================================

Knows what keeps a node; does not know which nodes there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.spec.messaging import (
    DeleteOnClose,
    DeleteOnNoLinks,
    DeleteOnNoLinksOrMessages,
    DeleteOnNoMessages,
    DistributionMode,
)
from trio_amqp10.wire.values import Array

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["actual_properties", "kept_by"]

_LIFETIMES: Final[dict[type, frozenset[str]]] = {
    DeleteOnClose: frozenset({"maker"}),
    DeleteOnNoLinks: frozenset({"links"}),
    DeleteOnNoMessages: frozenset({"maker", "messages"}),
    DeleteOnNoLinksOrMessages: frozenset({"links", "messages"}),
}


def kept_by(asked: Mapping[Any, Any] | None) -> frozenset[str]:
    """What keeps a node with these properties: any of ``maker``, ``links`` and ``messages``."""
    return _LIFETIMES[type(_policy(asked))]


def actual_properties(asked: Mapping[Any, Any] | None) -> dict[str, Any]:
    """The properties that the node has, whatever was asked for (3.5.3, 3.5.9)."""
    return {
        "lifetime-policy": _policy(asked),
        "supported-dist-modes": Array([DistributionMode.MOVE, DistributionMode.COPY], "symbol"),
    }


def _policy(asked: Mapping[Any, Any] | None) -> Any:
    policy: Any = asked.get("lifetime-policy") if asked else None
    return policy if type(policy) in _LIFETIMES else DeleteOnClose()
