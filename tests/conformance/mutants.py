"""Prove the conformance page: remove what each row says, and see its tests fail.

``python -m tests.conformance.mutants [NUMBER...]`` takes every row whose number begins with one of NUMBER (all by
default). For each mutant of a row it starts a process in which the product's source is changed as the mutant
says, runs the row's tests there, and notes which of them fail. The files themselves are never touched: the change is made while
Python imports the module. A mutant that no test kills, and a test that no mutant of its row makes fail, are
printed, and the command ends with 1.

Without any change the tests must pass: that is checked first.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import os
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis  # noqa: F401  imported before the processes are forked, once for all
import pytest
import trio  # noqa: F401

from .conformance import PARTS
from .rst import ROOT, find_test

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, ModuleType

    from .requirement import Mutant, Requirement

__all__ = ["changed_sources", "main"]

_PACKAGE = ROOT / "trio_amqp10"
_DONE = "done"
"""The last line of the report of a run that came to its end."""

_TIMEOUT = 120.0
"""Seconds after which a run is ended: of a run that has not come to its end nothing is known."""

_LIMIT = 10.0
"""Seconds after which a test fails: many mutants have a test wait for what does not come."""


@cache
def _sources() -> dict[Path, str]:
    return {path: path.read_text() for path in sorted(_PACKAGE.rglob("*.py"))}


def changed_sources(mutant: Mutant) -> dict[Path, str]:
    """The files that a mutant changes, with their text as it leaves them.

    Raises:
        LookupError: the text that a change replaces does not occur exactly once in the package.
    """
    changed: dict[Path, str] = {}
    for change in mutant:
        found = [path for path, text in _sources().items() if change.old in text]
        if len(found) != 1 or _sources()[found[0]].count(change.old) != 1:
            where = ", ".join(str(path.relative_to(ROOT)) for path in found) or "no file"
            raise LookupError(f"{change.old!r} must occur once in the package; it occurs in {where}")
        changed[found[0]] = changed.get(found[0], _sources()[found[0]]).replace(change.old, change.new)
    return changed


class _ChangedLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from another text than that of its file."""

    def __init__(self, fullname: str, path: str, text: str) -> None:
        super().__init__(fullname, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._text, self.path, "exec", dont_inherit=True)


