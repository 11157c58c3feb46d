"""Keep the credit of a receiving link topped up (2.6.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.engine.states import LinkState

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.engine.delivery import IncomingDelivery
    from trio_amqp10.engine.receiver import ReceiverLink

__all__ = ["CreditWindow", "PrefetchWindow"]

_ATTACHED = LinkState.ATTACHED


class CreditWindow:
    """How many deliveries a link keeps granted or waiting; asked for by halves, not one by one.

    Attributes:
        size: messages; 0 if nothing is granted by itself.
        half: at so many, more are granted.
    """

    __slots__ = ("half", "size")

    def __init__(self, size: int) -> None:
        self.size: int = size
        self.half: int = size // 2

    def is_low(self, link: ReceiverLink) -> bool:
        """Whether it is time to grant more; False while the link is not attached."""
        return link.credit + len(link.queue) <= self.half and self.size > 0 and link.state is _ATTACHED

    def fill(self, link: ReceiverLink, most: int | None = None) -> None:
        """Grant what is missing, but never more than ``most``."""
        credit = self.size - len(link.queue)
        if most is not None and most < credit:
            credit = most
        if credit > link.credit:
            link.set_credit(credit)


class PrefetchWindow(CreditWindow):
    """How many deliveries a link may have granted or unsettled, whether they wait or are in the program's hands.

    Settling makes room. Deliveries that are settled from the start count while they wait.
    """

    __slots__ = ()

    def __init__(self, size: int) -> None:
        super().__init__(size)
        # Nearly all are in use, so that workers do not run dry while others work.
        self.half: int = size - max(1, size // 8)

    def count(self, link: ReceiverLink, settled: Callable[[], object]) -> None:
        """Call ``settled`` whenever a delivery of ``link`` has been settled; for a link that has given no credit yet."""
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
    """The unsettled deliveries of a link, by their tags; calls when there is one fewer."""

    __slots__ = ("_settled",)

    def __init__(self, tags: dict[bytes, IncomingDelivery], settled: Callable[[], object]) -> None:
        super().__init__(tags)
        self._settled = settled

    def pop(self, *tag: Any) -> Any:
        found = super().pop(*tag)
        self._settled()
        return found
