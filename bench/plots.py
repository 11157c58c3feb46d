"""The plots of the page about speed, as SVG for light and for dark pages, drawn by matplotlib (the extra ``bench``).

The same figures give the same octets: a plot says in its metadata of which figures it was drawn.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from .table import figure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

THEMES: Final = {
    "light": {"ink": "#1a1c1e", "grid": "#d5d9dd", "bars": ("#0b6e99", "#c8782a", "#7b8794", "#a33b5e")},
    "dark": {"ink": "#e6e8ea", "grid": "#3d444b", "bars": ("#4fb3e0", "#e8a15c", "#9aa5b1", "#e07a9c")},
}
"""Colours that differ in lightness too, for those who do not see all of them."""

Bars = dict[str, dict[str, dict[str, float]]]
"""By group, then by who: median, least and most."""

_BARS: Final[dict[str, tuple[str, str, tuple[tuple[str, str, str], ...]]]] = {
    "direct": (
        "Processor time of a message of 100 octets",
        "microseconds, less is better",
        tuple(
            (f"{words},\n{side}", f"direct-{row}", f"{side} us")
            for row, words in (("full", "full"), ("id", "id alone"), ("bytes", "octets alone"))
            for side in ("sender", "receiver")
        ),
    ),
    "queue": (
        "Through a queue",
        "messages a second, more is better",
        (
            ("full", "queue-full", "messages a second"),
            ("octets alone", "queue-bytes", "messages a second"),
            ("full, durable", "queue-durable", "messages a second"),
        ),
    ),
    "amqp091": (
        "Clients of 0-9-1, 100 octets",
        "microseconds, less is better",
        (
            ("publish", "091-publish", "client us"),
            ("publish,\n1,000 confirms", "091-publish-confirms", "client us"),
            ("publish,\nconfirm each", "091-publish-each", "client us"),
            ("consume", "091-consume", "client us"),
        ),
    ),
}
_CURVES: Final = {
    "growth": (
        ("growth-links", "sender us, one of them busy", "links, one busy: sender"),
        ("growth-connections", "server us, one of them busy", "connections, one busy: server"),
        ("growth-depth", "server us", "messages in the queue: server"),
    )
}
NAMES: Final = (*_BARS, *_CURVES)


def figures_of(name: str, rows: dict[str, Any]) -> Any:
    """What a plot shows of the rows that were measured; nothing where there are none."""
    if name in _CURVES:
        return {
            row: [(int(who), ones[what]) for who, ones in rows[row]["figures"].items()]
            for row, what, _ in _CURVES[name]
            if row in rows
        }
    found: Bars = {}
    for words, row, what in _BARS[name][2]:
        if row in rows:
            found[words] = {who: each[what] for who, each in rows[row]["figures"].items() if what in each}
    return found


def digest(figures: Any) -> str:
    """By which a plot is known to be of these figures."""
    return hashlib.sha256(json.dumps(figures, sort_keys=True).encode()).hexdigest()[:16]


def write(folder: Path, results: dict[str, Any]) -> None:
    """Draw all plots for which there are figures."""
    import matplotlib as mpl

    mpl.use("svg")
    folder.mkdir(exist_ok=True)
    for name in NAMES:
        figures = figures_of(name, results["rows"])
        if not figures:
            continue
        for theme, colours in THEMES.items():
            style: dict[str, Any] = {
                "svg.hashsalt": name,
                "svg.fonttype": "path",
                "font.size": 10,
                "text.color": colours["ink"],
                "axes.labelcolor": colours["ink"],
                "axes.edgecolor": colours["grid"],
                "xtick.color": colours["ink"],
                "ytick.color": colours["ink"],
                "grid.color": colours["grid"],
            }
            with mpl.rc_context(style):  # type: ignore[arg-type,unused-ignore]  # it wants literals
                drawn = (
                    _draw_curves(name, figures, colours)
                    if name in _CURVES
                    else _draw_bars(name, figures, colours)
                )
                metadata = {"Date": None, "Creator": None, "Description": digest(figures)}
                drawn.savefig(
                    folder / f"{name}-{theme}.svg", format="svg", transparent=True, metadata=metadata
                )


def _figure(panels: int = 1) -> tuple[Any, Sequence[Any]]:
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(8, 3.4), layout="constrained")
    axes = drawn.subplots(1, panels, squeeze=False)[0]
    for each in axes:
        each.grid(axis="y", linewidth=0.6)
        each.set_axisbelow(True)
        each.spines[["top", "right", "left"]].set_visible(False)
        each.tick_params(length=0)
    return drawn, axes


def _draw_bars(name: str, figures: Bars, colours: Any) -> Any:
    heading, unit, _ = _BARS[name]
    drawn, (axes,) = _figure()
    who = list(dict.fromkeys(each for ones in figures.values() for each in ones))
    width = 0.8 / max(map(len, figures.values()))
    for index, each in enumerate(who):
        places = [
            group + (list(ones).index(each) - (len(ones) - 1) / 2) * width
            for group, ones in enumerate(figures.values())
            if each in ones
        ]
        spreads = [ones[each] for ones in figures.values() if each in ones]
        heights = [spread["median"] for spread in spreads]
        errors = (
            [spread["median"] - spread["least"] for spread in spreads],
            [spread["most"] - spread["median"] for spread in spreads],
        )
        axes.bar(places, heights, width * 0.92, color=colours["bars"][index % 4], label=each)
        axes.errorbar(places, heights, errors, fmt="none", ecolor=colours["ink"], elinewidth=0.8, capsize=2)
        for place, spread in zip(places, spreads, strict=True):
            text, top = figure(spread["median"]), (place, spread["most"])
            axes.annotate(text, top, (0, 3), textcoords="offset points", ha="center", fontsize=8)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xticks(range(len(figures)), list(figures))
    axes.set_ylabel(unit)
    axes.margins(y=0.12)
    axes.set_title(heading, loc="left", fontsize=11)
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(who), borderaxespad=0.2)
    return drawn


def _draw_curves(name: str, figures: dict[str, list[tuple[int, dict[str, float]]]], colours: Any) -> Any:
    drawn, panels = _figure(len(figures))
    headings = {row: heading for row, _, heading in _CURVES[name]}
    for axes, (row, points) in zip(panels, figures.items(), strict=True):
        places = [place for place, _ in points]
        axes.fill_between(
            places,
            [each["least"] for _, each in points],
            [each["most"] for _, each in points],
            color=colours["bars"][0],
            alpha=0.2,
            linewidth=0,
        )
        axes.plot(
            places, [each["median"] for _, each in points], marker="o", markersize=4, color=colours["bars"][0]
        )
        axes.set_xscale("log")
        axes.set_ylim(0, 1.3 * max(each["most"] for _, each in points))
        axes.set_title(headings[row], loc="left", fontsize=10)
    panels[0].set_ylabel("microseconds a message")
    return drawn
