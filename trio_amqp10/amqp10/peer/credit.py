"""Keep the credit of a receiving link topped up (2.6.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp10.engine.states import LinkState

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.engine.delivery import IncomingDelivery
    from trio_amqp10.amqp10.engine.receiver import ReceiverLink

_ATTACHED = LinkState.ATTACHED


class CreditWindow:
    """A bound on the deliveries that a link has granted or buffered together.

    Credit is granted again when half of it is used, not for each delivery.

    Attributes:
        size: messages; 0 if no credit is granted automatically.
        half: the number of granted and buffered messages at which more are granted.
    """

    __slots__ = ("half", "size")

    def __init__(self, size: int) -> None:
        self.size: int = size
        self.half: int = size // 2

    def is_low(self, link: ReceiverLink) -> bool:
        """Whether it is time to grant more; False while the link is not attached."""
        return link.credit + len(link.queue) <= self.half and self.size > 0 and link.state is _ATTACHED

    def fill(self, link: ReceiverLink, most: int | None = None) -> None:
        """Grant the credit that is missing, but never more than ``most``."""
        credit = self.size - len(link.queue)
        if most is not None and most < credit:
            credit = most
        if credit > link.credit:
            link.set_credit(credit)


class PrefetchWindow(CreditWindow):
    """A bound on the deliveries that a link has granted or unsettled together.

    Unsettled deliveries count whether they are buffered or the program has them; settling makes room. A
    delivery that was sent settled counts while it is buffered.
    """

    __slots__ = ()

    def __init__(self, size: int) -> None:
        super().__init__(size)
        # Grant again when only an eighth is free: slow workers hold most of the window, and the others must not wait.
        self.half: int = size - max(1, size // 8)

    def count(self, link: ReceiverLink, settled: Callable[[], object]) -> None:
        """Call ``settled`` after each settled delivery of ``link``.

        Must be called before the link has granted credit.
        """
        link.tags = _CountedTags(link.tags, settled)

    def is_low(self, link: ReceiverLink) -> bool:
        return link.credit + _in_use(link) <= self.half and self.size > 0 and link.state is _ATTACHED

    def fill(self, link: ReceiverLink, most: int | None = None) -> None:
        credit = self.size - _in_use(link)
        if most is not None and most < credit:
            credit = most
        if credit > link.credit:
            link.set_credit(credit)


def _in_use(link: ReceiverLink) -> int:
    return max(len(link.tags), len(link.queue))


class _CountedTags(dict[bytes, "IncomingDelivery"]):
    """The unsettled deliveries of a link by tag; calls back after each removal."""

    __slots__ = ("_settled",)

    def __init__(self, tags: dict[bytes, IncomingDelivery], settled: Callable[[], object]) -> None:
        super().__init__(tags)
        self._settled = settled

    def pop(self, *tag: Any) -> Any:
        found = super().pop(*tag)
        self._settled()
        return found
