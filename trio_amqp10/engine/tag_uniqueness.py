"""Delivery-tags: unique among the unsettled ones of a link (2.6.12, 2.8.7).

Those that we make are the numbers of a link's deliveries, in four octets, and are unique by themselves; see
``sender``. What is kept here, and looked at, are those that somebody chose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from trio_amqp10.errors import LocalProtocolError

from .serial_numbers import MASK
from .unsettled_map import MAX_TAG

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from .delivery import OutgoingDelivery

__all__ = ["MADE_SIZE", "ChosenTags", "check_tag"]

MADE_SIZE: Final = 4
"""Octets of a tag that we make: one that is chosen, and as long, may be one of those."""

_FEW: Final = 64


class ChosenTags:
    """The deliveries of one link whose tags were chosen, by tag; the others too, once a tag was chosen that may be one of ours.

    Nobody tells it when one is settled: those are dropped when they may be half of all.

    Attributes:
        has_all: whether those whose tags we made are here, too.
    """

    __slots__ = ("_held", "_most", "has_all")

    def __init__(self) -> None:
        self.has_all: bool = False
        self._held: dict[bytes, OutgoingDelivery] = {}
        self._most = _FEW

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, tag: object) -> bool:
        """Whether a delivery that is not settled has this tag."""
        delivery = self._held.get(cast("bytes", tag))
        return delivery is not None and not delivery.settled

    def add(self, delivery: OutgoingDelivery) -> None:
        """This delivery went out unsettled, under a tag that was not held."""
        held = self._held
        if len(held) >= self._most:
            held = self._held = {tag: each for tag, each in held.items() if not each.settled}
            self._most = max(_FEW, 2 * len(held))
        held[delivery.tag] = delivery

    def add_all(self, deliveries: Iterable[OutgoingDelivery]) -> None:
        """Add what the link has sent so far: one pass, so that no tag that is chosen costs another."""
        self.has_all = True
        for delivery in deliveries:
            self.add(delivery)

    def free(self, number: int) -> int:
        """The first number from this one on whose tag is not held."""
        while number.to_bytes(MADE_SIZE, "big") in self:
            number = (number + 1) & MASK
        return number


def check_tag(tag: bytes, kept: Container[bytes], chosen: Container[bytes]) -> None:
    """Refuse a tag that somebody chose, where it is none, or another delivery has it.

    Args:
        tag: which.
        kept: the tags that the link's terminus has.
        chosen: those of the link's own deliveries, as far as they have to be looked at.

    Raises:
        LocalProtocolError: it is too long, or that of a delivery which is not settled.
    """
    if len(tag) > MAX_TAG:
        raise LocalProtocolError(
            f"a delivery tag of {len(tag)} octets: at most {MAX_TAG} are possible (2.8.7)"
        )
    if tag in kept or tag in chosen:
        raise LocalProtocolError(
            f"delivery-tag {tag!r} is that of an unsettled delivery (2.6.12): choose another, or wait until "
            "that one is settled"
        )
