"""State diagrams of connection, session, link and delivery.

The steps come from the tables of the engine; here stands only where a state is drawn, and which arrows are bent. A delivery has no table
in the engine: ``DELIVERY`` has the states of both ends in the standard (2.6.12, 3.4), and a test drives two engines along it.
"""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING, Final, NamedTuple

from trio_amqp10.amqp10.engine.states import CONNECTION, LINK, SESSION

from .drawing import Drawing, toward

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .drawing import Point

__all__ = ["DELIVERY", "DIAGRAMS", "Diagram", "steps"]

Edge = tuple[str, str]
Table = dict[Edge, list[str]]
"""By state and next state, the steps between them."""

OURS, THEIRS, BOTH = 0, 1, 2
_SIZE: Final = (122.0, 34.0)


def steps(table: Mapping[object, Mapping[object, object]]) -> Table:
    """Return a table of the engine with names in place of members."""
    found: Table = {}
    for state, row in table.items():
        for step, after in row.items():
            found.setdefault((state.name, after.name), []).append(step.name)  # type: ignore[attr-defined]
    return found


DELIVERY: Final[Table] = {
    ("NEW", "SETTLED"): ["SEND_TRANSFER_SETTLED"],
    ("NEW", "UNSETTLED"): ["SEND_TRANSFER"],
    ("UNSETTLED", "OUTCOME"): ["RECV_OUTCOME"],
    ("UNSETTLED", "SETTLED"): ["RECV_OUTCOME_SETTLED"],
    ("OUTCOME", "SETTLED"): ["SEND_SETTLED"],
}
"""A delivery as its sender sees it."""


class Diagram(NamedTuple):
    """How a table is drawn.

    Attributes:
        heading: what it shows.
        table: the steps.
        size: of the drawing.
        places: where the middle of each state is.
        bends: for an edge, by how much its middle is moved to the side, and where on it the words stand (0 to 1).
    """

    heading: str
    table: Table
    size: tuple[int, int]
    places: dict[str, Point]
    bends: dict[Edge, tuple[float, float]]

    def draw(self, theme: str) -> str:
        """The SVG."""
        assert set(self.places) == {state for edge in self.table for state in edge}, "a state has no place"
        drawing = Drawing(*self.size, self.heading, theme)
        labels = [self._draw_edge(drawing, edge, names) for edge, names in self.table.items()]
        for state, place in self.places.items():
            drawing.box(place, _SIZE, [state], bold=True)
        for place, text, colour in labels:
            drawing.words(place, text, colour=colour, size=13)
        _draw_legend(drawing, (20, self.size[1] - 16))
        return drawing.text()

    def _draw_edge(self, drawing: Drawing, edge: Edge, names: list[str]) -> tuple[Point, str, int]:
        bend, share = self.bends.get(edge, (0.0, 0.5))
        start, end = (self.places[state] for state in edge)
        title = f"{edge[0]} -> {edge[1]}: {', '.join(names)}"
        colour = _colour(names)
        if edge[0] == edge[1]:
            x, y = start
            left, below = x - _SIZE[0] / 2, y + _SIZE[1] / 2
            curve = [(left + 54, below), (left + 72, below + 46), (left + 2, below + 46), (left + 18, below)]
            drawing.arrow(curve, colour=colour, title=title)
            return (left + 38, below + 44), _phrase(names), colour
        middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
        length = hypot(end[0] - start[0], end[1] - start[1])
        side = (end[1] - start[1]) / length * bend, -(end[0] - start[0]) / length * bend
        control = middle[0] + side[0] * 2, middle[1] + side[1] * 2
        first, last = _edge_of(start, control), _edge_of(end, control)
        drawing.arrow([first, control, last] if bend else [first, last], colour=colour, title=title)
        place = tuple(
            (1 - share) ** 2 * a + 2 * share * (1 - share) * c + share**2 * b if bend else a + (b - a) * share
            for a, c, b in zip(first, control, last, strict=True)
        )
        return (place[0], place[1]), _phrase(names), colour


def _edge_of(middle: Point, other: Point) -> Point:
    """Return the point where a line from the middle of a box leaves the box."""
    dx, dy = other[0] - middle[0], other[1] - middle[1]
    share = min(_SIZE[0] / 2 / abs(dx) if dx else 9e9, _SIZE[1] / 2 / abs(dy) if dy else 9e9)
    return toward(middle, other, hypot(dx, dy) * share + 1)