class _ChangedFinder(importlib.abc.MetaPathFinder):
    def __init__(self, changed: dict[Path, str]) -> None:
        self._changed = changed

    def find_spec(
        self, fullname: str, path: Any, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or Path(spec.origin) not in self._changed:
            return None
        spec.loader = _ChangedLoader(fullname, spec.origin, self._changed[Path(spec.origin)])
        return spec


class _Failures:
    """A plugin of pytest that notes the tests that fail."""

    def __init__(self) -> None:
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


def _node(reference: str) -> str:
    file, name = find_test(reference)
    return f"tests/{file}::{name}"


def _belongs(nodeid: str, node: str) -> bool:
    return nodeid == node or nodeid.startswith(f"{node}[")


def _child(nodes: list[str], mutant: Mutant, report: Path) -> None:
    """Run the tests with the change; write a line for each that failed, and at the end that all were run."""
    assert "trio_amqp10" not in sys.modules, "what is imported already cannot be changed"
    sys.meta_path.insert(0, _ChangedFinder(changed_sources(mutant)))
    os.environ["AMQP10_TEST_LIMIT"] = str(_LIMIT)
    failures = _Failures()
    arguments = ["-q", "-p", "no:cacheprovider", "--assert=plain", *nodes]
    code = pytest.main(arguments, plugins=[failures])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return
    failed = [node for node in nodes if any(_belongs(each, node) for each in failures.failed)]
    report.write_text("\n".join([*failed, _DONE]))


@dataclass
class _Run:
    """A process that runs a row's tests with one of its mutants."""

    row: Requirement
    mutant: Mutant
    nodes: list[str]
    report: Path
    pid: int = 0
    began: float = field(default_factory=time.monotonic)
    timed_out: bool = False

    def start(self) -> None:
        self.pid = os.fork()
        if self.pid:
            return
        code = 1
        try:
            os.setpgid(0, 0)
            output = os.open(f"{self.report}.txt", os.O_WRONLY | os.O_CREAT)
            os.dup2(output, 1)
            os.dup2(output, 2)
            _child(self.nodes, self.mutant, self.report)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def ended(self) -> bool:
        if os.waitpid(self.pid, os.WNOHANG) != (0, 0):
            return True
        if not self.timed_out and time.monotonic() - self.began > _TIMEOUT:
            self.timed_out = True
            os.killpg(self.pid, signal.SIGKILL)
        return False

    def failed(self) -> set[str]:
        """The tests that failed."""
        return set(self._lines()[:-1])

    def ran(self) -> bool:
        """Whether the tests could be imported and came to their end: otherwise the mutant shows nothing."""
        return self._lines()[-1:] == [_DONE]

    def _lines(self) -> list[str]:
        return self.report.read_text().splitlines() if self.report.exists() else []


def _runs(rows: list[Requirement], folder: Path) -> Iterator[_Run]:
    for row in rows:
        nodes = list(dict.fromkeys(map(_node, row.tests)))
        for index, mutant in enumerate(row.mutants):
            yield _Run(row, mutant, nodes, folder / f"{row.number}.{index}")


def _drive(waiting: Iterator[_Run], jobs: int) -> list[_Run]:
    """Run all, ``jobs`` at a time."""
    done: list[_Run] = []
    running: list[_Run] = []
    more = True
    while more or running:
        while more and len(running) < jobs:
            run = next(waiting, None)
            if run is None:
                more = False
                break
            run.began = time.monotonic()
            run.start()
            running.append(run)
        for run in [each for each in running if each.ended()]:
            running.remove(run)
            done.append(run)
            if sys.stderr.isatty():
                print(f"{len(done)} runs", end="\r", file=sys.stderr, flush=True)
        time.sleep(0.01)
    return done


def _faults(rows: list[Requirement], done: list[_Run]) -> Iterator[str]:
    """What the runs do not prove, in words."""
    for run in done:
        if not run.ran():
            why = "do not end" if run.timed_out else "cannot be run"
            yield f"{run.row.number}: the tests {why} without {run.mutant[0].old!r}"
        elif not run.failed():
            yield f"{run.row.number}: no test fails without {run.mutant[0].old!r}"
    for row in rows:
        failed = set().union(*(run.failed() for run in done if run.row is row))
        for node in dict.fromkeys(map(_node, row.tests)):
            if row.mutants and node not in failed:
                yield f"{row.number}: {node} passes with each mutant of its row"


def _unchanged(rows: list[Requirement], folder: Path, jobs: int) -> list[str]:
    """What pytest says of the tests without any change, where one of them fails."""
    nodes = sorted({_node(test) for row in rows for test in row.tests if row.mutants})
    size = max(1, -(-len(nodes) // jobs))
    runs = [
        _Run(rows[0], (), nodes[at : at + size], folder / f"unchanged.{at}")
        for at in range(0, len(nodes), size)
    ]
    done = _drive(iter(runs), jobs)
    return [Path(f"{run.report}.txt").read_text() for run in done if run.failed() or not run.ran()]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.mutants", description=__doc__)
    parser.add_argument("numbers", nargs="*", metavar="NUMBER", help="how the numbers of the rows begin")
    parser.add_argument(
        "--jobs", type=int, default=2 * (os.cpu_count() or 1), help="how many run at a time: some wait"
    )
    options = parser.parse_args(arguments)
    every = [row for rows in PARTS.values() for row in rows]
    rows = [row for row in every if not options.numbers or row.number.startswith(tuple(options.numbers))]
    if not rows:
        parser.error(f"no row begins with {' or '.join(options.numbers)}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if failed := _unchanged(rows, folder, options.jobs):
            print(*failed, "tests fail without any change", sep="\n")
            return 1
        done = _drive(_runs(rows, folder), options.jobs)
        faults = list(_faults(rows, done))
        killed = sum(run.ran() and bool(run.failed()) for run in done)
    print(*faults, sep="\n", end="\n" if faults else "")
    with_mutant = sum(bool(row.mutants) for row in rows)
    print(f"{len(rows)} rows, {with_mutant} with a mutant; {len(done)} mutants, {killed} killed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
