"""Try many mutants, each in a process of its own, and see which tests fail.

Almost all are tried in forks of one process that has collected the tests: there a mutant is new code for functions that are
imported already, and costs nothing but its tests. Where that cannot be (a table changes, or the fields of a class), and where no
test noticed, the product is imported from the changed text in a process that has not imported it. The files are never touched.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import os
import signal
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import hypothesis  # noqa: F401  imported before the processes are forked, once for all
import pytest
import trio  # noqa: F401

from .code_swap import Functions, changed_code
from .rst import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import CodeType, ModuleType

PACKAGE: Final = ROOT / "trio_amqp10"

_TIMEOUT: Final = 120.0
"""Seconds after which a run is ended: of a run that has not come to its end nothing is known."""

_LIMIT: Final = 10.0
"""Seconds after which a test fails: many mutants have a test wait for what does not come. More where others are at work too."""

_ARGUMENTS: Final = ("-q", "-p", "no:cacheprovider", "--assert=plain", "--capture=sys")
"""Of pytest. Descriptors are not captured: the file that it captures into would be one for all forks."""


@dataclass(eq=False)
class Trial:
    """One mutant, and the tests that are tried on it.

    Attributes:
        changed: files of the package and their changed texts; none to try the tests as they are.
        nodes: the tests, in the order in which they are run.
        until: whether enough tests have failed, so that the others need not run; None to run all.
        failed: the tests that failed; known once ``ran``.
        ran: whether it came to its end.
        timed_out: whether it was ended because it took too long.
        said: what pytest said.
    """

    changed: dict[Path, str]
    nodes: list[str]
    until: Callable[[set[str]], bool] | None = None
    failed: set[str] = field(default_factory=set[str])
    ran: bool = False
    timed_out: bool = False
    said: str = ""

    @property
    def killed(self) -> bool:
        return bool(self.failed)


class _Process:
    """A fork that tries one mutant."""

    def __init__(self, trial: Trial, report: Path, work: Callable[[Trial, Path], None]) -> None:
        self.trial = trial
        self._report = report
        self._began = time.monotonic()
        self._pid = os.fork()
        if self._pid:
            return
        code = 1
        try:
            os.setpgid(0, 0)
            output = os.open(f"{report}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            work(trial, report)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def ended(self) -> bool:
        if os.waitpid(self._pid, os.WNOHANG) == (0, 0):
            if not self.trial.timed_out and time.monotonic() - self._began > _TIMEOUT:
                self.trial.timed_out = True
                os.killpg(self._pid, signal.SIGKILL)
            return False
        self.trial.said = Path(f"{self._report}.txt").read_text(errors="replace")
        if self._report.exists():
            self.trial.failed = set(json.loads(self._report.read_text()))
            self.trial.ran = True
        return True


def _drive(
    trials: Iterable[Trial],
    folder: Path,
    jobs: int,
    work: Callable[[Trial, Path], None],
    done: Callable[[Trial], None],
) -> None:
    """Run all, ``jobs`` at a time."""
    waiting = enumerate(trials)
    running: list[_Process] = []
    more = True
    while more or running:
        while more and len(running) < jobs:
            number, trial = next(waiting, (0, None))
            if trial is None:
                more = False
                break
            running.append(_Process(trial, folder / f"{os.getpid()}.{number}", work))
        for each in [each for each in running if each.ended()]:
            running.remove(each)
            done(each.trial)
        time.sleep(0.005)


def _node_of(item: pytest.Item) -> str:
    """The test function of an item: without what stands in brackets, unless it is a rule of the book."""
    return item.nodeid.partition("[")[0]


class _Failures:
    """A plugin of pytest that notes the tests that fail."""

    def __init__(self) -> None:
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    def among(self, nodes: Iterable[str]) -> list[str]:
        return [node for node in nodes if any(_belongs(each, node) for each in self.failed)]


def _belongs(nodeid: str, node: str) -> bool:
    return nodeid == node or nodeid.startswith(f"{node}[")


# -- functions that are imported --------------------------------------------------------------


class _Forks:
    """A plugin of pytest that forks instead of running tests: each fork has them collected."""

    def __init__(self, trials: list[Trial], folder: Path, jobs: int) -> None:
        self._trials = trials
        self._folder = folder
        self._jobs = jobs
        self._items: dict[str, list[pytest.Item]] = {}
        self.results: list[Any] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            return False
        for item in session.items:
            self._items.setdefault(item.nodeid, []).append(item)
            node = _node_of(item)
            if node != item.nodeid:
                self._items.setdefault(node, []).append(item)
        session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # one for all forks
        self._session = session
        self._functions = Functions(PACKAGE)
        _drive(self._trials, self._folder, self._jobs, self._work, self._done)
        return True

    def _done(self, trial: Trial) -> None:
        at = self._trials.index(trial)
        self.results.append((at, sorted(trial.failed), trial.ran, trial.timed_out, trial.said))
        _show(len(self.results), len(self._trials))

    def _work(self, trial: Trial, report: Path) -> None:
        pairs = changed_code(trial.changed)
        if pairs is None or not self._functions.swap(pairs):
            return
        failures = _Failures()
        config = self._session.config
        config.pluginmanager.register(failures)
        items = [item for node in trial.nodes for item in self._items[node]]
        for item, following in zip(items, [*items[1:], None], strict=True):
            config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if trial.until is not None and failures.failed and trial.until(set(failures.among(trial.nodes))):
                break
        failed = failures.among(trial.nodes)
        terminal = config.pluginmanager.get_plugin("terminalreporter")
        if failed and terminal is not None and not trial.changed:
            terminal.summary_failures()
        report.write_text(json.dumps(failed))


def _try_in_functions(trials: list[Trial], folder: Path, jobs: int) -> None:
    """Try these in forks of one process that imports the product; this process does not."""
    results = folder / "functions.json"
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            plugin = _Forks(trials, folder, jobs)
            files = sorted({node.partition("::")[0] for trial in trials for node in trial.nodes})
            pytest.main([*_ARGUMENTS, f"--basetemp={folder / 'tmp'}", *files], plugins=[plugin])
            results.write_text(json.dumps(plugin.results))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.waitpid(pid, 0)
    for at, failed, ran, timed_out, said in json.loads(results.read_text()):
        trial = trials[at]
        trial.failed, trial.ran, trial.timed_out, trial.said = set(failed), ran, timed_out, said


# -- a product that is imported anew ------------------------------------------------------------


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


def _import_and_run(trial: Trial, report: Path) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("trio_amqp10", "tests")]:
        del sys.modules[name]  # the pages have imported parts of the product; pytest imports the tests anew
    sys.meta_path.insert(0, _ChangedFinder(trial.changed))
    failures = _Failures()
    code = pytest.main([*_ARGUMENTS, f"--basetemp={report}.tmp", *trial.nodes], plugins=[failures])
    if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        report.write_text(json.dumps(failures.among(trial.nodes)))


def _is_swappable(trial: Trial) -> bool:
    return changed_code(trial.changed) is not None


def _show(done: int, total: int) -> None:
    if sys.__stderr__ is not None and sys.__stderr__.isatty():
        print(f"{done} of {total}", end="\r", file=sys.__stderr__, flush=True)


def try_all(trials: list[Trial], folder: Path, jobs: int, *, certain: bool = True) -> None:
    """Try all, and note what became of each in it.

    Args:
        trials: what is tried.
        folder: for reports; it is empty.
        jobs: how many are tried at a time.
        certain: whether to try again, with the product imported anew, where no test failed.
    """
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    os.environ["AMQP10_TEST_LIMIT"] = str(_LIMIT * max(1.0, busy))
    swapped = [trial for trial in trials if _is_swappable(trial)]
    if swapped:
        _try_in_functions(swapped, folder, jobs)
    kept = {
        id(trial) for trial in swapped if trial.ran and (trial.killed or not trial.changed or not certain)
    }
    others = [trial for trial in trials if id(trial) not in kept]
    done: list[Trial] = []

    def note(trial: Trial) -> None:
        done.append(trial)
        _show(len(done), len(others))

    _drive(others, folder, jobs, _import_and_run, note)