def _colour(names: list[str]) -> int:
    ours = {name.startswith("SEND_") for name in names}
    return BOTH if len(ours) == 2 else OURS if ours == {True} else THEIRS


def _phrase(names: list[str]) -> str:
    """Return the label of a step, e.g. ``send close``.

    A close with an error is left out if it has the same effect.
    """
    plain = [
        name
        for name in names
        if name.replace("_ERROR", "") == name or name.replace("_ERROR", "") not in names
    ]
    verbs = {"SEND": "send", "RECV": "receive"}
    first = verbs[plain[0][:4]]
    return first + " " + " or ".join(name[5:].lower().replace("_", " ") for name in plain)


def _draw_legend(drawing: Drawing, start: Point) -> None:
    x, y = start
    for words, colour, width in (("what we send", OURS, 150), ("what the peer sends", THEIRS, 0)):
        drawing.arrow([(x, y), (x + 34, y)], colour=colour)
        drawing.words((x + 42, y), words, size=13, anchor="start")
        x += width


_A, _B, _C, _D = 100.0, 274.0, 448.0, 628.0

DIAGRAMS: Final = {
    "connection-states": Diagram(
        "The states of a connection (2.4.6)",
        steps(CONNECTION),
        (700, 830),
        {
            "START": (_C, 24),
            "HDR_SENT": (_B, 104),
            "HDR_RCVD": (_D, 104),
            "HDR_EXCH": (_C, 184),
            "OPEN_PIPE": (_B, 234),
            "OPEN_SENT": (_C, 304),
            "OPEN_RCVD": (_D, 304),
            "OC_PIPE": (_B, 364),
            "OPENED": (_C, 474),
            "CLOSE_PIPE": (_B, 484),
            "DISCARDING": (_A, 624),
            "CLOSE_SENT": (_B, 634),
            "CLOSE_RCVD": (_D, 634),
            "END": (_C, 744),
        },
        {
            ("OPEN_PIPE", "DISCARDING"): (-32, 0.5),
            ("OPEN_SENT", "CLOSE_PIPE"): (0, 0.36),
            ("OPEN_SENT", "DISCARDING"): (-24, 0.8),
            ("OC_PIPE", "CLOSE_PIPE"): (0, 0.26),
            ("OPENED", "DISCARDING"): (0, 0.66),
            ("CLOSE_PIPE", "CLOSE_SENT"): (0, 0.74),
            ("OPENED", "CLOSE_SENT"): (0, 0.5),
            ("DISCARDING", "END"): (0, 0.36),
            ("CLOSE_SENT", "END"): (0, 0.42),
        },
    ),
    "session-states": Diagram(
        "The states of a session (2.5.5)",
        steps(SESSION),
        (700, 520),
        {
            "UNMAPPED": (_C, 30),
            "BEGIN_SENT": (_B, 130),
            "BEGIN_RCVD": (_D, 130),
            "MAPPED": (_C, 230),
            "DISCARDING": (_A, 330),
            "END_SENT": (_B, 330),
            "END_RCVD": (_D, 330),
            "ENDED": (_C, 450),
        },
        {
            ("MAPPED", "DISCARDING"): (0, 0.62),
            ("DISCARDING", "ENDED"): (-34, 0.5),
            ("END_SENT", "ENDED"): (0, 0.55),
        },
    ),
    "link-states": Diagram(
        "The states of a link (2.6.3 to 2.6.6)",
        steps(LINK),
        (700, 500),
        {
            "DETACHED": (_B + 60, 30),
            "ATTACH_SENT": (_A + 60, 130),
            "ATTACH_RCVD": (_C + 60, 130),
            "ATTACHED": (_B + 60, 230),
            "DETACH_SENT": (_A + 60, 330),
            "DETACH_RCVD": (_C + 60, 330),
            "GONE": (_B + 60, 430),
        },
        {},
    ),
    "delivery-states": Diagram(
        "A delivery as its sender sees it (2.6.12)",
        DELIVERY,
        (700, 400),
        {"NEW": (350, 30), "UNSETTLED": (350, 130), "OUTCOME": (350, 230), "SETTLED": (350, 330)},
        {("NEW", "SETTLED"): (-190, 0.5), ("UNSETTLED", "SETTLED"): (160, 0.5)},
    ),
}
