"""The lanes, deliveries and figures of captured conversations, for a page.

Knows no frame: ``session_tracking`` adds the contents.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from .frame_log import Way

MOST_STEPS: Final = 1000
"""The most frames to list for one delivery.

A message may have many transfers, and a peer may repeat itself.
"""


@dataclass(slots=True)
class Lane:
    """A column of the page: a connection, a session, a channel or a link.

    Attributes:
        kind: the kind; a channel is a session without a captured begin, or of another protocol.
        name: the name of a link, or the number of any other lane.
        conversation: the number of the conversation.
        parent: the index of the enclosing lane; None for a connection.
        address: the address of a link's node; None if unknown.
    """

    kind: Literal["connection", "session", "channel", "link"]
    name: str
    conversation: int
    parent: int | None = None
    address: str | None = None


@dataclass(slots=True)
class Delivery:
    """A delivery on a link (2.6.12).

    Attributes:
        lane: the lane of the link.
        way: the direction of its transfers.
        number: its delivery-id.
        tag: its delivery-tag.
        steps: the rows of its frames, and the effect of each: ``transfer``, ``disposition``, ``settled`` or ``aborted``; at
            most ``MOST_STEPS``.
        outcome: the last state that a peer set, or None.
        settled: whether a peer has settled it, or it was aborted.
    """

    lane: int
    way: Way
    number: int
    tag: bytes
    steps: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    outcome: str | None = None
    settled: bool = False

    def add(self, row: int, step: str) -> None:
        """Add a frame about this delivery."""
        if len(self.steps) < MOST_STEPS:
            self.steps.append((row, step))


@dataclass(slots=True)
class Series:
    """The values of one figure over time.

    Attributes:
        lane: the lane of the link or the session.
        kind: the ``credit`` of a link (2.6.7), or the ``window`` of a session for incoming transfers (2.5.6).
        way: the direction of the limited transfers.
        points: pairs of a row, and the value from that row on.
    """

    lane: int
    kind: Literal["credit", "window"]
    way: Way
    points: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def add(self, row: int, value: int) -> None:
        """Set the value from this row on."""
        if not self.points or self.points[-1][1] != value:
            self.points.append((row, value))


class Lanes:
    """All lanes, deliveries and figures of a capture, each in order of appearance."""

    def __init__(self) -> None:
        self.lanes: list[Lane] = []
        self.deliveries: list[Delivery] = []
        self.series: list[Series] = []

    def add(self, lane: Lane) -> int:
        """Add a lane, and return its index."""
        self.lanes.append(lane)
        return len(self.lanes) - 1

    def add_delivery(self, delivery: Delivery) -> Delivery:
        """Add a delivery, and return it."""
        self.deliveries.append(delivery)
        return delivery

    def add_series(self, series: Series) -> Series:
        """Add a series, and return it."""
        self.series.append(series)
        return series

    def left_to_right(self) -> list[int]:
        """Return the indexes in display order: each lane, then the lanes within it."""
        children: dict[int | None, list[int]] = {}
        for index, lane in enumerate(self.lanes):
            children.setdefault(lane.parent, []).append(index)
        ordered: list[int] = []
        todo = children.pop(None, [])[::-1]
        while todo:
            lane_index = todo.pop()
            ordered.append(lane_index)
            todo += children.pop(lane_index, [])[::-1]
        return ordered
