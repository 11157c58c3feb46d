"""The windows of a session: how many transfers may be in flight (2.5.6).

Changes of each number
----------------------

The windows count transfers, not deliveries: a message in ten frames counts as ten. They count neither octets
nor unsettled deliveries; a window is the number of frames that there is *room* for.

When we send a transfer::

    next-outgoing-id        += 1
    remote-incoming-window  -= 1        the peer's room, as far as we know

When we receive a transfer::

    next-incoming-id        += 1
    incoming-window         -= 1        our room: below zero is an error of the peer
    remote-outgoing-window  -= 1        how many more the peer intends to send; only a hint

When we receive a flow (or the peer's begin, which has the same four numbers)::

    next-incoming-id        := next-outgoing-id(flow)
    remote-outgoing-window  := outgoing-window(flow)
    remote-incoming-window  := next-incoming-id(flow) + incoming-window(flow) - next-outgoing-id

The peer computed its window before it read the transfers that we had in flight; the last line subtracts them.
If the peer had not read our begin yet, its ``next-incoming-id`` is null, and our ``initial-outgoing-id``
replaces it.

Our own window is announced completely again as soon as half of it is used, so that a peer at full speed never
finds it closed. It may be narrowed: transfers that were announced before may still be in flight, and are
accepted in addition to the window (``_in_flight``).
"""

from __future__ import annotations

from typing import Any, Final

from trio_amqp10.amqp10.spec.transport import Flow

from .serial_numbers import MASK, add, distance

INITIAL_ID: Final = 0
"""The first transfer-id and delivery-id of a session; any value is legal (2.5.6)."""

_OUTGOING_WINDOW: Final = 0x7FFFFFFF
"""Our outgoing-window: only the peer's incoming window limits us."""


class SessionWindows:
    """The six numbers of 2.5.6 and their arithmetic. Knows no link."""

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
        self.low: int = incoming_max // 2  # the window is announced again when no more than this is left
        self.remote_outgoing_window: int = 0
        self._in_flight = 0
        self._overrun = 0  # transfers beyond the window since it was last announced
        self._sent = self._received = 0
        self._sent_mark = initial_id
        self._received_mark: int | None = None
        self.acknowledged: int = initial_id  # the next-incoming-id of the peer's last flow

    @property
    def transfers_sent(self) -> int:
        """The number of transfers sent so far, which does not wrap."""
        return self._sent + ((self.next_outgoing_id - self._sent_mark) & MASK)

    @property
    def transfers_received(self) -> int:
        """The number of transfers received so far, which does not wrap."""
        if self._received_mark is None or self.next_incoming_id is None:
            return 0
        return self._received + ((self.next_incoming_id - self._received_mark) & MASK)

    def flow(self, **link: Any) -> Flow:
        """Return a flow with the session's numbers and the fields ``link`` (2.7.4)."""
        return Flow(
            next_incoming_id=self.next_incoming_id,
            incoming_window=self.incoming_window,
            next_outgoing_id=self.next_outgoing_id,
            outgoing_window=self.outgoing_window,
            **link,
        )

    def _tally(self) -> None:
        """Note the transfers so far, before the ids wrap: called with every flow."""
        self._sent, self._sent_mark = self.transfers_sent, self.next_outgoing_id
        self._received, self._received_mark = self.transfers_received, self.next_incoming_id

    def sent(self) -> None:
        """Count a transfer that was sent."""
        self.next_outgoing_id = (self.next_outgoing_id + 1) & MASK
        self.remote_incoming_window -= 1

    def received(self) -> int:
        """Count a transfer that arrived; return the room left, or -1 if it had none."""
        left = self.incoming_window - 1
        if left < 0 and self._in_flight:
            # It was sent before the peer read that the window was narrowed.
            self._in_flight -= 1
            left = 0
        if left >= 0:
            self.next_incoming_id = ((self.next_incoming_id or 0) + 1) & MASK
            self.incoming_window = left
            self.remote_outgoing_window -= 1
        return left

    def overrun(self) -> bool:
        """Accept a transfer beyond the window; return False after a whole window of them."""
        if self._overrun == self.incoming_max:
            return False
        self._overrun += 1
        self.next_incoming_id = ((self.next_incoming_id or 0) + 1) & MASK
        self.remote_outgoing_window -= 1
        return True

    def begun(self, next_outgoing_id: int, incoming_window: int, outgoing_window: int) -> None:
        """Take the numbers of the peer's begin.

        The peer may have written it before or after it read ours; in both cases it counts from our first
        transfer.
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
        """Take the numbers of the peer's flow; return False if it is wrong.

        It is wrong if it acknowledges transfers that we never sent.
        """
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
        """Return a mark of this moment, for ``is_behind``."""
        return self.next_outgoing_id, self.transfers_received + self.incoming_window + self._in_flight

    def is_behind(self, mark: tuple[int, int], *, in_window: bool) -> bool:
        """Whether the peer has read everything that we wrote before ``mark``, for certain.

        Either it has acknowledged a transfer that we sent later. Or it has sent more than it had room for,
        and so has read of more room, if it stays ``in_window``.
        """
        sent, room = mark
        return distance(self.acknowledged, sent) > 0 or (in_window and self.transfers_received > room)

    def narrow(self, incoming_max: int) -> None:
        """Announce no more than ``incoming_max`` from the next flow on."""
        if incoming_max < self.incoming_max:
            self.incoming_max = incoming_max
            self.low = incoming_max // 2
            self._in_flight += max(0, self.incoming_window - incoming_max)
            self.incoming_window = min(self.incoming_window, incoming_max)

    def refill(self, room: int | None = None) -> None:
        """Open our window to ``incoming_max`` transfers, or to ``room`` if that is fewer.

        Room that was announced is never taken back, because the peer may be using it.
        """
        self._overrun = 0
        self._tally()
        self.incoming_window = (
            self.incoming_max if room is None else max(self.incoming_window, min(self.incoming_max, room))
        )
