"""The dashboard of the manual asks only for metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from trio_amqp10.container.management.figures import FIGURES
from trio_amqp10.http.metrics import NAMES

DASHBOARD = Path(__file__).resolve().parents[2] / "docs" / "_static" / "grafana-dashboard.json"
PAGE = DASHBOARD.parents[1] / "how-to" / "prometheus.rst"
NAME = re.compile(r"\b(?:rabbitmq|amqp10|process)_[a-z0-9_]+\b")


def queries() -> list[str]:
    """All queries of the panels and of the variables."""
    dashboard: dict[str, Any] = json.loads(DASHBOARD.read_text())
    variables = [each["query"] for each in dashboard["templating"]["list"] if each["type"] == "query"]
    return [
        *(each["expr"] for panel in dashboard["panels"] for each in panel.get("targets", ())),
        *(each["query"] for each in variables),
    ]


def test_every_query_asks_for_a_metric_that_there_is() -> None:
    for query in queries():
        names = set(NAME.findall(query))
        assert names, query
        assert names <= NAMES, query


def test_panels_do_not_overlap_and_have_numbers_of_their_own() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_totals_are_shown_as_rates() -> None:
    for query in queries():
        for name in NAME.findall(query):
            if name.endswith("_total"):
                assert re.search(rf"rate\({name}\b", query), query


def test_page_names_only_metrics_that_there_are() -> None:
    named = {name for name in NAME.findall(PAGE.read_text()) if not name.endswith("_")}
    assert named
    assert named <= NAMES


def test_page_has_every_figure_with_its_meaning() -> None:
    page = PAGE.read_text()
    for name in NAMES:
        assert f"``{name}``" in page
    for figure in FIGURES:
        assert figure.description in page
        assert figure.opentelemetry is None or f"``{figure.opentelemetry}``" in page
