"""The filters of a source (3.5.8), for nodes and stores.

Knows filters and messages; knows no links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from trio_amqp10.amqp10.filters import FilterError, parse_filters
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.broker.nodes.message_origin import origin_of_owner
from trio_amqp10.core.errors import RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp10.filters import FilterSet
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.form_registry import Wants
    from trio_amqp10.broker.nodes.node import Owner


class Filters:
    """The filter-set of a source; equal to another set of the same filters.

    Args:
        applied: the filters that are applied, by name.
    """

    __slots__ = ("_applied",)

    number = 0

    def __init__(self, applied: Mapping[Any, Any]) -> None:
        self._applied = dict(applied)

    def to_octets(self) -> bytes:
        """Return the filters in the encoding of an attach."""
        return encode(self._applied)

    def __eq__(self, other: object) -> bool:
        return self._applied == other._applied if isinstance(other, Filters) else NotImplemented

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # It holds a dict.

    def __repr__(self) -> str:
        return f"Filters({self._applied!r})"


def read_filters(octets: bytes, owner: Owner) -> tuple[Filters, Wants | None]:
    """Return the stored filters of a subscription, and the function that applies them.

    Raises:
        ValueError: they cannot be read.
    """
    try:
        applied: Any = decode(octets)[0]
        return Filters(applied), wanted_by(owner, parse_filters(applied))
    except (RemoteProtocolError, FilterError) as fault:
        raise ValueError(str(fault)) from fault


def wanted_by(owner: Owner, filters: FilterSet) -> Wants | None:
    """Return a function that applies the filters to a message and its origin (3.5.8).

    Return None if all messages pass.
    """
    if not filters:
        return None
    mine = origin_of_owner(owner)

    def wants(content: Content | Message, origin: str | None) -> bool:
        message = content if isinstance(content, Message) else content.as_message()
        return filters.matches(message, link_container_id=mine, origin=origin)

    return wants
