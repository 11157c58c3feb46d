"""The credit of a session: how many transfers may be unsettled, counted from the lowest that is (D 1426-1436).

Sessions of the draft have no windows. A receiving end says which transfer is its lowest unsettled one (``unsettled-lwm``) and how
many there may be from there on (``session-credit``); with all settled, the lowest is the next that it expects. So the last that a
sender may send is known by its id, and it moves only as transfers are settled: a consumer that holds as many as the credit stops
the session, which a window of the final standard would not.

The engine has windows all the same. Here they follow from the credit: of the peer, ours to send in; our own is always open, for
what the peer may send is checked against the credit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.engine.serial_numbers import add, distance
from trio_amqp10.engine.session_windows import INITIAL_ID, SessionWindows

from .faults import unsettled_limit

if TYPE_CHECKING:
    from trio_amqp10.engine.session_core import SessionCore

    from .link_notes import LinkNotes

__all__ = ["SessionCredit"]

_FAR: Final = 0x7FFFFFFF


class SessionCredit(SessionWindows):
    """The windows of a session of the draft, and what else it has beside those of the final standard.

    Attributes:
        links: by our name and role for them, from the first attach of either end.
        by_handle: those that our attach has bound, by our handles; ``by_remote_handle`` by the peer's.
        declares: ids of transfers that declare a transaction, while no outcome of them is known.
        partials: our senders whose delivery has begun to be written, and is not complete.
    """

    __slots__ = (
        "_announced",
        "_credit",
        "_limit",
        "_session",
        "by_handle",
        "by_remote_handle",
        "declares",
        "links",
        "partials",
    )

    def __init__(self, session: SessionCore, incoming_max: int) -> None:
        super().__init__(incoming_max)
        self._session = session
        self._credit = incoming_max
        self._limit: int | None = None
        self._announced: int | None = None
        self.links: dict[tuple[str, bool], LinkNotes] = {}
        self.by_handle: dict[int, LinkNotes] = {}
        self.by_remote_handle: dict[int, LinkNotes] = {}
        self.declares: set[int] = set()
        self.partials: set[LinkNotes] = set()

    # -- what we may send -------------------------------------------------------------------

    def granted(self, lowest: int | None, credit: int) -> None:
        """The peer's receiving end says where it stands; None for the lowest before it has seen a transfer."""
        base = INITIAL_ID if lowest is None else lowest
        self._limit = add(base, min(credit, _FAR))

    def room(self, next_id: int) -> int:
        """Frames that the engine may write: deliveries from ``next_id`` on, and one for each that has begun."""
        free = 0 if self._limit is None else max(0, distance(self._limit, next_id))
        return free + len(self.partials)

    def remaining(self, lowest: int) -> int:
        """The credit of the peer from our lowest unsettled transfer on, as our own flow-states say it."""
        return 0 if self._limit is None else max(0, distance(self._limit, lowest))

    # -- what the peer may send -------------------------------------------------------------

    def received(self) -> int:
        """As of ``SessionWindows``; there is always room, because the credit was checked."""
        if self.incoming_window <= 1:
            self.refill()
        return super().received()

    def is_behind(self, mark: tuple[int, int], *, in_window: bool) -> bool:  # noqa: ARG002
        """As of ``SessionWindows``: nothing here shows that the peer has read on."""
        return False

    def check(self, transfer_id: int) -> None:
        """A transfer begins.

        Raises:
            RemoteProtocolError: our credit does not cover it.
        """
        if self._announced is None:
            self._announced = add(transfer_id, self._credit)
        elif distance(transfer_id, self._announced) >= 0:
            raise unsettled_limit(transfer_id, self._announced)

    def lowest_incoming(self) -> int | None:
        """The lowest received transfer that is unsettled; with none, the next that is expected."""
        incoming = self._session.settlement.incoming
        return next(iter(incoming), self._session.next_incoming_delivery_id)

    def announce(self) -> tuple[int | None, int]:
        """What a flow-state of a receiving end of ours says now: our lowest and the credit."""
        lowest = self.lowest_incoming()
        if lowest is not None:
            self._announced = add(lowest, self._credit)
        return lowest, self._credit

    def is_due(self) -> bool:
        """Whether the peer should be told that it may go on: half of what it knows of is used."""
        expected, lowest = self._session.next_incoming_delivery_id, self.lowest_incoming()
        if expected is None or lowest is None or self._announced is None:
            return False
        used_up = distance(self._announced, expected) <= self._credit // 2
        return used_up and distance(add(lowest, self._credit), self._announced) > 0
