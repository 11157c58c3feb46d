"""The measurements run, and give figures; what the figures are is for ``make bench-spark`` to say."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.whole
def test_bench_measures_everything(java: None) -> None:
    arguments = [sys.executable, "-m", "bench.spark", "--rounds", "1", "--count", "4000"]
    told = subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=300).stdout
    for what in ("source / bare receive", "sink / bare send", "rows/s", "p50"):
        assert what in told
