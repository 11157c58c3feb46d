"""Summaries of the rounds of each row, and the file that keeps them.

A summary has medians, spread and gates; the file also has the machine and the versions that were measured.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio_amqp10
from tests.results import FOLDER

from .processes import PEERS, ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .registry import Figures, Gate, Row

FILE: Final = FOLDER / "speed.json"
"""The file that the page and the plots read."""


def summary(row: Row, rounds: Sequence[Figures], seconds: float) -> dict[str, Any]:
    """Return the summary of a row whose rounds took so many seconds."""
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for who, what in rounds[0]:
        values = [each[who, what] for each in rounds]
        spread = {"median": statistics.median(values), "least": min(values), "most": max(values)}
        figures.setdefault(who, {})[what] = {name: _rounded(value) for name, value in spread.items()}
    return {
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "load": [round(each, 2) for each in os.getloadavg()],
        "seconds": round(seconds, 1),
        "rounds": len(rounds),
        "compiled": is_compiled(),
        "figures": figures,
        "gates": [judged for gate in row.gates if (judged := _judged(gate, rounds)) is not None],
        "slopes": {} if row.curve is None else _slopes(figures),
    }


def _judged(gate: Gate, rounds: Sequence[Figures]) -> dict[str, Any] | None:
    """Return the ratio of medians, and the spread over the rounds.

    None if a peer is missing.
    """
    if gate.top not in rounds[0] or (gate.bottom is not None and gate.bottom not in rounds[0]):
        return None
    tops = [each[gate.top] for each in rounds]
    bottoms = [1.0 if gate.bottom is None else each[gate.bottom] for each in rounds]
    value = statistics.median(tops) / statistics.median(bottoms)
    each = [top / bottom for top, bottom in zip(tops, bottoms, strict=True)]
    return {
        "says": gate.says(),
        "value": _rounded(value),
        "least": _rounded(min(each)),
        "most": _rounded(max(each)),
        "wanted": "at least" if gate.least is not None else "at most",
        "bound": gate.bound(compiled=is_compiled()),
        "met": gate.is_met(value, compiled=is_compiled()),
    }


def _slopes(figures: dict[str, dict[str, dict[str, float]]]) -> dict[str, float]:
    """Return how much each figure of a curve grows when ``who`` grows tenfold."""
    points: dict[str, list[tuple[float, float]]] = {}
    for who, ones in figures.items():
        for what, spread in ones.items():
            points.setdefault(what, []).append((math.log10(float(who)), spread["median"]))
    return {what: _rounded(slope(those)) for what, those in points.items() if len(those) > 1}


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the straight line through points, by least squares."""
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def _rounded(value: float) -> float:
    """Round to four digits, which is more than the precision of a measurement."""
    return float(f"{value:.4g}")


def is_compiled() -> bool:
    """Whether modules of the library are compiled."""
    return any(Path(trio_amqp10.__file__).parent.rglob("*.so"))


@cache
def commit() -> str:
    """Return the commit that is measured.

    ``-dirty`` follows if the library or the benchmarks have been changed since.
    """
    git = ["git", "-C", str(ROOT)]
    status = [*git, "status", "--porcelain", "--untracked-files=no", "--", "trio_amqp10", "bench"]
    try:
        head = subprocess.run(
            [*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
        )
        changed = subprocess.run(status, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"  # A source distribution has no commit.
    return head.stdout.strip() + ("-dirty" if changed else "")


def load(file: Path) -> dict[str, Any]:
    """Read the results of a file; without the file there are no rows."""
    if not file.exists():
        return {"kind": "speed", "rows": {}}
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def save(file: Path, results: dict[str, Any]) -> None:
    """Write the results, with the machine and the versions that were measured."""
    file.parent.mkdir(parents=True, exist_ok=True)
    head = {"kind": "speed", "machine": _machine(), "versions": _versions()}
    file.write_text(json.dumps(head | {"rows": results["rows"]}, indent=1) + "\n")


@cache
def _machine() -> dict[str, Any]:
    model = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    return {
        "processor": model.group(1) if model else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory GiB": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
    }


@cache
def _versions() -> dict[str, str]:
    """Return the versions of Python, of the dependencies and of the installed peers."""
    found = {
        "Python": _python(),
        "trio-amqp10": _version("trio-amqp10"),
        "trio": _version("trio"),
    }
    for name, pattern in (
        ("python-qpid-proton", "proton/lib/python3*/site-packages/python_qpid_proton-*.dist-info"),
        ("pika", "pika/lib/python3*/site-packages/pika-*.dist-info"),
        ("aio-pika", "pika/lib/python3*/site-packages/aio_pika-*.dist-info"),
        ("azure-servicebus", "azure/lib/python3*/site-packages/azure_servicebus-*.dist-info"),
        ("RabbitMQ", "rabbitmq4/usr/lib/rabbitmq/lib/rabbitmq_server-*"),
    ):
        for path in PEERS.glob(pattern):
            found[name] = path.name.removesuffix(".dist-info").rpartition("-")[2]
    rhea = PEERS / "rhea/node_modules/rhea/package.json"
    if rhea.exists():
        found["rhea"] = json.loads(rhea.read_text())["version"]
        found["node"] = subprocess.run(
            ["node", "--version"], capture_output=True, text=True, check=False
        ).stdout.strip()
    return found


def _python() -> str:
    """Return the version of the interpreter, and whether it is that of the system."""
    found = platform.python_version()
    if sys.base_prefix == "/usr":
        found += f" of {platform.freedesktop_os_release()['PRETTY_NAME']}"
    return found


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"  # A checkout may not be installed.
