"""The credit of a session: how many transfers may be unsettled (D 1426-1436).

Sessions of the draft have no windows. A receiving peer sends the id of its lowest unsettled transfer
(``unsettled-lwm``) and how many transfers there may be from that id on (``session-credit``); if all are settled, the
lowest is the next that it expects. So the sender knows the id of the last transfer that it may send, and this id
increases only when transfers are settled: a consumer that holds as many transfers as the credit stops the session,
which a window of the final standard would not.

The engine still has windows, which are derived from the credit here: the outgoing window from the credit that the peer
grants. The incoming window is always open, because arriving transfers are checked against the credit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp10.engine.serial_numbers import add, distance
from trio_amqp10.amqp10.engine.session_windows import INITIAL_ID, SessionWindows

from .protocol_rules import unsettled_limit

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.session_core import SessionCore

    from .draft_link_state import LinkNotes

_FAR: Final = 0x7FFFFFFF


class SessionCredit(SessionWindows):
    """The windows of a session of the draft, and its further state.

    Attributes:
        links: by name and this peer's role, from the first attach of either peer.
        by_handle: attached links, by the handles of this peer; ``by_remote_handle`` by those of the other peer.
        declares: ids of transfers that declare a transaction and have no outcome yet.
        partials: sending links whose delivery the engine has written in part.
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

    # -- sending ----------------------------------------------------------------------------

    def granted(self, lowest: int | None, credit: int) -> None:
        """Set the credit that a receiving peer grants.

        ``lowest`` is None until the peer has received a transfer.
        """
        base = INITIAL_ID if lowest is None else lowest
        self._limit = add(base, min(credit, _FAR))

    def room(self, next_id: int) -> int:
        """Return how many frames the engine may write.

        They are the deliveries from ``next_id`` on, and one frame for each delivery in progress.
        """
        free = 0 if self._limit is None else max(0, distance(self._limit, next_id))
        return free + len(self.partials)

    def remaining(self, lowest: int) -> int:
        """Return the credit from the lowest unsettled transfer on, for a flow-state."""
        return 0 if self._limit is None else max(0, distance(self._limit, lowest))

    # -- receiving --------------------------------------------------------------------------

    def received(self) -> int:
        """See ``SessionWindows``; there is always room, because the credit was checked."""
        if self.incoming_window <= 1:
            self.refill()
        return super().received()

    def is_behind(self, mark: tuple[int, int], *, in_window: bool) -> bool:  # noqa: ARG002
        """False: no frame shows how far the peer has read. See ``SessionWindows``."""
        return False

    def check(self, transfer_id: int) -> None:
        """Check a transfer that begins.

        Raises:
            RemoteProtocolError: it exceeds the credit that was granted.
        """
        if self._announced is None:
            self._announced = add(transfer_id, self._credit)
        elif distance(transfer_id, self._announced) >= 0:
            raise unsettled_limit(transfer_id, self._announced)

    def lowest_incoming(self) -> int | None:
        """Return the lowest unsettled incoming transfer; if none, the next transfer."""
        incoming = self._session.settlement.incoming
        return next(iter(incoming), self._session.next_incoming_delivery_id)

    def announce(self) -> tuple[int | None, int]:
        """Return the lowest transfer and the credit for a flow-state that is sent now."""
        lowest = self.lowest_incoming()
        if lowest is not None:
            self._announced = add(lowest, self._credit)
        return lowest, self._credit

    def is_due(self) -> bool:
        """Whether the peer should get credit: half of the credit that it knows is used."""
        expected, lowest = self._session.next_incoming_delivery_id, self.lowest_incoming()
        if expected is None or lowest is None or self._announced is None:
            return False
        used_up = distance(self._announced, expected) <= self._credit // 2
        return used_up and distance(add(lowest, self._credit), self._announced) > 0
