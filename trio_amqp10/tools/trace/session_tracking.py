"""Find the session, link and delivery of each frame of a conversation (2.5, 2.6).

Accepts frames that an engine would refuse, and captures that begin in the middle: a frame that fits no session, and a frame of
another protocol, stays in the lane of its channel. Checks only one rule, the credit of a link; other errors are reported by the peers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.engine.serial_numbers import MASK, add, distance
from trio_amqp10.amqp10.spec.transport import (
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
from trio_amqp10.amqp10.wire.frames import SASL_FRAME

from .lanes import Delivery, Lane, Series
from .pieces import OtherProtocolPiece

if TYPE_CHECKING:
    from .frame_log import Way
    from .lanes import Lanes
    from .pieces import Piece

_OTHER: Final[dict[Way, Way]] = {">": "<", "<": ">"}


@dataclass(slots=True)
class _Link:
    """A link of a session, as both ends describe it.

    ``left`` is the sender's credit now, or None before the receiver has granted any. ``most`` is the largest number of deliveries
    that the sender was ever allowed to send: deliveries in flight when the receiver reduces the credit break no rule.
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
        """Set the credit of the sender, counted from a delivery-count (2.6.7).

        The delivery-count is null until the receiver has seen the sender's attach, and then means that of the attach (2.7.4).
        """
        behind = 0 if count is None or self.count is None else distance(self.count, count)
        self.left = credit - behind
        self.most = max(self.most, self.sent + self.left)
        self.credit.add(row, max(0, self.left))

    def use(self, row: int, count: int) -> None:
        """Subtract credit that the sender has used, by deliveries or by draining."""
        self.count = None if self.count is None else add(self.count, count)
        self.sent += count
        if self.left is not None:
            self.left -= count
            self.credit.add(row, max(0, self.left))


@dataclass(slots=True)
class _Session:
    """A session, with the state of each direction of transfers.

    The state of a direction is its handles, the next transfer-id, the rest of the window, and the unsettled deliveries.
    """

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
        """Set the window for transfers of this direction (2.5.6).

        The window counts from the transfer-id ``start``, or from the first transfer if None.
        """
        behind = 0 if start is None or way not in self.next else distance(self.next[way], start)
        self.left[way] = size - behind
        self.windows[way].add(row, self.left[way])

    def use_window(self, row: int, way: Way) -> None:
        """Count a transfer of this direction."""
        self.next[way] = add(self.next[way], 1)
        if way in self.left:
            self.left[way] -= 1
            self.windows[way].add(row, self.left[way])


