"""Sequences of frames between two ends: credit, windows, settlement, resumption."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .drawing import Drawing

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SEQUENCES", "Note", "Sent", "SequenceDiagram"]

_LEFT, _RIGHT, _STEP = 190.0, 510.0, 44.0


class Sent(NamedTuple):
    """A frame.

    Attributes:
        words: the text beside it.
        back: from the right end to the left.
        lost: it does not arrive.
    """

    words: str
    back: bool = False
    lost: bool = False


class Note(NamedTuple):
    """A note beside the line of an end, or between both."""

    left: str = ""
    right: str = ""
    between: str = ""


class SequenceDiagram(NamedTuple):
    """Two ends, and what they send.

    Attributes:
        heading: what it shows.
        ends: the names of the two.
        rows: from top to bottom.
    """

    heading: str
    ends: tuple[str, str]
    rows: Sequence[Sent | Note]

    def draw(self, theme: str) -> str:
        """The SVG."""
        height = int(70 + _STEP * len(self.rows))
        drawing = Drawing(700, height, self.heading, theme)
        for x, name in zip((_LEFT, _RIGHT), self.ends, strict=True):
            drawing.line((x, 40), (x, height - 8))
            drawing.box((x, 24), (150, 34), [name], bold=True)
        for index, row in enumerate(self.rows):
            _draw_row(drawing, row, 70 + _STEP * index)
        return drawing.text()


def _draw_row(drawing: Drawing, row: Sent | Note, y: float) -> None:
    middle = (_LEFT + _RIGHT) / 2
    if isinstance(row, Note):
        drawing.words((_LEFT - 10, y), row.left, size=13, anchor="end")
        drawing.words((_RIGHT + 10, y), row.right, size=13, anchor="start")
        if row.between:
            drawing.line((40, y), (660, y), dashed=True)
            drawing.words((middle, y), row.between, size=13, bold=True)
        return
    start, end = (_RIGHT, _LEFT) if row.back else (_LEFT, _RIGHT)
    tip = start + (end - start) * (0.55 if row.lost else 1)
    drawing.arrow([(start, y), (tip, y + 10)], colour=1 if row.back else 0, dashed=row.lost)
    drawing.words((middle, y - 10), row.words + (" (lost)" if row.lost else ""), size=13)


SEQUENCES: Final = {
    "credit": SequenceDiagram(
        "Link credit (2.6.7)",
        ("sender", "receiver"),
        (
            Note(left="credit 0: send waits", right="open_receiver(credit=4)"),
            Sent("flow: link-credit 4", back=True),
            Note(left="credit 4"),
            Sent("transfer, delivery-id 0"),
            Sent("transfer, delivery-id 1"),
            Note(left="credit 2", right="2 of 4 used: top up"),
            Sent("flow: delivery-count 2, link-credit 4", back=True),
            Note(left="credit 2 + 4 - 2 = 4"),
        ),
    ),
    "windows": SequenceDiagram(
        "Session windows (2.5.6)",
        ("sending end", "receiving end"),
        (
            Sent("begin: next-outgoing-id 0"),
            Sent("begin: incoming-window 4", back=True),
            Note(left="remote window 4", right="room for 4 frames"),
            Sent("transfer, more=true"),
            Sent("transfer: the message is whole"),
            Note(left="remote window 2", right="half is used"),
            Sent("flow: next-incoming-id 2, incoming-window 4", back=True),
            Note(left="remote window 4"),
        ),
    ),
    "at-most-once": SequenceDiagram(
        "At most once: sent settled (2.6.12)",
        ("sender", "receiver"),
        (Sent("transfer, settled=true"), Note(left="forgets at once", right="has nothing to answer")),
    ),
    "at-least-once": SequenceDiagram(
        "At least once: the receiver settles first (2.6.12)",
        ("sender", "receiver"),
        (
            Sent("transfer"),
            Note(left="keeps the message", right="accept()"),
            Sent("disposition: accepted, settled=true", back=True),
            Note(left="forgets", right="has forgotten before"),
        ),
    ),
    "exactly-once": SequenceDiagram(
        "Exactly once: the receiver settles second (2.6.12)",
        ("sender", "receiver"),
        (
            Sent("transfer"),
            Note(left="keeps the message", right="accept()"),
            Sent("disposition: accepted", back=True),
            Note(left="forgets the message", right="remembers the outcome"),
            Sent("disposition: settled=true"),
            Note(right="forgets the outcome"),
        ),
    ),
    "resume": SequenceDiagram(
        "A link that is resumed, exactly once (2.6.13)",
        ("sender", "receiver"),
        (
            Sent("transfer, tag a"),
            Sent("transfer, tag b", lost=True),
            Sent("disposition: a accepted", back=True, lost=True),
            Note(between="the connection is lost, and a new one opened"),
            Sent("attach: unsettled {a, b}"),
            Sent("attach: unsettled {a: accepted}", back=True),
            Note(left="b never came", right="a was accepted here"),
            Sent("transfer, tag a, resume=true: no payload"),
            Sent("transfer, tag b, as new"),
            Sent("disposition: a, settled=true"),
            Sent("disposition: a accepted, once more", back=True),
            Note(right="has a and b, each once"),
        ),
    ),
}
