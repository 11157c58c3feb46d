"""Terminus: the unsettled state of a link, which outlives it (2.6.5, 2.6.13).

The endpoints of a link end with their session or connection; a terminus outlives them. It holds the
deliveries that this end has not settled, by tag, because delivery-ids are valid in one session only. Set one
on a link before it attaches, keep it, and set it on the next link of that name.

``sender_resume`` and ``receiver_resume`` compare the maps of both ends. Knows no clock: its owner decides
when a terminus expires.
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

UNBOUND: Final = -1
"""The id of a remembered delivery that was not yet resumed on its present link."""


def final(state: Any) -> Any:
    """Return ``state`` if it is one of the four outcomes (3.4), otherwise None.

    A state in a transaction is lost with the link, as the transaction is.
    """
    return state if isinstance(state, OUTCOMES) else None


class Terminus(ABC):
    """The common part of the termini of senders and receivers.

    Args:
        offered: whether attaches have an unsettled map; False for a peer that does not accept one.

    Attributes:
        unsettled_store: the store that keeps the deliveries for a restart of the process, or None.
        known: whether a link with this terminus was attached before, with an unsettled map: then the next
            attach resumes (2.6.5).
    """

    __slots__ = ("known", "offered", "unsettled_store")

    def __init__(self, *, offered: bool = True) -> None:
        self.known: bool = False
        self.offered: Final = offered
        self.unsettled_store: UnsettledStore | None = None

    def bind(self, link: Any) -> None:
        """Move the unsettled deliveries to ``link``, which was attached.

        They have no id there before they are resumed.
        """
        self.known = self.offered
        for delivery in self.deliveries():
            if delivery.link is not None:
                delivery.link.session.settlement.release(delivery)
            delivery.link = link
            delivery.delivery_id = UNBOUND

    def is_live_on(self, session: SessionCore) -> bool:
        """Whether dispositions on this session apply to all unsettled deliveries (2.7.6).

        False if there is none, or if one was not sent or received completely, because that must be resumed.
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
        """Move the live deliveries to ``link``, which replaces the last on its session."""
        for delivery in self.deliveries():
            link.session.settlement.move(delivery, link)

    @abstractmethod
    def has_partial(self) -> bool:
        """Whether an unsettled delivery was not sent or received completely."""

    @abstractmethod
    def deliveries(self) -> list[Any]:
        """Return the unsettled deliveries, oldest first."""

    def record_outcome(self, tag: bytes, state: Any, then: Callable[[], object]) -> None:
        """Store the outcome of a delivery, then call ``then``.

        ``then`` sends a frame that shows the peer that we know the outcome.
        """
        if self.unsettled_store is None:
            then()
        else:
            self.unsettled_store.record_outcome(tag, state, then)


class UnsettledStore(Protocol):
    """Stores the unsettled deliveries of a terminus, so that they survive the process."""

    def sent(self, delivery: OutgoingDelivery, payload: bytes, message_format: int) -> None:
        """Store a delivery that is being sent."""
        ...

    def record_outcome(self, tag: bytes, state: Any, then: Callable[[], object]) -> None:
        """Store the outcome of a delivery, then call ``then``.

        ``then`` sends a frame that shows the peer that we know the outcome.
        """
        ...

    def record_acceptance(self, tag: bytes) -> None:
        """Store that a delivery will be accepted.

        It belongs to the same commit as all that is written before the next ``await``.
        """
        ...

    def drop(self, tag: bytes) -> None:
        """Delete a delivery that is settled, now or later."""
        ...

    def after(self, then: Callable[[], object]) -> None:
        """Call ``then`` once everything so far is stored."""
        ...


class OutcomeStore(Protocol):
    """Stores the effect of outcomes, where deliveries end with the process."""

    def record_outcome(self, delivery: OutgoingDelivery, then: Callable[[], object]) -> None:
        """Store the effect of a delivery's outcome; then call ``then``, which settles."""
        ...

    def after(self, then: Callable[[], object]) -> None:
        """Call ``then`` once everything so far is stored."""
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
        resend: what to do if the receiving end has forgotten the link. True sends all deliveries without an
            outcome again, at least once. False leaves them in doubt, and never repeats one.
        offered: as for ``Terminus``.

    Attributes:
        unsettled: the deliveries that were sent and are not settled, by tag.
        in_doubt: the deliveries that the receiver has forgotten and that were not sent again.
        next_tag: the number of the next tag that we make.
        begun: the tag of the delivery that was not completely sent when its link ended, or None.
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
        """Add a delivery that is being sent."""
        self.unsettled[delivery.tag] = Sent(delivery, payload, message_format)
        if self.unsettled_store is not None:
            self.unsettled_store.sent(delivery, payload, message_format)

    def drop(self, tag: bytes) -> None:
        """Remove a delivery that is settled."""
        if self.unsettled.pop(tag, None) is not None and self.unsettled_store is not None:
            self.unsettled_store.drop(tag)

    def has_partial(self) -> bool:
        return self.begun in self.unsettled

    def deliveries(self) -> list[OutgoingDelivery]:
        return [sent.delivery for sent in self.unsettled.values()]

    def states(self) -> dict[bytes, Any]:
        """Return the unsettled map of an attach: states by tag, oldest first (2.7.3)."""
        return {tag: final(sent.delivery.state) for tag, sent in self.unsettled.items()}


class ReceiverTerminus(Terminus):
    """The unsettled deliveries of a receiving end.

    Attributes:
        unsettled: the deliveries that have begun to arrive and are not settled, by tag.
        partials: the octets so far of the incomplete deliveries, by tag.
        awaited: the tags of the deliveries that the sender must resume or settle.
        queue: the complete deliveries that were not taken yet; it is the queue of each link that has this
            terminus.
    """

    __slots__ = ("awaited", "partials", "queue", "unsettled")

    def __init__(self) -> None:
        super().__init__()
        self.unsettled: dict[bytes, IncomingDelivery] = {}
        self.partials: dict[bytes, bytes] = {}
        self.awaited: set[bytes] = set()
        self.queue: deque[IncomingDelivery] = deque()

    def restore(self, tag: bytes, state: Any) -> None:
        """Add a delivery that was given its outcome before the process restarted."""
        delivery = IncomingDelivery(cast("Any", None), 0, tag, 0, False, b"")  # ``bind`` sets its link
        delivery.state = state
        self.unsettled[tag] = delivery

    def has_partial(self) -> bool:
        return bool(self.partials)

    def deliveries(self) -> list[IncomingDelivery]:
        return list(self.unsettled.values())

    def states(self) -> dict[bytes, Any]:
        """Return the unsettled map of an attach: outcomes, or octets received (3.4.1)."""
        return {tag: self._state(tag, delivery) for tag, delivery in self.unsettled.items()}

    def _state(self, tag: bytes, delivery: IncomingDelivery) -> Any:
        state = final(delivery.state)
        if state is not None:
            return state
        return progress(self.partials.get(tag, delivery.payload), delivery.message_format)

    def forget(self, tag: bytes) -> None:
        """Remove a delivery that is settled."""
        if self.unsettled.pop(tag, None) is not None and self.unsettled_store is not None:
            self.unsettled_store.drop(tag)
        self.partials.pop(tag, None)
        self.awaited.discard(tag)
