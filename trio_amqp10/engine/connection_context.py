"""What the parts of a connection share: limits, events, buffers, receive pool.

The connection makes a context and hands it down. Sessions, links and the settlement write to its write buffer, list what is
to be woken, report events, and charge what the peer costs. None of them knows the connection.

A bound for each connection bounds nothing where there are many, such as all that one listener accepted: their contexts are members
of one ``Pool``.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

from trio_amqp10 import protocol_rules as rules
from trio_amqp10.awaited_answers import AwaitedAnswers

from .token_bucket import TokenBucket
from .write_buffer import WriteBuffer

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.partial_pool import Pool

    from .limits import Limits

__all__ = ["Context", "PartialDelivery", "Touchable", "Writer"]

_CHEAP = 2_000
"""Deliveries that the peer may have compared by resuming links (2.6.13), at the price of ending one session unanswered."""


class Touchable(Protocol):
    """What the engine may list as touched: woken once after each read, however often it was touched."""

    touched: bool

    def wake(self) -> None: ...


class Writer(Protocol):
    """A session, as far as it has something to do when octets are next taken."""

    def flush(self) -> None:
        """Write what is due."""
        ...

    def feed_partials(self) -> None:
        """Go on with deliveries in progress."""
        ...

    def wake_hungry(self) -> None:
        """Let the senders that wait for room look."""
        ...


class PartialDelivery(Protocol):
    """A delivery that has begun to come in and is not complete."""

    @property
    def held(self) -> int:
        """Octets that are kept of it."""
        ...

    def drop_and_detach(self, limit: str) -> None:
        """Drop it, and detach its link, because all of them take more than ``limit``."""
        ...


class Context:
    """Limits, output, events and counts of one connection.

    Attributes:
        limits: what the peer may cost us.
        strict: which rules to hold strictly, of those that can be held otherwise.
        write_buffer: what waits to be written.
        incoming_class, outgoing_class: what deliveries are made of.
        now: when the caller last said what time it is, in seconds of its clock.
        changed: deliveries that were changed by the frame that is being read.
        awaiting_settlement_octets: octets of received deliveries that have their outcome and wait for their sender to settle.
        resumed: deliveries that the peer had compared by resuming links, and was not charged for yet.
        receiving: deliveries that have begun to come in, on all links, in the order in which they began.
        feeding: sessions on which deliveries in progress may go on when octets are next taken.
        hungry: sessions with senders to be woken when octets were taken.
        dirty: sessions with something to write when octets are next taken.
        answers: what the peer must answer.
        detaches: links whose peer has no terminus for them, and must detach them (2.6.3).
        on_dropped: called with the state of each delivery that was dropped because this end had detached its link; None
            for nothing.
        pool: counts the octets of deliveries in progress with those of other connections; None for a connection by itself.
    """

    __slots__ = (
        "_churn",
        "_events",
        "_partial_octets",
        "_touched",
        "_unfinished",
        "answers",
        "awaiting_settlement_octets",
        "changed",
        "detaches",
        "dirty",
        "feeding",
        "hungry",
        "incoming_class",
        "limits",
        "now",
        "on_dropped",
        "outgoing_class",
        "pool",
        "receiving",
        "resumed",
        "strict",
        "write_buffer",
    )

    def __init__(
        self,
        limits: Limits,
        strict: rules.Strict,
        *,
        incoming_class: type[Any],
        outgoing_class: type[Any],
    ) -> None:
        self.limits: Limits = limits
        self.strict: rules.Strict = strict
        self.write_buffer: WriteBuffer = WriteBuffer(limits.output_soft)
        self.incoming_class: type[Any] = incoming_class
        self.outgoing_class: Final = outgoing_class
        self._events: deque[Any] | None = None  # an empty one is 624 octets
        self.now: float = 0.0
        self.changed: int = 0
        self.awaiting_settlement_octets: int = 0
        self.resumed: int = 0
        self.receiving: dict[PartialDelivery, None] = {}
        self.feeding: dict[Writer, None] = {}
        self.hungry: dict[Writer, None] = {}
        self.dirty: list[Writer] = []
        self.answers: AwaitedAnswers = AwaitedAnswers(limits.answer_timeout)
        self.detaches: AwaitedAnswers = AwaitedAnswers(limits.close_timeout)
        self.on_dropped: Callable[[Any], object] | None = None
        self.pool: Pool | None = None
        self._partial_octets = 0
        self._touched: list[Touchable] = []
        self._unfinished: Callable[[], object] | None = None
        self._churn = TokenBucket(limits.churn, limits.churn_rate)

    def note_dropped(self, state: object) -> None:
        """A delivery with this state was dropped, because this end has detached its link."""
        if state is not None and self.on_dropped is not None:
            self.on_dropped(state)

    # -- frames that change very much -------------------------------------------------------

    @property
    def unfinished(self) -> bool:
        """Whether the frame that was read last is done in part: the rest comes before all other frames."""
        return self._unfinished is not None

    def put_off(self, rest: Callable[[], object]) -> None:
        """Do the rest of the frame that is being read in the next slice."""
        self._unfinished = rest

    def go_on(self) -> None:
        """Do some more of the frame that was put off."""
        rest, self._unfinished = self._unfinished, None
        assert rest is not None
        rest()

    def finish_frame(self) -> None:
        """Do all the rest of it."""
        while self._unfinished is not None:
            self.go_on()

    # -- events -----------------------------------------------------------------------------

    def report(self, event: object) -> None:
        """Keep ``event`` for ``next_event``."""
        if self._events is None:
            self._events = deque()
        self._events.append(event)

    def next_event(self) -> Any:
        """What the peer did, oldest first; None if there is none."""
        if self._events is None:
            return None
        event = self._events.popleft()
        if not self._events:
            self._events = None
        return event

    # -- what is to be woken, and what is to be written -------------------------------------

    def touch(self, item: Touchable | None) -> None:
        """List ``item`` for ``take_touched``, once."""
        if item is not None and not item.touched:
            item.touched = True
            self._touched.append(item)

    def take_touched(self) -> list[Touchable]:
        """What to wake now; each comes once, however often it was touched."""
        touched, self._touched = self._touched, []
        for item in touched:
            item.touched = False
        return touched

    def owe(self, session: Writer) -> None:
        """``session`` has something to write when octets are next taken."""
        self.dirty.append(session)
        if self.write_buffer.on_output is not None:
            self.write_buffer.on_output()

    def flush(self) -> None:
        """Have every session write what is due."""
        dirty, self.dirty = self.dirty, []
        for session in dirty:
            session.flush()

    # -- what the peer costs ----------------------------------------------------------------

    @property
    def partial_octets(self) -> int:
        """Octets of deliveries begun and not complete, on all links."""
        return self._partial_octets

    @partial_octets.setter
    def partial_octets(self, octets: int) -> None:
        if self.pool is not None:
            self.pool.octets += octets - self._partial_octets
        self._partial_octets = octets

    def window_room(self) -> int | None:
        """Transfers that there is room for in what is left for deliveries in progress; None for any number."""
        if not self._partial_octets:
            return None
        rooms: list[int] = []
        if self.limits.partial_octets is not None:
            rooms.append(self.limits.partial_octets - self._partial_octets)
        if self.pool is not None:
            rooms.append(self.pool.limit - self.pool.octets)
        return max(1, min(rooms) // self.limits.max_frame_size) if rooms else None

    def drop_largest(self, limit: str) -> bool:
        """Deliveries in progress fill a budget: the largest goes, with its link. False if there is none."""
        if not self.receiving:
            return False
        max(self.receiving, key=_held).drop_and_detach(limit)
        return True

    def charge_churn(self, what: str, times: float = 1.0) -> None:
        """The peer ended what we had no chance to answer, or the like: cheap for it, dear for us.

        Raises:
            RemoteProtocolError: it did so at too high a rate, which ends the connection.
        """
        if not self._churn.allows(self.now, times):
            raise rules.CHURN.broken(f"{what} at too high a rate")

    def charge_resumed(self) -> None:
        """Charge what the peer made us compare when it resumed links and deliveries (2.6.13).

        Raises:
            RemoteProtocolError: as ``charge_churn``.
        """
        if self.resumed >= _CHEAP:
            resumed, self.resumed = self.resumed, 0
            self.charge_churn("links with many unsettled deliveries resumed", resumed / _CHEAP)


def _held(delivery: PartialDelivery) -> int:
    return delivery.held
