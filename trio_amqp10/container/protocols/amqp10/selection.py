"""What the filters of a source pass (3.5.8), as nodes and stores have it.

Knows filters and messages; knows no links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from trio_amqp10.container.nodes.message_origin import origin_of_owner
from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.filters import FilterError, parse_filters
from trio_amqp10.message import Message
from trio_amqp10.wire.decode import decode
from trio_amqp10.wire.encode import encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.container.nodes.content import Content
    from trio_amqp10.container.nodes.form_registry import Wants
    from trio_amqp10.container.nodes.node import Owner
    from trio_amqp10.filters import FilterSet

__all__ = ["Filters", "read_filters", "wanted_by"]


class Filters:
    """The filter-set of a source; equal to another of the same filters.

    Args:
        applied: those that are applied, by name.
    """

    __slots__ = ("_applied",)

    number = 0

    def __init__(self, applied: Mapping[Any, Any]) -> None:
        self._applied = dict(applied)

    def to_octets(self) -> bytes:
        """As an attach carries them."""
        return encode(self._applied)

    def __eq__(self, other: object) -> bool:
        return self._applied == other._applied if isinstance(other, Filters) else NotImplemented

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # as what it holds

    def __repr__(self) -> str:
        return f"Filters({self._applied!r})"


def read_filters(octets: bytes, owner: Owner) -> tuple[Filters, Wants | None]:
    """The filters of a subscription that a store has, and which messages they pass.

    Raises:
        ValueError: they cannot be read.
    """
    try:
        applied: Any = decode(octets)[0]
        return Filters(applied), wanted_by(owner, parse_filters(applied))
    except (RemoteProtocolError, FilterError) as fault:
        raise ValueError(str(fault)) from fault


def wanted_by(owner: Owner, filters: FilterSet) -> Wants | None:
    """Whether this peer wants a message, given its origin; None if it wants all (3.5.8)."""
    if not filters:
        return None
    mine = origin_of_owner(owner)

    def wants(content: Content | Message, origin: str | None) -> bool:
        message = content if isinstance(content, Message) else content.as_message()
        return filters.matches(message, link_container_id=mine, origin=origin)

    return wants
