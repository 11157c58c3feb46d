"""The measurements run, and print figures (``make bench-spark``)."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from bench.spark_steady import slope

from .desk import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path


def test_growth_is_told_for_each_minute() -> None:
    assert slope([(0, 100.0), (30, 101.0), (60, 102.0), (90, 103.0)]) == pytest.approx(2)
    assert slope([(0, 100.0), (5, 90.0), (10, 100.0)]) == pytest.approx(0)


@pytest.mark.whole
def test_steady_rate_is_watched(java: None) -> None:
    given = ["--minutes", "0.5", "--warm-up", "5", "--rate", "500"]
    arguments = [sys.executable, "-m", "bench.spark_steady", *given]
    told = subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout
    assert "messages/s of 500 asked for" in told
    assert "MiB a minute" in told


def test_lanes_are_measured_and_computed(tmp_path: Path) -> None:
    file = tmp_path / "lanes.json"
    given = ["--rounds", "1", "--count", "2000", "--results", str(file)]
    subprocess.run([sys.executable, "-m", "bench.spark_lanes", *given], check=True, timeout=PATIENCE)
    figures = json.loads(file.read_text())["figures"]
    for rows in (figures["dedup=none"], figures["dedup=message-id"]):
        assert [(each["lanes"], each["how"]) for each in rows] == [
            (1, "measured"),
            (2, "measured"),
            (4, "computed"),
            (8, "computed"),
        ]
        assert all(each["us a message in the driver"] > 0 for each in rows)


@pytest.mark.whole
def test_bench_measures_everything(java: None) -> None:
    arguments = [sys.executable, "-m", "bench.spark", "--rounds", "1", "--count", "4000"]
    told = subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout
    for what in ("source / bare receive", "sink / bare send", "rows/s", "p50"):
        assert what in told
