"""Deliveries as arrivals at a node: they have content, too.

Knows deliveries; knows no links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from trio_amqp10.message import Message
from trio_amqp10.peer.delivery import Delivery

from .content import Opaque, Sections

if TYPE_CHECKING:
    from trio_amqp10.container.nodes.content import Content

__all__ = ["Arriving", "arriving"]


class Arriving(Delivery):
    """A delivery that a node takes."""

    __slots__ = ()

    @property
    def content(self) -> Content:
        """What came, as nodes hold it."""
        if self.message_format:
            return Opaque(self.message_format, self.payload)
        return Sections(self.payload, None if self.message_class is Message else self.message)


_derived: Final[dict[type[Delivery], type[Arriving]]] = {Delivery: Arriving}


def arriving(plain: type[Delivery]) -> type[Arriving]:
    """Deliveries of this class that nodes take."""
    made = _derived.get(plain)
    if made is None:
        bases = (Arriving, plain)
        made = _derived[plain] = cast(
            "type[Arriving]", type(f"Arriving{plain.__name__}", bases, {"__slots__": ()})
        )
    return made
