"""Measure the coverage of the packages outside the gate of ``make test``: those with streams, tasks and processes.

``python -m tests.package_coverage --results docs/results/coverage.json`` runs their tests, which takes some minutes more
than without, prints lines and branches covered in each package, and fails if one has less than its floor. Tests that are
marked ``whole`` are left out: they count costs and kill processes, which nothing that is measured may disturb.
``--spark`` measures the source and the sink of Spark, with the interpreter of the environment that has it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from . import results
from .places import ROOT

FLOORS: Final = {
    "amqp091/client": 97,
    "amqp091/server": 95,
    "amqp10/peer": 96,
    "amqp10/server": 96,
    "amqp_10_3/client": 99,
    "amqp_10_3/server": 97,
    "amqp_fast/client": 97,
    "amqp_fast/conversion": 97,
    "amqp_fast/server": 95,
    "aio.py": 91,
    "blocking.py": 92,
    "bridges": 91,
    "broker": 97,
    "container": 96,
    "http": 98,
    "kombu": 97,
    "net": 99,
    "otel": 97,
    "rabbitmq.py": 99,
    "testing": 97,
    "tools/cli": 96,
}
"""The least percentage of lines and branches of each package: what its tests reached when it was last raised."""
SPARK_FLOORS: Final = {"spark": 0}

_TESTS: Final = (
    *(
        "amqp091/client",
        "amqp091/server",
        "amqp10/peer",
        "amqp10/server",
        "amqp_10_3/client",
        "amqp_10_3/server",
    ),
    *(
        "amqp_fast/client",
        "amqp_fast/conversion",
        "amqp_fast/server",
        "broker",
        "container",
        "contract",
        "http",
        "kombu",
        "net",
    ),
    *("otel", "test_aio.py", "test_blocking.py", "test_rabbitmq.py", "testing", "tools/cli"),
)

_CONTRACT: Final = "tests/contract"

_SETTINGS: Final = """
[run]
branch = true
source = trio_amqp10
parallel = true
patch = subprocess
data_file = {folder}/data
[report]
exclude_also =
    if TYPE_CHECKING:
    @overload
    assert_never
"""


def measure(tests: list[str]) -> tuple[dict[str, Any], bool]:
    """Run tests under coverage, with the processes that they start.

    Returns:
        The report of each file, and whether all tests passed: one that is bound to a time may fail, as coverage makes it slow.
    """
    passed = True
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "settings")
        settings.write_text(_SETTINGS.format(folder=folder))
        coverage = [sys.executable, "-m", "coverage"]
        with_settings = ["--rcfile", str(settings)]
        environment = os.environ | {"HYPOTHESIS_PROFILE": "few"}
        # The contract counts all objects that there are, so it has a process of its own, as in ``make test``.
        alone = [path for path in tests if path == _CONTRACT]
        for paths in filter(None, (alone, [path for path in tests if path not in alone])):
            run = subprocess.run(
                [*coverage, "run", *with_settings, "-m", "pytest", "-q", "-m", "not whole", *paths],
                cwd=ROOT,
                env=environment,
                check=False,
            )
            passed = passed and run.returncode == 0
        subprocess.run([*coverage, "combine", "-q", *with_settings], cwd=ROOT, check=True)
        report = Path(folder, "report.json")
        subprocess.run([*coverage, "json", "-q", *with_settings, "-o", str(report)], cwd=ROOT, check=True)
        files: dict[str, Any] = json.loads(report.read_text())["files"]
    return files, passed


def by_package(files: dict[str, Any], packages: list[str]) -> dict[str, float]:
    """Return the percentage of lines and branches covered in each package."""
    covered: defaultdict[str, int] = defaultdict(int)
    there: defaultdict[str, int] = defaultdict(int)
    for path, report in files.items():
        name = path.removeprefix("trio_amqp10/")
        for package in packages:
            if name == package or name.startswith(f"{package}/"):
                summary = report["summary"]
                covered[package] += summary["covered_lines"] + summary["covered_branches"]
                there[package] += summary["num_statements"] + summary["num_branches"]
    return {package: round(100 * covered[package] / there[package], 1) for package in packages}


def below(found: dict[str, float], floors: dict[str, int]) -> list[str]:
    """Return the packages of which less is covered than their floor."""
    return [package for package, percent in found.items() if percent < floors[package]]


def main() -> None:
    """Measure, print, and compare with the floors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", action="store_true", help="measure spark alone")
    results.add_option(parser)
    options = parser.parse_args()
    floors = SPARK_FLOORS if options.spark else FLOORS
    files, passed = measure(["tests/spark"] if options.spark else [f"tests/{name}" for name in _TESTS])
    found = by_package(files, list(floors))
    for package, percent in found.items():
        print(f"{package:22} {percent:5} % (at least {floors[package]} %)")
    results.write(options.results, "coverage", {"passed": passed, "packages": found})
    if low := below(found, floors):
        raise SystemExit(f"covered less than its floor: {', '.join(low)}")
    if not passed:
        raise SystemExit("a test failed: see above")


if __name__ == "__main__":
    main()
