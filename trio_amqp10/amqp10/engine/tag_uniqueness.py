"""Keep delivery-tags unique among the unsettled deliveries of a link (2.6.12).

Tags that we make are the numbers of a link's deliveries, in four octets, and unique by themselves; see
``sender``. This module checks tags that a caller chose (2.8.7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from trio_amqp10.core.errors import LocalProtocolError

from .serial_numbers import MASK
from .unsettled_map import MAX_TAG

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from .delivery import OutgoingDelivery

MADE_SIZE: Final = 4
"""Octets of a tag that we make; a chosen tag of this size may be equal to one."""

_FEW: Final = 64


class ChosenTags:
    """The unsettled deliveries of one link that have chosen tags, by tag.

    After a caller has chosen a tag of ``MADE_SIZE`` octets, deliveries with other tags are included. Settled
    deliveries are not reported to this object: they are removed when they may be half of all.

    Attributes:
        has_all: whether the deliveries whose tags we made are included.
    """

    __slots__ = ("_held", "_most", "has_all")

    def __init__(self) -> None:
        self.has_all: bool = False
        self._held: dict[bytes, OutgoingDelivery] = {}
        self._most = _FEW

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, tag: object) -> bool:
        """Whether an unsettled delivery has this tag."""
        delivery = self._held.get(cast("bytes", tag))
        return delivery is not None and not delivery.settled

    def add(self, delivery: OutgoingDelivery) -> None:
        """Add a delivery that was sent unsettled, under a tag that is free."""
        held = self._held
        if len(held) >= self._most:
            held = self._held = {tag: each for tag, each in held.items() if not each.settled}
            self._most = max(_FEW, 2 * len(held))
        held[delivery.tag] = delivery

    def add_all(self, deliveries: Iterable[OutgoingDelivery]) -> None:
        """Add the earlier deliveries of the link, once."""
        self.has_all = True
        for delivery in deliveries:
            self.add(delivery)

    def free(self, number: int) -> int:
        """Return the first number from ``number`` on whose tag is free."""
        while number.to_bytes(MADE_SIZE, "big") in self:
            number = (number + 1) & MASK
        return number


def check_tag(tag: bytes, kept: Container[bytes], chosen: Container[bytes]) -> None:
    """Raise if a chosen tag is too long, or another delivery has it.

    Args:
        tag: the tag.
        kept: the tags of the link's terminus.
        chosen: the tags of the link's own deliveries that must be checked.

    Raises:
        LocalProtocolError: the tag is too long, or an unsettled delivery has it.
    """
    if len(tag) > MAX_TAG:
        raise LocalProtocolError(
            f"the delivery tag has {len(tag)} octets: expected at most {MAX_TAG} (2.8.7)"
        )
    if tag in kept or tag in chosen:
        raise LocalProtocolError(
            f"an unsettled delivery has the delivery-tag {tag!r} (2.6.12): choose another tag, or wait until "
            "that delivery is settled"
        )
