"""The demo ends with a line when nobody reads its frames."""

from __future__ import annotations

from .conftest import (
    start,
)


def test_demo_ends_with_a_line_when_nobody_reads_its_frames() -> None:
    process = start("demo", "--dialect", "all", "--frames")
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        process.stdout.readline()
        process.stdout.close()
        assert len(process.stderr.read().splitlines()) <= 1
