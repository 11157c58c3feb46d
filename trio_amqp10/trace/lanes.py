"""Lanes, deliveries and series of captured conversations: what a page about them draws.

Knows no frame: ``session_tracking`` fills these in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from .frame_log import Way

__all__ = ["MOST_STEPS", "Delivery", "Lane", "Lanes", "Series"]

MOST_STEPS: Final = 1000
"""Frames that are listed of one delivery: a message of many transfers, or a peer that repeats itself."""


@dataclass(slots=True)
class Lane:
    """Where a frame belongs.

    Attributes:
        kind: what it is; a channel is a session whose begin was not seen, or is of another protocol.
        name: the name of a link, the number of anything else.
        conversation: its number.
        parent: the index of the lane that it is part of; None for a connection.
        address: of the node of a link; None where nobody said it.
    """

    kind: Literal["connection", "session", "channel", "link"]
    name: str
    conversation: int
    parent: int | None = None
    address: str | None = None


@dataclass(slots=True)
class Delivery:
    """A message on its way over a link (2.6.12).

    Attributes:
        lane: of the link.
        way: of its transfers.
        number: its delivery-id.
        tag: its delivery-tag.
        steps: the rows of its frames, and what each did: ``transfer``, ``disposition``, ``settled`` or ``aborted``; at
            most ``MOST_STEPS``.
        outcome: the last state that an end gave it, or None.
        settled: whether an end has settled it, or it was aborted.
    """

    lane: int
    way: Way
    number: int
    tag: bytes
    steps: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    outcome: str | None = None
    settled: bool = False

    def add(self, row: int, step: str) -> None:
        """Another frame is about it."""
        if len(self.steps) < MOST_STEPS:
            self.steps.append((row, step))


@dataclass(slots=True)
class Series:
    """How one figure went.

    Attributes:
        lane: of the link, or of the session.
        kind: the ``credit`` of a link (2.6.7), or the ``window`` of a session for incoming transfers (2.5.6).
        way: of the transfers that it bounds.
        points: a row, and the figure from that row on.
    """

    lane: int
    kind: Literal["credit", "window"]
    way: Way
    points: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def add(self, row: int, value: int) -> None:
        """The figure is this from here on."""
        if not self.points or self.points[-1][1] != value:
            self.points.append((row, value))


class Lanes:
    """All lanes, deliveries and series of a capture, each kind in the order in which they began."""

    def __init__(self) -> None:
        self.lanes: list[Lane] = []
        self.deliveries: list[Delivery] = []
        self.series: list[Series] = []

    def add(self, lane: Lane) -> int:
        """Its index."""
        self.lanes.append(lane)
        return len(self.lanes) - 1

    def add_delivery(self, delivery: Delivery) -> Delivery:
        """The same, which is among them now."""
        self.deliveries.append(delivery)
        return delivery

    def add_series(self, series: Series) -> Series:
        """The same, which is among them now."""
        self.series.append(series)
        return series

    def left_to_right(self) -> list[int]:
        """The indexes as they are to stand: each connection, then each session of it with its links."""
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
