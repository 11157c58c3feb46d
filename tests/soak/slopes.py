"""Does anything grow that should not? Memory, descriptors and trio's tasks over time, and the slope of each.

The slope is a straight line by least squares through the samples of the second half: what a process takes when it
begins is no leak. Connections come and go while it is sampled, so a slope has an error, and one is a fault if it is above
its bound by more than twice its standard error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

BOUNDS: Final = {"resident": 1024.0 * 1024.0, "descriptors": 1.0, "tasks": 1.0}
"""What a process may grow by in an hour: octets, and pieces."""

_PAGE: Final = 4096
_FEWEST: Final = 20
"""Samples below which a slope is told, and not judged."""
_SHORTEST: Final = 600.0
"""Seconds below which it is not judged either: in a minute of an hour's mebibyte there are four pages."""


class Sample(NamedTuple):
    """What a process has at one moment."""

    seconds: float
    resident: int
    descriptors: int
    tasks: int


def resident(pid: int) -> int:
    """Octets of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


def descriptors(pid: int) -> int:
    """File descriptors that a process has open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def slope(points: list[tuple[float, float]]) -> float:
    """By how much the second number grows while the first grows by 1; 0 where nothing can be said."""
    count = len(points)
    if count < 2:
        return 0.0
    middle_x = sum(x for x, _ in points) / count
    middle_y = sum(y for _, y in points) / count
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / spread if spread else 0.0


def standard_error(points: list[tuple[float, float]]) -> float:
    """Of ``slope``, by what the points lie off the line; 0 where nothing can be said."""
    count = len(points)
    middle_x = sum(x for x, _ in points) / count if count else 0.0
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    if count < 3 or not spread:
        return 0.0
    middle_y = sum(y for _, y in points) / count
    steepness = slope(points)
    left = sum((y - middle_y - steepness * (x - middle_x)) ** 2 for x, y in points)
    return math.sqrt(left / (count - 2) / spread)


@dataclass
class Slopes:
    """Samples of one process, in the order of time."""

    samples: list[Sample] = field(default_factory=list[Sample])

    @property
    def judged(self) -> bool:
        """Whether there are enough samples, over enough time, for ``faults``."""
        half = self._half()
        return len(half) >= _FEWEST and half[-1].seconds - half[0].seconds >= _SHORTEST

    def _half(self) -> list[Sample]:
        return self.samples[len(self.samples) // 2 :]

    def figures(self) -> dict[str, float]:
        """Growth in an hour, by name."""
        return {name: round(3600 * slope(self._points(name)), 1) for name in BOUNDS}

    def errors(self) -> dict[str, float]:
        """Standard errors of ``figures``, by name."""
        return {name: round(3600 * standard_error(self._points(name)), 1) for name in BOUNDS}

    def _points(self, name: str) -> list[tuple[float, float]]:
        return [(each.seconds, getattr(each, name)) for each in self._half()]

    def faults(self) -> list[str]:
        """What grows more than it may; nothing, where it cannot be judged."""
        if not self.judged:
            return []
        figures, errors = self.figures(), self.errors()
        return [
            f"{name} grows by {figures[name]:g} an hour with a standard error of {errors[name]:g}; {bound:g} is the most"
            for name, bound in BOUNDS.items()
            if figures[name] - 2 * errors[name] > bound
        ]
