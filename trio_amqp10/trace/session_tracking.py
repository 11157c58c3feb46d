"""Which session, link and delivery each frame of a conversation is about (2.5, 2.6).

Reads what no engine would let pass, and captures that begin in the middle: a frame that fits nowhere stays in the lane of its
channel. Frames of other protocols do too. Checks one rule only, the credit of a link: what else is wrong, a peer says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.engine.serial_numbers import MASK, add, distance
from trio_amqp10.frames import SASL_FRAME
from trio_amqp10.spec.transport import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Role,
    Transfer,
)

from .lanes import Delivery, Lane, Series
from .pieces import OtherProtocolPiece

if TYPE_CHECKING:
    from .frame_log import Way
    from .lanes import Lanes
    from .pieces import Piece

__all__ = ["ConversationTracker", "outcome_name"]

_OTHER: Final[dict[Way, Way]] = {">": "<", "<": ">"}


@dataclass(slots=True)
class _Link:
    """A link of a session, as both ends described it.

    ``left`` is the credit that the sender has now; None before the receiver has granted any. ``most`` is how many deliveries it
    ever might have sent: what is in flight when credit is taken back breaks no rule.
    """

    lane: int
    sender: Way
    credit: Series
    attached: set[Way] = field(default_factory=set["Way"])
    count: int | None = None
    sent: int = 0
    left: int | None = None
    most: int = 0
    current: Delivery | None = None

    def grant(self, row: int, count: int | None, credit: int) -> None:
        """The receiver says how many deliveries may follow the one of this delivery-count (2.6.7).

        It says null until it has seen the sender's attach, and means the delivery-count of that (2.7.4).
        """
        behind = 0 if count is None or self.count is None else distance(self.count, count)
        self.left = credit - behind
        self.most = max(self.most, self.sent + self.left)
        self.credit.add(row, max(0, self.left))

    def use(self, row: int, count: int) -> None:
        """The sender has used as much credit, by deliveries or by draining it."""
        self.count = None if self.count is None else add(self.count, count)
        self.sent += count
        if self.left is not None:
            self.left -= count
            self.credit.add(row, max(0, self.left))


@dataclass(slots=True)
class _Session:
    """A session, and for each way of transfers: handles, the next transfer-id, what is left of the window, what is not settled."""

    lane: int
    windows: dict[Way, Series]
    links: dict[tuple[str, Way], _Link] = field(default_factory=dict[tuple[str, "Way"], _Link])
    handles: dict[Way, dict[int, _Link]] = field(default_factory=lambda: {">": {}, "<": {}})
    next: dict[Way, int] = field(default_factory=dict["Way", int])
    left: dict[Way, int] = field(default_factory=dict["Way", int])
    unsettled: dict[Way, dict[int, tuple[Delivery, _Link]]] = field(
        default_factory=lambda: {">": {}, "<": {}}
    )

    def open_window(self, row: int, way: Way, start: int | None, size: int) -> None:
        """Transfers of this way may come, so many from the transfer-id ``start`` on (2.5.6); None: from the first on."""
        behind = 0 if start is None or way not in self.next else distance(self.next[way], start)
        self.left[way] = size - behind
        self.windows[way].add(row, self.left[way])

    def use_window(self, row: int, way: Way) -> None:
        """A transfer of this way."""
        self.next[way] = add(self.next[way], 1)
        if way in self.left:
            self.left[way] -= 1
            self.windows[way].add(row, self.left[way])


class ConversationTracker:
    """Follows one conversation.

    Args:
        number: of the conversation.
        lanes: where its lanes, deliveries and series go.
    """

    def __init__(self, number: int, lanes: Lanes) -> None:
        self._number = number
        self._lanes = lanes
        self._connection = lanes.add(Lane("connection", str(number), number))
        self._channels: dict[int, int] = {}
        self._sessions: dict[Way, dict[int, _Session]] = {">": {}, "<": {}}

    def place(self, row: int, way: Way, piece: Piece) -> tuple[int, str | None]:
        """The index of the lane of a piece, and what it breaks, if anything.

        Args:
            row: the number of the piece in the capture.
            way: who wrote it.
            piece: the next one of the conversation.
        """
        said, channel = piece.performative, piece.channel
        if channel is None or piece.frame_type == SASL_FRAME or isinstance(said, Open | Close):
            return self._connection, None
        if isinstance(piece, OtherProtocolPiece):
            return (self._channel(channel) if channel else self._connection), None
        if piece.is_empty:
            return self._connection, None
        if isinstance(said, Begin):
            return self._begin(row, way, channel, said).lane, None
        session = self._sessions[way].get(channel)
        if session is None:
            return self._channel(channel), None
        if isinstance(said, Attach):
            return self._attach(session, way, said).lane, None
        if isinstance(said, Flow):
            return self._flow(session, row, way, said), None
        if isinstance(said, Transfer):
            return self._transfer(session, row, way, said)
        if isinstance(said, Disposition):
            return self._disposition(session, row, way, said), None
        if isinstance(said, Detach):
            link = session.handles[way].pop(said.handle, None)
            if link is not None:
                link.attached.discard(way)
            return (session if link is None else link).lane, None
        if isinstance(said, End):
            del self._sessions[way][channel]
        return session.lane, None

    def _channel(self, channel: int) -> int:
        if channel not in self._channels:
            lane = Lane("channel", str(channel), self._number, self._connection)
            self._channels[channel] = self._lanes.add(lane)
        return self._channels[channel]

    def _begin(self, row: int, way: Way, channel: int, said: Begin) -> _Session:
        """A session begins, or the other end answers: remote-channel names the channel of the other (2.7.2)."""
        other = _OTHER[way]
        session = None if said.remote_channel is None else self._sessions[other].get(said.remote_channel)
        if session is None or way in session.next:
            lane = self._lanes.add(Lane("session", str(channel), self._number, self._connection))
            windows: dict[Way, Series] = {
                each: self._lanes.add_series(Series(lane, "window", each)) for each in _OTHER
            }
            session = _Session(lane, windows)
        self._sessions[way][channel] = session
        session.next[way] = said.next_outgoing_id
        session.open_window(row, other, None, said.incoming_window)
        return session

    def _attach(self, session: _Session, way: Way, said: Attach) -> _Link:
        """A link is known by its name and by which end is the sender (2.6.1)."""
        sender = way if said.role == Role.SENDER else _OTHER[way]
        key = (said.name, sender)
        link = session.links.get(key)
        if link is None or not link.attached:
            # Attached again, it goes on in the lane that it had: a resumed link has the same name (2.6.13).
            if link is None:
                lane = self._lanes.add(Lane("link", said.name, self._number, session.lane))
            else:
                lane = link.lane
            link = _Link(lane, sender, self._lanes.add_series(Series(lane, "credit", sender)))
            session.links[key] = link
        link.attached.add(way)
        session.handles[way][said.handle] = link
        if way == sender:
            link.count = said.initial_delivery_count
        # The node is at the end that was dialled: its terminus has the address.
        address = getattr(said.target if sender == ">" else said.source, "address", None)
        if address is not None:
            self._lanes.lanes[link.lane].address = str(address)
        return link

    def _flow(self, session: _Session, row: int, way: Way, said: Flow) -> int:
        session.open_window(row, _OTHER[way], said.next_incoming_id, said.incoming_window)
        link = None if said.handle is None else session.handles[way].get(said.handle)
        if link is None:
            return session.lane
        if way != link.sender:
            if said.link_credit is not None:
                link.grant(row, said.delivery_count, said.link_credit)
        elif link.count is not None and said.delivery_count is not None:
            link.use(row, distance(said.delivery_count, link.count))  # drained (2.6.7)
        return link.lane

    def _transfer(self, session: _Session, row: int, way: Way, said: Transfer) -> tuple[int, str | None]:
        session.use_window(row, way)
        link = session.handles[way].get(said.handle)
        if link is None:
            return session.lane, None
        broken = None
        delivery = link.current
        if said.delivery_id is not None and (delivery is None or delivery.number != said.delivery_id):
            delivery = Delivery(link.lane, way, said.delivery_id, said.delivery_tag or b"")
            self._lanes.add_delivery(delivery)
            session.unsettled[way][said.delivery_id] = (delivery, link)
            link.use(row, 1)
            if link.sent > link.most:
                broken = "a delivery for which the receiver has given no credit"
        if delivery is None:  # its first transfer was not seen
            return link.lane, broken
        settled = bool(said.settled or said.aborted)
        delivery.outcome = "aborted" if said.aborted else outcome_name(said.state) or delivery.outcome
        delivery.add(row, "aborted" if said.aborted else "settled" if settled else "transfer")
        if settled:
            delivery.settled = True
            session.unsettled[way].pop(delivery.number, None)
        link.current = delivery if said.more and not said.aborted else None
        return link.lane, broken

    def _disposition(self, session: _Session, row: int, way: Way, said: Disposition) -> int:
        """A receiver speaks of what it was sent, a sender of what it sent (2.7.6)."""
        unsettled = session.unsettled[way if said.role == Role.SENDER else _OTHER[way]]
        last = said.first if said.last is None else said.last
        size = distance(last, said.first)
        if size + 1 < len(unsettled):
            numbers = [number for n in range(size + 1) if (number := (said.first + n) & MASK) in unsettled]
        else:
            numbers = [number for number in unsettled if 0 <= distance(number, said.first) <= size]
        lanes: set[int] = set()
        for number in numbers:
            delivery, link = unsettled[number]
            lanes.add(link.lane)
            delivery.outcome = outcome_name(said.state) or delivery.outcome
            delivery.add(row, "settled" if said.settled else "disposition")
            if said.settled:
                delivery.settled = True
                del unsettled[number]
        return lanes.pop() if len(lanes) == 1 else session.lane


def outcome_name(state: Any) -> str | None:
    """The name of a delivery state, or of the outcome within a transaction: ``accepted``; None for none."""
    outcome = getattr(state, "outcome", None) or state
    return None if outcome is None else type(outcome).__name__.lower()
