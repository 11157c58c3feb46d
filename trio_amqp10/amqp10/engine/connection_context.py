"""The state that the parts of one connection share: limits, events, buffers.

The connection makes a context and passes it down. Sessions, links and the settlement write to its write
buffer, list objects to wake, report events, and charge the peer for costly frames. None of them knows the
connection.

A limit for each connection does not limit their sum, e.g. of all connections that one listener accepted. For
this the contexts of several connections share one ``Pool``.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

from trio_amqp10.core import peer_rules as rules
from trio_amqp10.core.answer_deadlines import AwaitedAnswers
from trio_amqp10.core.tolerances import Tolerances

from .token_bucket import TokenBucket
from .write_buffer import WriteBuffer

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.core.partial_pool import Pool

    from .limits import Limits

_CHEAP = 2_000
"""Resumed deliveries that cost the peer one unit of ``Limits.churn`` (2.6.13)."""


class Touchable(Protocol):
    """An object that the engine can list as touched, to be woken once after a read."""

    touched: bool

    def wake(self) -> None: ...


class Writer(Protocol):
    """A session, as the context sees it when octets are taken for the transport."""

    def flush(self) -> None:
        """Write the dispositions and flows that are due."""
        ...

    def feed_partials(self) -> None:
        """Write more transfers of the deliveries in progress."""
        ...

    def wake_hungry(self) -> None:
        """Wake the senders that wait for room."""
        ...


class PartialDelivery(Protocol):
    """An incoming delivery that is not complete yet."""

    @property
    def held(self) -> int:
        """Octets of the delivery that are buffered."""
        ...

    def drop_and_detach(self, limit: str) -> None:
        """Drop the delivery and detach its link, because a budget is exceeded.

        ``limit`` describes the budget.
        """
        ...


class Context:
    """Limits, output, events and counts of one connection.

    Attributes:
        limits: the limits on the resources that the peer may use.
        strict: which of the optional rules are enforced.
        tolerances: the counts of the rules that are not, and were broken.
        write_buffer: the frames that wait to be written.
        incoming_class, outgoing_class: the classes of deliveries.
        now: the time of the last call that had one, in seconds of the caller's clock.
        changed: deliveries that were changed by the frame that is being read.
        awaiting_settlement_octets: octets of received deliveries that have an outcome and wait for their
            sender to settle.
        resumed: deliveries that the peer had compared by resuming links, and was not charged for yet.
        receiving: the incomplete incoming deliveries on all links, oldest first.
        feeding: sessions whose deliveries in progress may continue when octets are next taken.
        hungry: sessions with senders to wake after octets were taken.
        dirty: sessions with frames to write when octets are next taken.
        answers: the answers that the peer owes.
        detaches: links for which the peer has no terminus, and which it must detach (2.6.3).
        on_dropped: called with the state of each delivery that was dropped because this end had detached its
            link; None for no call.
        pool: counts the octets of incomplete deliveries together with those of other connections; None if
            there are no others.
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
        "tolerances",
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
        self.tolerances: Tolerances = Tolerances()
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
        """Report the state of a delivery that was dropped after our detach."""
        if state is not None and self.on_dropped is not None:
            self.on_dropped(state)

    # -- frames that change many deliveries -------------------------------------------------

    @property
    def unfinished(self) -> bool:
        """Whether the last frame is only partly processed: no other frame may be read."""
        return self._unfinished is not None

    def put_off(self, rest: Callable[[], object]) -> None:
        """Process the rest of the current frame in the next slice."""
        self._unfinished = rest

    def go_on(self) -> None:
        """Process the next part of the frame that was put off."""
        rest, self._unfinished = self._unfinished, None
        assert rest is not None
        rest()

    def finish_frame(self) -> None:
        """Process the whole rest of the frame that was put off."""
        while self._unfinished is not None:
            self.go_on()

    # -- events -----------------------------------------------------------------------------

    def report(self, event: object) -> None:
        """Keep ``event`` for ``next_event``."""
        if self._events is None:
            self._events = deque()
        self._events.append(event)

    def next_event(self) -> Any:
        """Return the oldest event that was not returned yet, or None."""
        if self._events is None:
            return None
        event = self._events.popleft()
        if not self._events:
            self._events = None
        return event

    # -- objects to wake, sessions to flush -------------------------------------------------

    def touch(self, item: Touchable | None) -> None:
        """List ``item`` for ``take_touched``, once."""
        if item is not None and not item.touched:
            item.touched = True
            self._touched.append(item)

    def take_touched(self) -> list[Touchable]:
        """Return the objects to wake now, each once, and clear the list."""
        touched, self._touched = self._touched, []
        for item in touched:
            item.touched = False
        return touched

    def owe(self, session: Writer) -> None:
        """Note that ``session`` must be flushed before octets are next taken."""
        self.dirty.append(session)
        if self.write_buffer.on_output is not None:
            self.write_buffer.on_output()

    def flush(self) -> None:
        """Let every listed session write its dispositions and flows."""
        dirty, self.dirty = self.dirty, []
        for session in dirty:
            session.flush()

    # -- resources that the peer uses -------------------------------------------------------

    @property
    def partial_octets(self) -> int:
        """Octets of incomplete incoming deliveries, on all links."""
        return self._partial_octets

    @partial_octets.setter
    def partial_octets(self, octets: int) -> None:
        if self.pool is not None:
            self.pool.octets += octets - self._partial_octets
        self._partial_octets = octets

    def window_room(self) -> int | None:
        """Return how many transfers the budget of incomplete deliveries has room for.

        At least 1; None means that there is no bound.
        """
        if not self._partial_octets:
            return None
        rooms: list[int] = []
        if self.limits.partial_octets is not None:
            rooms.append(self.limits.partial_octets - self._partial_octets)
        if self.pool is not None:
            rooms.append(self.pool.limit - self.pool.octets)
        return max(1, min(rooms) // self.limits.max_frame_size) if rooms else None

    def drop_largest(self, limit: str) -> bool:
        """Drop the largest incomplete delivery and its link, because a budget is full.

        Return False if there is no incomplete delivery.
        """
        if not self.receiving:
            return False
        max(self.receiving, key=_held).drop_and_detach(limit)
        return True

    def charge_churn(self, what: str, times: float = 1.0) -> None:
        """Charge the peer for an action that is cheap for it and expensive for us.

        Args:
            what: names the action in the error.
            times: how many units it costs.

        Raises:
            RemoteProtocolError: the rate is too high, which ends the connection.
        """
        if not self._churn.allows(self.now, times):
            raise rules.CHURN.broken(f"{what} at too high a rate")

    def charge_resumed(self) -> None:
        """Charge the peer for the deliveries it had compared by resuming (2.6.13).

        Raises:
            RemoteProtocolError: as ``charge_churn``.
        """
        if self.resumed >= _CHEAP:
            resumed, self.resumed = self.resumed, 0
            self.charge_churn("links with many unsettled deliveries resumed", resumed / _CHEAP)


def _held(delivery: PartialDelivery) -> int:
    return delivery.held
