"""Terminus: the unsettled state of a link that outlives it (2.6.5, 2.6.13).

A link's endpoints come and go with sessions and connections; a terminus outlives them. It holds the
deliveries that its end has not settled, by their tags: delivery-ids mean nothing on another session.
Give one to a link before it attaches, keep it, and give it to the next link of that name.

What two ends make of each other's maps is told in ``resume``. Knows nothing of time: when a
terminus expires is for its owner to say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from .delivery import IncomingDelivery
from .outcomes import OUTCOMES
from .section_offsets import progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from .delivery import OutgoingDelivery
    from .session_core import SessionCore

__all__ = ["UNBOUND", "ReceiverTerminus", "SenderTerminus", "Sent", "Terminus", "UnsettledStore", "final"]

UNBOUND: Final = -1
"""The id of a delivery that is remembered, and not resumed yet on the link that it is now on."""


def final(state: Any) -> Any:
    """``state`` where it is one of the four outcomes (3.4), else None.

    What was said inside a transaction has gone with it, if the link has gone.
    """
    return state if isinstance(state, OUTCOMES) else None


class Terminus(ABC):
    """What both kinds have in common.

    Args:
        offered: whether attaches say what is unsettled; False for a peer that would take it amiss.

    Attributes:
        unsettled_store: has it survive the process; None where it need not.
        known: whether a link with it was attached before, and said so: then the next attach resumes (2.6.5).
    """

    __slots__ = ("known", "offered", "unsettled_store")

    def __init__(self, *, offered: bool = True) -> None:
        self.known: bool = False
        self.offered: Final = offered
        self.unsettled_store: UnsettledStore | None = None

    def bind(self, link: Any) -> None:
        """``link`` was attached: what is unsettled is its, and has no id there before it is resumed."""
        self.known = self.offered
        for delivery in self.deliveries():
            if delivery.link is not None:
                delivery.link.session.settlement.release(delivery)
            delivery.link = link
            delivery.delivery_id = UNBOUND

    def is_live_on(self, session: SessionCore) -> bool:
        """Whether dispositions on this session still apply to all that is unsettled, and there is something (2.7.6).

        A delivery that did not go out or come in whole has to be resumed.
        """
        deliveries = self.deliveries()
        return (
            bool(deliveries)
            and not self.has_partial()
            and all(
                each.link is not None and each.link.session is session and session.settlement.is_live(each)
                for each in deliveries
            )
        )

    def rebind(self, link: Any) -> None:
        """``link`` was attached in place of the one before, on the session on which what is unsettled is live."""
        for delivery in self.deliveries():
            link.session.settlement.move(delivery, link)

    @abstractmethod
    def has_partial(self) -> bool:
        """Whether a delivery is unsettled of which a part did not come, or was not sent."""

    @abstractmethod
    def deliveries(self) -> list[Any]:
        """What is unsettled, oldest first."""

    def record_outcome(self, tag: bytes, state: Any, then: Callable[[], object]) -> None:
        """A delivery has its outcome: have it written, then call ``then``, which lets the other end hear that we know."""
        if self.unsettled_store is None:
            then()
        else:
            self.unsettled_store.record_outcome(tag, state, then)


class UnsettledStore(Protocol):
    """Stores the unsettled deliveries of a terminus, so that they survive the process."""

    def sent(self, delivery: OutgoingDelivery, payload: bytes, message_format: int) -> None:
        """This is on its way."""
        ...

    def record_outcome(self, tag: bytes, state: Any, then: Callable[[], object]) -> None:
        """It has its outcome: write it, then call ``then``, which lets the other end hear that we know."""
        ...

    def record_acceptance(self, tag: bytes) -> None:
        """It will be accepted: write that in the same commit as whatever is written before the next ``await``."""
        ...

    def drop(self, tag: bytes) -> None:
        """It is settled: delete it, now or later."""
        ...

    def after(self, then: Callable[[], object]) -> None:
        """Call ``then`` once all is written."""
        ...


class Sent:
    """A message that a sender may have to send again."""

    __slots__ = ("delivery", "message_format", "payload")

    def __init__(self, delivery: OutgoingDelivery, payload: bytes, message_format: int) -> None:
        self.delivery: OutgoingDelivery = delivery
        self.payload: bytes = payload
        self.message_format: int = message_format


class SenderTerminus(Terminus):
    """The unsettled deliveries of a sending end.

    Args:
        resend: what to do where the receiving end has forgotten the link: send again what it had not
            answered, at least once; else each such delivery is in doubt, and never repeated.

    Attributes:
        unsettled: what was sent and is not settled.
        in_doubt: what the receiver forgot, and was not sent again.
        next_tag: the number that the next tag is made of.
        begun: the tag of the delivery that was not wholly sent when its link went.
    """

    __slots__ = ("begun", "in_doubt", "next_tag", "resend", "unsettled")

    def __init__(self, *, resend: bool = False, offered: bool = True) -> None:
        super().__init__(offered=offered)
        self.resend: bool = resend
        self.unsettled: dict[bytes, Sent] = {}
        self.in_doubt: list[Sent] = []
        self.begun: bytes | None = None
        self.next_tag: int = 0

    def add(self, delivery: OutgoingDelivery, payload: bytes, message_format: int) -> None:
        """This is on its way."""
        self.unsettled[delivery.tag] = Sent(delivery, payload, message_format)
        if self.unsettled_store is not None:
            self.unsettled_store.sent(delivery, payload, message_format)

    def drop(self, tag: bytes) -> None:
        """This is settled, or was never kept."""
        if self.unsettled.pop(tag, None) is not None and self.unsettled_store is not None:
            self.unsettled_store.drop(tag)

    def has_partial(self) -> bool:
        return self.begun in self.unsettled

    def deliveries(self) -> list[OutgoingDelivery]:
        return [sent.delivery for sent in self.unsettled.values()]

    def states(self) -> dict[bytes, Any]:
        """The unsettled map of an attach: delivery states by tag, oldest first (2.7.3)."""
        return {tag: final(sent.delivery.state) for tag, sent in self.unsettled.items()}


class ReceiverTerminus(Terminus):
    """The unsettled deliveries of a receiving end.

    Attributes:
        unsettled: what has come, or begun to come, and is not settled.
        partials: the octets so far of those that are not whole.
        awaited: the tags that the sender has to resume, or settle.
        queue: what came whole and nobody has taken yet; the queue of each link that this is given to.
    """

    __slots__ = ("awaited", "partials", "queue", "unsettled")

    def __init__(self) -> None:
        super().__init__()
        self.unsettled: dict[bytes, IncomingDelivery] = {}
        self.partials: dict[bytes, bytes] = {}
        self.awaited: set[bytes] = set()
        self.queue: deque[IncomingDelivery] = deque()

    def restore(self, tag: bytes, state: Any) -> None:
        """This delivery was given its outcome in a former life."""
        delivery = IncomingDelivery(cast("Any", None), 0, tag, 0, False, b"")  # on no link yet
        delivery.state = state
        self.unsettled[tag] = delivery

    def has_partial(self) -> bool:
        return bool(self.partials)

    def deliveries(self) -> list[IncomingDelivery]:
        return list(self.unsettled.values())

    def states(self) -> dict[bytes, Any]:
        """The unsettled map of an attach, with how far each delivery has come (3.4.1)."""
        return {tag: self._state(tag, delivery) for tag, delivery in self.unsettled.items()}

    def _state(self, tag: bytes, delivery: IncomingDelivery) -> Any:
        state = final(delivery.state)
        if state is not None:
            return state
        return progress(self.partials.get(tag, delivery.payload), delivery.message_format)

    def forget(self, tag: bytes) -> None:
        """Nothing more will be said of this delivery."""
        if self.unsettled.pop(tag, None) is not None and self.unsettled_store is not None:
            self.unsettled_store.drop(tag)
        self.partials.pop(tag, None)
        self.awaited.discard(tag)