class ConversationTracker:
    """The state of one conversation.

    Args:
        number: the number of the conversation.
        lanes: the place for its lanes, deliveries and figures.
    """

    def __init__(self, number: int, lanes: Lanes) -> None:
        self._number = number
        self._lanes = lanes
        self._connection = lanes.add(Lane("connection", str(number), number))
        self._channels: dict[int, int] = {}
        self._sessions: dict[Way, dict[int, _Session]] = {">": {}, "<": {}}

    def place(self, row: int, way: Way, piece: Piece) -> tuple[int, str | None]:
        """Return the index of the lane of a piece, and the rule that it breaks, if any.

        Args:
            row: the number of the piece in the capture.
            way: the end that wrote it.
            piece: the next piece of the conversation.
        """
        content, channel = piece.performative, piece.channel
        if channel is None or piece.frame_type == SASL_FRAME or isinstance(content, Open | Close):
            return self._connection, None
        if isinstance(piece, OtherProtocolPiece):
            return (self._channel(channel) if channel else self._connection), None
        if piece.is_empty:
            return self._connection, None
        if isinstance(content, Begin):
            return self._begin(row, way, channel, content).lane, None
        session = self._sessions[way].get(channel)
        if session is None:
            return self._channel(channel), None
        if isinstance(content, Attach):
            return self._attach(session, way, content).lane, None
        if isinstance(content, Flow):
            return self._flow(session, row, way, content), None
        if isinstance(content, Transfer):
            return self._transfer(session, row, way, content)
        if isinstance(content, Disposition):
            return self._disposition(session, row, way, content), None
        if isinstance(content, Detach):
            link = session.handles[way].pop(content.handle, None)
            if link is not None:
                link.attached.discard(way)
            return (session if link is None else link).lane, None
        if isinstance(content, End):
            del self._sessions[way][channel]
        return session.lane, None

    def _channel(self, channel: int) -> int:
        if channel not in self._channels:
            lane = Lane("channel", str(channel), self._number, self._connection)
            self._channels[channel] = self._lanes.add(lane)
        return self._channels[channel]

    def _begin(self, row: int, way: Way, channel: int, content: Begin) -> _Session:
        """Begin a session, or pair it with the begin of the other end (2.7.2).

        ``remote-channel`` is the channel of the begin that is answered.
        """
        other = _OTHER[way]
        session = (
            None if content.remote_channel is None else self._sessions[other].get(content.remote_channel)
        )
        if session is None or way in session.next:
            lane = self._lanes.add(Lane("session", str(channel), self._number, self._connection))
            windows: dict[Way, Series] = {
                each: self._lanes.add_series(Series(lane, "window", each)) for each in _OTHER
            }
            session = _Session(lane, windows)
        self._sessions[way][channel] = session
        session.next[way] = content.next_outgoing_id
        session.open_window(row, other, None, content.incoming_window)
        return session

    def _attach(self, session: _Session, way: Way, content: Attach) -> _Link:
        """Attach a link, which is identified by its name and its sending end (2.6.1)."""
        sender = way if content.role == Role.SENDER else _OTHER[way]
        key = (content.name, sender)
        link = session.links.get(key)
        if link is None or not link.attached:
            # A link that is attached again stays in its lane, because a resumed link has the same name (2.6.13).
            if link is None:
                lane = self._lanes.add(Lane("link", content.name, self._number, session.lane))
            else:
                lane = link.lane
            link = _Link(lane, sender, self._lanes.add_series(Series(lane, "credit", sender)))
            session.links[key] = link
        link.attached.add(way)
        session.handles[way][content.handle] = link
        if way == sender:
            link.count = content.initial_delivery_count
        # The node is at the end that was dialled, so the terminus of that end has the address.
        address = getattr(content.target if sender == ">" else content.source, "address", None)
        if address is not None:
            self._lanes.lanes[link.lane].address = str(address)
        return link

    def _flow(self, session: _Session, row: int, way: Way, content: Flow) -> int:
        session.open_window(row, _OTHER[way], content.next_incoming_id, content.incoming_window)
        link = None if content.handle is None else session.handles[way].get(content.handle)
        if link is None:
            return session.lane
        if way != link.sender:
            if content.link_credit is not None:
                link.grant(row, content.delivery_count, content.link_credit)
        elif link.count is not None and content.delivery_count is not None:
            link.use(
                row, distance(content.delivery_count, link.count)
            )  # the sender has advanced the delivery-count to drain (2.6.7)
        return link.lane

    def _transfer(self, session: _Session, row: int, way: Way, content: Transfer) -> tuple[int, str | None]:
        session.use_window(row, way)
        link = session.handles[way].get(content.handle)
        if link is None:
            return session.lane, None
        broken = None
        delivery = link.current
        if content.delivery_id is not None and (delivery is None or delivery.number != content.delivery_id):
            delivery = Delivery(link.lane, way, content.delivery_id, content.delivery_tag or b"")
            self._lanes.add_delivery(delivery)
            session.unsettled[way][content.delivery_id] = (delivery, link)
            link.use(row, 1)
            if link.sent > link.most:
                broken = "a delivery without credit from the receiver"
        if delivery is None:  # the capture has missed the first transfer of the delivery
            return link.lane, broken
        settled = bool(content.settled or content.aborted)
        delivery.outcome = "aborted" if content.aborted else outcome_name(content.state) or delivery.outcome
        delivery.add(row, "aborted" if content.aborted else "settled" if settled else "transfer")
        if settled:
            delivery.settled = True
            session.unsettled[way].pop(delivery.number, None)
        link.current = delivery if content.more and not content.aborted else None
        return link.lane, broken

    def _disposition(self, session: _Session, row: int, way: Way, content: Disposition) -> int:
        """Apply a disposition to deliveries that its role sent or received (2.7.6)."""
        unsettled = session.unsettled[way if content.role == Role.SENDER else _OTHER[way]]
        last = content.first if content.last is None else content.last
        size = distance(last, content.first)
        if size + 1 < len(unsettled):
            numbers = [number for n in range(size + 1) if (number := (content.first + n) & MASK) in unsettled]
        else:
            numbers = [number for number in unsettled if 0 <= distance(number, content.first) <= size]
        lanes: set[int] = set()
        for number in numbers:
            delivery, link = unsettled[number]
            lanes.add(link.lane)
            delivery.outcome = outcome_name(content.state) or delivery.outcome
            delivery.add(row, "settled" if content.settled else "disposition")
            if content.settled:
                delivery.settled = True
                del unsettled[number]
        return lanes.pop() if len(lanes) == 1 else session.lane


def outcome_name(state: Any) -> str | None:
    """Return the name of a delivery state, or of its outcome in a transaction.

    For example ``accepted``; None if there is no state.
    """
    outcome = getattr(state, "outcome", None) or state
    return None if outcome is None else type(outcome).__name__.lower()
