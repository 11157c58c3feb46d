"""The page about speed, its plots and the README agree with the results."""

from __future__ import annotations

from typing import Any

import pytest

from bench import page, plots
from bench.registry import ROWS, Figures
from bench.results import FILE, load, summary

MADE = "run `python -m bench.page` (it needs matplotlib: pip install '.[bench]')"


def results(*names: str, **figures: float) -> dict[str, Any]:
    """Return results in which these rows have figures of both sides."""
    found: Figures = {
        (who, what.replace("_", " ")): each for what, each in figures.items() for who in ("ours", "proton")
    }
    return {
        "machine": {"processor": "P", "cores": 2, "memory GiB": 1.5, "system": "Linux"},
        "versions": {"Python": "3.11", "node": "v18"},
        "rows": {name: summary(ROWS[name], [found], 1.0) for name in names},
    }


def test_page_is_what_the_results_say() -> None:
    assert page.PAGE.read_text() == page.render(load(FILE)), MADE


def test_readme_and_the_page_about_limits_say_what_the_results_say() -> None:
    for file, made in ((page.README, page.with_paragraph), (page.LIMITS, page.with_sizes)):
        text = file.read_text()
        assert text == made(text, load(FILE)), MADE


@pytest.mark.parametrize("name", plots.NAMES)
def test_plot_is_of_the_figures_that_there_are(name: str) -> None:
    figures = plots.figures_of(name, load(FILE)["rows"])
    for theme in plots.THEMES:
        file = page.PLOTS / f"{name}-{theme}.svg"
        assert file.exists() == bool(figures), MADE
        if figures:
            assert plots.digest(figures) in file.read_text(), MADE


def test_page_shows_every_row_and_tells_those_without_figures() -> None:
    shown = page.render(results("direct-full", sender_us=2.0, receiver_us=3.0))
    assert shown.count("No figures yet.") == len(ROWS) - 1
    assert all(f"\n{name}\n~~~" in shown for name in ROWS)
    assert "The machine: P, 2 processors, 1.5 GiB, Linux. The versions: Python 3.11, node 18." in shown
    assert "0 of the 2 gates that were measured are met." in shown
    assert "2 (2 to 2)" in shown


def test_page_answers_first_and_ends_with_the_gates() -> None:
    shown = page.render(results("direct-rate", sender_us=2.0, receiver_us=3.0))
    answer = "costs its sender 2 microseconds of processor time with this library (2 with Qpid Proton), and its receiver 3"
    places = [
        shown.index(each)
        for each in (answer, "plots/direct-light.svg", "direct-full\n~~~", "How it", "Gates\n")
    ]
    assert places == sorted(places)


def test_page_of_no_results_has_no_gates() -> None:
    shown = page.render({"kind": "speed", "rows": {}})
    assert shown.count("No figures yet.") == len(ROWS)
    assert "The machine" not in shown


def test_curve_is_shown_by_points_and_with_its_slope() -> None:
    made = results()
    found: Figures = {("1", "server us"): 10.0, ("1000", "server us"): 13.0}
    made["rows"]["growth-depth"] = summary(ROWS["growth-depth"], [found], 1.0)
    shown = page.render(made)
    assert "   * - 1,000\n     - 13 (13 to 13)" in shown
    assert "For each tenfold growth of the first column: server us +1." in shown


def test_readme_tells_figures_with_the_command_that_measures_them() -> None:
    made = results("direct-full", sender_us=2.0, receiver_us=3.0)
    made["rows"]["direct-full"]["load"] = [0.1, 0, 0]
    text = page.with_paragraph(page.README.read_text(), made)
    assert "costs 2 us of processor time at our sender and 3 us" in text
    assert "python -m bench direct-full" in text
    assert "busy machine" not in text
    made["rows"]["direct-full"]["load"] = [3.5, 0, 0]
    assert "at a load average of up to 3.5" in page.with_paragraph(text, made)


def test_page_about_limits_puts_both_brokers_side_by_side() -> None:
    made = results()
    for name, rate in (("queue-sizes", 5000.0), ("queue-sizes-rabbitmq", 2000.0)):
        found: Figures = {("100", "messages a second"): rate, ("100", "MB a second"): rate / 1e4}
        made["rows"][name] = summary(ROWS[name], [found], 1.0)
    text = page.with_sizes(page.LIMITS.read_text(), made)
    assert "   * - 100\n     - 5,000\n     - 0.5\n     - 2,000\n" in text


def test_plot_changes_when_a_figure_does() -> None:
    one = plots.figures_of("direct", results("direct-full", sender_us=2.0, receiver_us=3.0)["rows"])
    other = plots.figures_of("direct", results("direct-full", sender_us=2.0, receiver_us=3.1)["rows"])
    assert one.keys() == {"full,\nsender", "full,\nreceiver"}
    assert plots.digest(one) != plots.digest(other)
