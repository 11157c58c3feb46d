"""The address, lifetime and properties of a dynamic node (3.5.3, 3.5.9 to 3.5.13).

================================  =================================================================
delete-on-close                   as long as the link that made it; so too where nothing is asked for
delete-on-no-links                as long as links to it or from it
delete-on-no-messages             as long as the link that made it, and messages on it
delete-on-no-links-or-messages    as long as links to it or from it, and messages on it
================================  =================================================================

Knows what keeps a node; does not know which nodes there are.
"""

from __future__ import annotations

import re
import uuid
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

__all__ = ["TEMPORARY", "actual_properties", "kept_by", "temporary_address"]

TEMPORARY: Final = "temporary/"
"""What the addresses of dynamic nodes begin with, and no others."""
_SHOWN: Final = 64

_LIFETIMES: Final[dict[type, frozenset[str]]] = {
    DeleteOnClose: frozenset({"maker"}),
    DeleteOnNoLinks: frozenset({"links"}),
    DeleteOnNoMessages: frozenset({"maker", "messages"}),
    DeleteOnNoLinksOrMessages: frozenset({"links", "messages"}),
}


def temporary_address(container_id: str, link_name: str) -> str:
    """An address that cannot be guessed, and that says who had it made, as it should (3.5.3).

    Of both names there are 64 characters at most, and ``_`` in place of all that a path would have to quote.
    """
    names = [re.sub(r"[^\w.-]", "_", name[:_SHOWN]) for name in (container_id, link_name)]
    return TEMPORARY + "/".join([str(uuid.uuid4()), *names])


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
