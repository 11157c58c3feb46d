"""The windows of a session: how many transfers may be in flight, each way (2.5.6).

Who decrements what, when
-------------------------

Transfers, not deliveries, are counted: a message cut into ten frames takes ten. The unit is
never the octet and never what is unsettled; a window says how many frames there is *room* for.

We send a transfer::

    next-outgoing-id        += 1
    remote-incoming-window  -= 1        the peer's room, as far as we know

We receive a transfer::

    next-incoming-id        += 1
    incoming-window         -= 1        our room: below zero is the peer's fault
    remote-outgoing-window  -= 1        what the peer said it may still send; only a hint

We receive a flow (or the peer's begin, which carries the same four numbers)::

    next-incoming-id        := next-outgoing-id(flow)
    remote-outgoing-window  := outgoing-window(flow)
    remote-incoming-window  := next-incoming-id(flow) + incoming-window(flow) - next-outgoing-id

The peer computed its window before it saw the transfers that we had in flight; the last line
takes them off again. Where the peer had not read our begin yet, its ``next-incoming-id`` is
null, and our ``initial-outgoing-id`` stands in for it.

Our own window is announced whole again as soon as half of it is used, so that a peer at full
speed never meets an empty one. It may be narrowed: what was announced before the peer has read of
that may be in flight, and is let in on top of the window (``_in_flight``).
"""

from __future__ import annotations

from typing import Any, Final

from trio_amqp10.spec.transport import Flow

from .serial_numbers import MASK, add, distance

__all__ = ["INITIAL_ID", "SessionWindows"]

INITIAL_ID: Final = 0
"""Our first transfer-id and our first delivery-id of a session. Any value is legal (2.5.6)."""

_OUTGOING_WINDOW: Final = 0x7FFFFFFF
"""What we may send is bounded by the peer's incoming window alone, so we promise no bound of ours."""


class SessionWindows:
    """The six numbers of 2.5.6 and their arithmetic; nothing here touches a link."""

    __slots__ = (
        "_in_flight",
        "_overrun",
        "_received",
        "_received_mark",
        "_sent",
        "_sent_mark",
        "acknowledged",
        "incoming_max",
        "incoming_window",
        "low",
        "next_incoming_id",
        "next_outgoing_id",
        "outgoing_window",
        "remote_incoming_window",
        "remote_outgoing_window",
    )

    def __init__(self, incoming_max: int, initial_id: int = INITIAL_ID) -> None:
        self.next_outgoing_id: int = initial_id
        self.outgoing_window: Final = _OUTGOING_WINDOW
        self.remote_incoming_window: int = 0
        self.next_incoming_id: int | None = None
        self.incoming_max: int = incoming_max
        self.incoming_window: int = incoming_max
        self.low: int = incoming_max // 2  # with so much room left, or less, it is announced whole again
        self.remote_outgoing_window: int = 0
        self._in_flight = 0
        self._overrun = 0  # transfers beyond the window since it was last announced
        self._sent = self._received = 0
        self._sent_mark = initial_id
        self._received_mark: int | None = None
        self.acknowledged: int = initial_id  # what the peer's last flow expected from us

    @property
    def transfers_sent(self) -> int:
        """How many went out so far: what the ids tell, beyond where they wrap."""
        return self._sent + ((self.next_outgoing_id - self._sent_mark) & MASK)

    @property
    def transfers_received(self) -> int:
        """How many came in so far, likewise."""
        if self._received_mark is None or self.next_incoming_id is None:
            return 0
        return self._received + ((self.next_incoming_id - self._received_mark) & MASK)

    def flow(self, **link: Any) -> Flow:
        """A flow that says where the session stands, and of a link what ``link`` gives (2.7.4)."""
        return Flow(
            next_incoming_id=self.next_incoming_id,
            incoming_window=self.incoming_window,
            next_outgoing_id=self.next_outgoing_id,
            outgoing_window=self.outgoing_window,
            **link,
        )

    def _tally(self) -> None:
        """Note how far the ids have come; with every flow, so at the latest before half of them are used."""
        self._sent, self._sent_mark = self.transfers_sent, self.next_outgoing_id
        self._received, self._received_mark = self.transfers_received, self.next_incoming_id

    def sent(self) -> None:
        """One transfer went out."""
        self.next_outgoing_id = (self.next_outgoing_id + 1) & MASK
        self.remote_incoming_window -= 1

    def received(self) -> int:
        """One transfer came in: how many more there is room for; below zero where there was none for it."""
        left = self.incoming_window - 1
        if left < 0 and self._in_flight:
            self._in_flight -= 1
            left = 0
        if left >= 0:
            self.next_incoming_id = ((self.next_incoming_id or 0) + 1) & MASK
            self.incoming_window = left
            self.remote_outgoing_window -= 1
        return left

    def overrun(self) -> bool:
        """Take one transfer more than there is room for; False where a whole window of those was taken."""
        if self._overrun == self.incoming_max:
            return False
        self._overrun += 1
        self.next_incoming_id = ((self.next_incoming_id or 0) + 1) & MASK
        self.remote_outgoing_window -= 1
        return True

    def begun(self, next_outgoing_id: int, incoming_window: int, outgoing_window: int) -> None:
        """The peer's begin: where its ids start and how much room it has.

        It may have been written before or after it read ours; either way it counts from the
        first transfer that we can have sent on this session.
        """
        self.next_incoming_id = self._received_mark = next_outgoing_id
        self.remote_outgoing_window = outgoing_window
        self.remote_incoming_window = incoming_window

    def flowed(
        self,
        next_incoming_id: int | None,
        incoming_window: int,
        next_outgoing_id: int,
        outgoing_window: int,
        initial_id: int,
    ) -> bool:
        """The peer's flow; False where it acknowledges transfers that we never sent."""
        base = initial_id if next_incoming_id is None else next_incoming_id
        if distance(base, self.next_outgoing_id) > 0:
            return False
        self._tally()
        self.acknowledged = base
        self.next_incoming_id = self._received_mark = next_outgoing_id
        self.remote_outgoing_window = outgoing_window
        self.remote_incoming_window = distance(
            add(base, min(incoming_window, _OUTGOING_WINDOW)), self.next_outgoing_id
        )
        return True

    def mark(self) -> tuple[int, int]:
        """Now; ``is_behind`` says later whether the peer has read what we wrote by now."""
        return self.next_outgoing_id, self.transfers_received + self.incoming_window + self._in_flight

    def is_behind(self, mark: tuple[int, int], *, in_window: bool) -> bool:
        """Whether the peer has shown that it read on behind a mark.

        Either it has acknowledged a transfer that we sent later; or it has sent more than there was room
        for, and so has read of more room, if it stays ``in_window``. Otherwise it may not have read so far.
        """
        sent, room = mark
        return distance(self.acknowledged, sent) > 0 or (in_window and self.transfers_received > room)

    def narrow(self, incoming_max: int) -> None:
        """From the next flow on, announce no more than this."""
        if incoming_max < self.incoming_max:
            self.incoming_max = incoming_max
            self.low = incoming_max // 2
            self._in_flight += max(0, self.incoming_window - incoming_max)
            self.incoming_window = min(self.incoming_window, incoming_max)

    def refill(self, room: int | None = None) -> None:
        """Announce room for ``incoming_max`` transfers, or for fewer where buffers are short.

        Room that was announced is never taken back: the peer may be using it at this moment.
        """
        self._overrun = 0
        self._tally()
        self.incoming_window = (
            self.incoming_max if room is None else max(self.incoming_window, min(self.incoming_max, room))
        )
