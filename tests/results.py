"""Figures that a long run leaves behind, with when, where and of what they are; ``reliability`` makes a page of them."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import argparse

_ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = _ROOT / "docs" / "results"
"""Where those are kept that the page is made of: ``--results docs/results/fuzz.json``."""


def add_option(parser: argparse.ArgumentParser) -> None:
    """``--results FILE``, for a command that writes some."""
    parser.add_argument("--results", type=Path, default=None, help="write the figures there, as JSON")


def write(path: Path | None, kind: str, figures: dict[str, Any]) -> None:
    """Write figures, unless ``path`` is None.

    Args:
        path: of the file; its folder is made.
        kind: which run left them, as ``reliability`` knows it.
        figures: what it counted.
    """
    if path is None:
        return
    now = datetime.datetime.now(datetime.UTC)
    head = {
        "kind": kind,
        "date": now.date().isoformat(),
        "commit": commit(),
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(head | {"figures": figures}, indent=1) + "\n")


def earlier(path: Path | None, key: str) -> list[dict[str, Any]]:
    """The rows by this key of the figures that earlier runs have written to ``path``; empty if there are none."""
    rows: list[dict[str, Any]] = (
        json.loads(path.read_text())["figures"][key] if path is not None and path.exists() else []
    )
    return rows


def commit() -> str:
    """The commit that is tried, with ``-dirty`` behind it if a file was changed since."""
    command = ["git", "describe", "--always", "--dirty"]
    try:
        said = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"  # of a source distribution
    return said.strip()
