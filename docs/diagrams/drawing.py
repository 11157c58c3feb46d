"""A drawing of boxes, arrows and words, as SVG; equal drawings give equal octets.

Lengths are in pixels. A colour is a name of ``bench.plots.THEMES``: ``ink`` and ``grid``, or an index of its ``bars``.
"""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import escape, quoteattr

from bench.plots import THEMES

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PAGES", "Drawing", "Point", "toward"]

PAGES: Final = {"light": "#ffffff", "dark": "#131416"}
"""The colour of the page: words get an edge of it, to be legible above a line."""

Point = tuple[float, float]
_HEAD: Final = 9.0


def toward(start: Point, end: Point, length: float) -> Point:
    """The point that is ``length`` from ``start`` on the way to ``end``."""
    whole = hypot(end[0] - start[0], end[1] - start[1]) or 1.0
    share = length / whole
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


class Drawing:
    """Shapes in the order in which they are drawn.

    Args:
        width, height: of the whole.
        heading: what the drawing shows, for those who do not see it.
        theme: ``light`` or ``dark``.
    """

    def __init__(self, width: int, height: int, heading: str, theme: str) -> None:
        self._colours: dict[str, Any] = THEMES[theme]
        self._page = PAGES[theme]
        size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        self._lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="system-ui, sans-serif" font-size="14">',
            f"<title>{escape(heading)}</title>",
        ]

    def colour(self, name: str | int) -> str:
        """The colour of the theme."""
        found: str = self._colours["bars"][name] if isinstance(name, int) else self._colours[name]
        return found

    def box(
        self,
        middle: Point,
        size: Point,
        words: Sequence[str],
        *,
        colour: str | int = "ink",
        bold: bool = False,
        title: str = "",
    ) -> None:
        """Draw a box with lines of words; the first is bold if there are more lines."""
        (x, y), (width, height), edge = middle, size, self.colour(colour)
        inner = f"<title>{escape(title)}</title>" if title else ""
        self._lines.append(
            f'<rect x="{x - width / 2:g}" y="{y - height / 2:g}" width="{width:g}" height="{height:g}" rx="7"'
            f' fill="{self._page}" stroke="{edge}" stroke-width="1.6">{inner}</rect>'
        )
        top = y - (len(words) - 1) * 9
        for index, line in enumerate(words):
            first = index == 0 and (bold or len(words) > 1)
            self.words((x, top + index * 18), line, bold=first)

    def words(
        self,
        middle: Point,
        text: str,
        *,
        colour: str | int = "ink",
        bold: bool = False,
        size: int = 14,
        anchor: str = "middle",
    ) -> None:
        """A line of words around ``middle``, or from there on (``anchor="start"``)."""
        weight = ' font-weight="600"' if bold else ""
        self._lines.append(
            f'<text x="{middle[0]:.1f}" y="{middle[1] + size * 0.35:.1f}" text-anchor="{anchor}" font-size="{size}"{weight}'
            f' fill="{self.colour(colour)}" stroke={quoteattr(self._page)} stroke-width="4" stroke-linejoin="round"'
            f' paint-order="stroke">{escape(text)}</text>'
        )

    def arrow(
        self, points: Sequence[Point], *, colour: str | int = "ink", dashed: bool = False, title: str = ""
    ) -> None:
        """Draw a line or a curve with an arrow head at the last of its points.

        Two points make a line, three a curve that the second bends, four a curve that the second and third bend.
        """
        *_, before, end = points
        neck = toward(end, before, _HEAD * 0.8)
        path = "M" + _pair(points[0]) + " LQC"[len(points) - 1] + " ".join(map(_pair, [*points[1:-1], neck]))
        dashes = ' stroke-dasharray="6 4"' if dashed else ""
        inner = f"<title>{escape(title)}</title>" if title else ""
        tint = self.colour(colour)
        self._lines.append(
            f'<path d="{path}" fill="none" stroke="{tint}" stroke-width="1.6"{dashes}>{inner}</path>'
        )
        back = toward(end, before, _HEAD)
        across = ((back[1] - end[1]) * 0.45, (end[0] - back[0]) * 0.45)
        corners = (
            end,
            (back[0] + across[0], back[1] + across[1]),
            (back[0] - across[0], back[1] - across[1]),
        )
        self._lines.append(f'<polygon points="{" ".join(map(_pair, corners))}" fill="{tint}"/>')

    def line(self, start: Point, end: Point, *, colour: str | int = "grid", dashed: bool = False) -> None:
        """A line without a head."""
        dashes = ' stroke-dasharray="6 4"' if dashed else ""
        self._lines.append(
            f'<path d="M{_pair(start)} L{_pair(end)}" stroke="{self.colour(colour)}" stroke-width="1.6"{dashes}/>'
        )

    def text(self) -> str:
        """The SVG."""
        return "\n".join([*self._lines, "</svg>\n"])


def _pair(point: Point) -> str:
    return f"{point[0]:.1f},{point[1]:.1f}"
