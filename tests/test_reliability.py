"""The page about reliability says what runs have left, and nothing else; and what long runs judge by."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

import pytest

from . import reliability, results
from .soak.slopes import Sample, Slopes, slope, standard_error

if TYPE_CHECKING:
    from pathlib import Path

LEFT = {
    "fuzz": {"seed": 1, "targets": [{"target": "framer", "attempts": 12_345, "measured": 9, "failures": 0}]},
    "machines": {
        "seed": 1,
        "runs": [{"wire": "1.0", "steps": 23_456, "conversations": 400, "failure": None}],
    },
    "mutants": {
        "modules": [
            {
                "name": "wire",
                "mutants": 12,
                "score": 90.0,
                "reasoned": 1,
                "letters": 1,
                "survivors": ["one"],
                "commit": "abc",
            }
        ]
    },
    "conformance": {
        "pages": [
            {
                "page": "AMQP 1.0",
                "statements": 720,
                "with_mutant": 390,
                "mutants": 510,
                "killed": 510,
                "plain": 1_140,
                "plain_left": 0,
            }
        ],
        "rows": {"0.1-1": "0123456789abcdef"},
    },
    "kills": {"kills": 3, "lost": 0},
    "kills_dialects": {
        "runs": [
            {"dialect": "10.3", "kills": 4, "attempted": 34_567}
            | dict.fromkeys(("accepted", "lost", "duplicated", "unexplained", "unexpected", "recovered"), 0)
        ]
    },
    "spark_kills": {
        "runs": [
            {
                "peer": "stored",
                "spool": "objects",
                "dedup": "message-id",
                "sink": "files",
                "victims": {"jvm": 20, "store": 19},
                "sent": 328_800,
                "missing": 0,
                "repeated": 0,
                "allowed": 0,
                "commit": "abc",
            }
        ]
    },
    "comebacks": {
        "runs": [
            dict.fromkeys(("breaks", "attempted", "accepted", "lost", "missing", "duplicated", "raised"), 0)
            | {"guarantee": "exactly-once"}
        ]
    },
    "steady": {
        "minutes": 60.0,
        "messages": 1_000_000,
        "connections": 5,
        "cut": 1,
        "judged": True,
        "per_hour": {"resident": 2048.0, "descriptors": 0.0, "tasks": 0.0},
        "standard_errors": {"resident": 1024.0, "descriptors": 0.0, "tasks": 0.5},
    },
    "hostile": {
        "hostile": 1000,
        "good": 100,
        "raised": 0,
        "load": 0.5,
        "alone": {"p99_ms": 5.0, "worked_p99_ms": 1.5},
        "beside": {"p99_ms": 7.5, "worked_p99_ms": 2.5},
        "per_hostile": 10_240,
    },
    "flooders": {
        "seconds": 10.0,
        "load": 0.5,
        "kinds": [
            {
                "kind": "flows",
                "alone": {"p99_ms": 1.5, "worked_ms": 0.5, "raised": 0},
                "beside": {"p99_ms": 6.25, "worked_ms": 3.5, "raised": 0},
            }
        ],
    },
    "repeat": {
        "runs": [
            {"commit": "abcdef0", "loops": 2, "pauses": True, "load": 3.5, "good": good, "failed": []}
            for good in (True, False, True)
        ]
    },
}


def test_page_is_what_the_results_say() -> None:
    assert reliability.PAGE.read_text() == reliability.render(), "run `python -m tests.reliability`"


def test_page_shows_the_figures_of_every_run_that_left_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reliability, "FOLDER", tmp_path)
    assert reliability.render().count("No figures yet.") == len(reliability._CHAPTERS) == len(LEFT)
    for kind, figures in LEFT.items():
        results.write(tmp_path / f"{kind}.json", kind, figures)
    page = reliability.render()
    assert "No figures yet." not in page
    for figure in (
        "12,345",
        "23,456",
        "34,567",
        "90.0 %",
        "exactly-once",
        "1,000,000",
        "7.5",
        "10.0",
        "6.25",
        "328,800",
        "jvm 20, store 19",
    ):
        assert f"- {figure}\n" in page


def test_results_say_when_and_of_what_they_are(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    results.add_option(parser)
    results.write(parser.parse_args([]).results, "fuzz", {})
    file = tmp_path / "folder" / "fuzz.json"
    results.write(parser.parse_args(["--results", str(file)]).results, "fuzz", {"n": 1})
    left = json.loads(file.read_text())
    assert (left["kind"], left["figures"]) == ("fuzz", {"n": 1})
    assert left.keys() == {"kind", "date", "commit", "python", "cores", "figures"}


def test_slope_is_that_of_the_line_through_the_points() -> None:
    assert slope([(float(x), 3.0 * x + 7) for x in range(10)]) == pytest.approx(3.0)
    assert slope([(0.0, 1.0), (1.0, 3.0), (2.0, 2.0)]) == pytest.approx(0.5)
    assert slope([(1.0, 5.0)]) == slope([(1.0, 5.0), (1.0, 9.0)]) == 0.0


def test_standard_error_is_what_the_points_lie_off_the_line() -> None:
    assert standard_error([(float(x), 3.0 * x) for x in range(10)]) == pytest.approx(0.0, abs=1e-9)
    assert standard_error([(0.0, 1.0), (1.0, 3.0), (2.0, 2.0)]) == pytest.approx(0.866, abs=0.001)
    assert standard_error([]) == standard_error([(0.0, 1.0), (1.0, 2.0)]) == 0.0


def test_slopes_do_not_fail_for_what_comes_and_goes() -> None:
    samples = [Sample(float(at), 10_000_000, 10, 5 + 40 * (at % 70 == 0)) for at in range(0, 1410, 10)]
    leaking = [Sample(each.seconds, 10_000_000, 10, each.tasks + int(each.seconds / 20)) for each in samples]
    assert Slopes(samples).faults() == []
    assert len(Slopes(leaking).faults()) == 1


def test_slopes_judge_the_second_half_when_it_is_long_enough() -> None:
    def of(grows: float, seconds: int) -> Slopes:
        early = [Sample(float(at), 10_000_000 + 50_000 * at, 10, 5) for at in range(0, seconds // 2, 10)]
        late = [
            Sample(float(at), int(60_000_000 + grows * at), 10, 5) for at in range(seconds // 2, seconds, 10)
        ]
        return Slopes([*early, *late])

    assert of(0, 1400).faults() == []
    assert of(500, 1400).faults() == [
        "resident grows by 1.8e+06 an hour with a standard error of 0; 1.04858e+06 is the most"
    ]
    assert of(500, 600).faults() == []
    assert not of(500, 600).judged
