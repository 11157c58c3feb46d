"""The rows of ``make bench``: their measurements, peers and gates.

A row is a function that is a context manager: it sets up what all rounds need, and gives a function that runs one round, of all who are
compared, one after the other. A round finds figures: ``{(who, what): number}``.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from .lab import Lab

Key = tuple[str, str]
"""The side that is measured, and its figure: ``("ours", "sender us")``."""
Figures = dict[Key, float]
Round = "Callable[[], Figures]"


@dataclass(frozen=True, kw_only=True)
class Gate:
    """The bound that a figure, or the ratio of two figures, must keep.

    Attributes:
        top: the figure.
        bottom: the figure that it is divided by; None if the bound is for the figure itself.
        least, most: the bound; one of the two.
        compiled: the bound of a build that is compiled; None for the same.
    """

    top: Key
    bottom: Key | None = None
    least: float | None = None
    most: float | None = None
    compiled: float | None = None

    def says(self) -> str:
        """Return the gate in words, without the bound."""
        top = f"{self.top[1]}, {self.top[0]}"
        if self.bottom is None:
            return top
        if self.bottom[1] == self.top[1]:
            return f"{self.top[1]}, {self.top[0]} over {self.bottom[0]}"
        return f"{top} over {self.bottom[1]}, {self.bottom[0]}"

    def bound(self, *, compiled: bool) -> float:
        """Return the bound for this build."""
        pure = self.least if self.least is not None else self.most
        assert pure is not None
        return self.compiled if compiled and self.compiled is not None else pure

    def is_met(self, value: float, *, compiled: bool) -> bool:
        bound = self.bound(compiled=compiled)
        return value >= bound if self.least is not None else value <= bound


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row.

    Attributes:
        name: of the command line.
        about: a sentence: what is measured, and how.
        peers: the programs that it is compared with: names of ``tests/interop/install.sh``. Figures of a missing peer are left out.
        gates: the bounds of its figures.
        quiet: whether its figures are of wall time, which hold on a quiet machine only.
        curve: the thing that ``who`` counts, if ``who`` is a number: then the page has the slope of each ``what``.
        open: prepares all rounds, and gives the function that runs one.
    """

    name: str
    about: str
    peers: tuple[str, ...]
    gates: tuple[Gate, ...]
    quiet: bool
    curve: str | None
    open: Callable[[Lab], AbstractContextManager[Callable[[], Figures]]]


ROWS: dict[str, Row] = {}
"""All rows by name, in the order of the table. Filled by importing ``bench.rows``."""


def row(
    name: str,
    about: str,
    *,
    peers: tuple[str, ...] = (),
    gates: tuple[Gate, ...] = (),
    quiet: bool = False,
    curve: str | None = None,
) -> Callable[[Callable[[Lab], Iterator[Callable[[], Figures]]]], None]:
    """Register a generator function as a row."""

    def register(measure: Callable[[Lab], Iterator[Callable[[], Figures]]]) -> None:
        assert name not in ROWS, name
        ROWS[name] = Row(
            name=name,
            about=about,
            peers=peers,
            gates=gates,
            quiet=quiet,
            curve=curve,
            open=contextmanager(measure),
        )

    return register
