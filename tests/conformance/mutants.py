"""Prove the conformance pages: remove what each row says, and see its tests fail.

``python -m tests.conformance.mutants [NUMBER...]`` takes every row whose number begins with one of NUMBER (all by
default). Each mutant of a row changes the product's source, while the row's tests run; the files themselves are never
touched (``runner``). A mutant that no test kills, and a test that no mutant of its row makes fail, are
printed, and the command ends with 1.

``--several`` makes plain mutants besides, of the lines that the row's own mutants touch (``plain_mutants``). What the row's
tests do not notice is printed too, unless ``reasons.toml`` says why not: it changes nothing, or what another row says.
``--find FILE`` looks for a test that notices it, among those of neighbouring rows and those of the same files, and writes what it
found to FILE, as JSON.

``--changed`` takes rows of which something has changed since the run whose figures are in ``docs/results/conformance.json``: the row, a
file that its mutants change, a file of its tests. Beside these it takes a tenth of the others, by turns from commit to commit. ``--results FILE``
writes the figures there.

Without any change the tests must pass: that is checked first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.results import FOLDER, add_option, write

from .figures import figures_of
from .pages import ROWS
from .rst import ROOT, find_test
from .runner import PACKAGE, Trial, try_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .plain_mutants import PlainMutant
    from .requirement import Mutant, Requirement

_REASONS: Final = Path(__file__).with_name("reasons.toml")
_TURNS: Final = 10
"""In how many parts the rows are tried of which nothing has changed."""


@cache
def _sources() -> dict[Path, str]:
    return {path: path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}


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


def _node(reference: str) -> str:
    file, name = find_test(reference)
    return f"tests/{file}::{name}"


def _nodes(row: Requirement) -> list[str]:
    return list(dict.fromkeys(map(_node, row.tests)))


@dataclass
class _Tried:
    """A mutant, the rows that it stands for, and what became of it."""

    rows: list[Requirement]
    mutant: Mutant | PlainMutant
    trial: Trial

    def survives(self, row: Requirement) -> bool:
        return self.trial.failed.isdisjoint(_nodes(row))


def _union(rows: Iterable[Requirement]) -> list[str]:
    return list(dict.fromkeys(node for row in rows for node in _nodes(row)))


def _own(rows: list[Requirement]) -> list[_Tried]:
    """The mutants of the rows: one that stands for several rows is tried once, with the tests of all."""
    by_mutant: dict[Mutant, list[Requirement]] = {}
    for row in rows:
        for mutant in row.mutants:
            by_mutant.setdefault(mutant, []).append(row)
    return [
        _Tried(each, mutant, Trial(changed_sources(mutant), _union(each)))
        for mutant, each in by_mutant.items()
    ]


def _enough(rows: list[Requirement], unproven: set[str], failed: set[str]) -> bool:
    """Whether a test of each row has failed, and each that no mutant of the rows' own makes fail."""
    return unproven <= failed and all(not failed.isdisjoint(_nodes(row)) for row in rows)


def _plain(rows: list[Requirement], unproven: set[str]) -> list[_Tried]:
    """Plain mutants of the lines that the rows' own mutants touch."""
    from .plain_mutants import lines_of, plain_mutants

    rows_of: dict[Path, dict[int, list[Requirement]]] = {}
    for row in rows:
        for mutant in row.mutants:
            for path, lines in lines_of(mutant, _sources()).items():
                for line in lines:
                    known = rows_of.setdefault(path, {}).setdefault(line, [])
                    if row not in known:
                        known.append(row)
    tried: list[_Tried] = []
    for path, lines_and_rows in rows_of.items():
        for mutant in plain_mutants(path, set(lines_and_rows)):
            concerned = lines_and_rows[mutant.line]
            nodes = _union(concerned)
            first = [node for node in nodes if node in unproven]
            nodes = [*first, *(node for node in nodes if node not in unproven)]
            enough = partial(_enough, concerned, set(first))
            tried.append(_Tried(concerned, mutant, Trial({path: mutant.text()}, nodes, enough)))
    return tried


def _reasons() -> dict[tuple[str, str, str], dict[str, str]]:
    """Of each plain mutant that may survive the tests of a row: why, by the row's number, or by * for all rows."""
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for each in tomllib.loads(_REASONS.read_text()).get("survivor", []):
        for number in each.get("rows", ["*"]):
            found.setdefault((each["module"], each["old"], each["new"]), {})[number] = each["reason"]
    return found


def _faults(rows: list[Requirement], own: list[_Tried], plain: list[_Tried]) -> Iterator[str]:
    """What the runs do not prove, in words."""
    for each in own:
        mutant = each.trial.changed and each.mutant[0].old  # type: ignore[index]
        numbers = ", ".join(row.number for row in each.rows)
        if not each.trial.ran:
            why = "do not end" if each.trial.timed_out else "cannot be run"
            yield f"{numbers}: the tests {why} without {mutant!r}"
            continue
        for row in each.rows:
            if each.survives(row):
                yield f"{row.number}: no test fails without {mutant!r}"
    failed = {number: set(nodes) for number, nodes in _failed(rows, [*own, *plain]).items()}
    for row in rows:
        if row.mutants:
            for node in _nodes(row):
                if node not in failed[row.number]:
                    yield f"{row.number}: {node} passes with each mutant of its row"


def _failed(rows: list[Requirement], tried: list[_Tried]) -> dict[str, set[str]]:
    """By the number of each row: the tests that a mutant of the row makes fail."""
    found: dict[str, set[str]] = {row.number: set() for row in rows}
    for each in tried:
        for row in each.rows:
            found[row.number] |= each.trial.failed
    return found


def _survivors(plain: list[_Tried]) -> Iterator[tuple[PlainMutant, list[Requirement]]]:
    """Plain mutants that the tests of these rows do not notice, and no reason is given."""
    reasons = _reasons()
    for each in plain:
        assert not isinstance(each.mutant, tuple)
        if not each.trial.ran:
            continue  # the module cannot be imported, or a test waits for ever
        known = reasons.get((each.mutant.module, *each.mutant.lines()), {})
        rows = [
            row for row in each.rows if each.survives(row) and row.number not in known and "*" not in known
        ]
        if rows:
            yield each.mutant, rows


def _unchanged(rows: list[Requirement], jobs: int) -> list[Trial]:
    nodes = sorted({_node(test) for row in rows for test in row.tests if row.mutants})
    size = max(1, -(-len(nodes) // jobs))
    return [Trial({}, nodes[at : at + size]) for at in range(0, len(nodes), size)]


def _all_tests(paths: list[str]) -> list[str]:
    """Every test function in these files and folders."""
    import ast

    files = [
        file
        for path in paths
        for file in (sorted(Path(path).rglob("test_*.py")) if Path(path).is_dir() else [Path(path)])
    ]
    return [
        f"{file}::{node.name}"
        for file in files
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]


def _fingerprint(row: Requirement) -> str:
    """Of all that the figures of a row depend on, but for the modules beside."""
    digest = hashlib.sha256(repr(row).encode())
    for path in sorted(_files_of(row.number)):
        digest.update(_sources()[path].encode())
    for file in sorted({node.partition("::")[0] for node in _nodes(row)}):
        digest.update((ROOT / file).read_bytes())
    return digest.hexdigest()[:16]


def _turn() -> int:
    """Which tenth of the rows has its turn: another with each commit."""
    command = ["git", "rev-list", "--count", "HEAD"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return int(said or 0) % _TURNS


def _has_its_turn(row: Requirement, turn: int) -> bool:
    return hashlib.sha256(row.number.encode()).digest()[0] % _TURNS == turn


def _recorded() -> dict[str, str]:
    """By the number of a row: its fingerprint when it was proven last."""
    file = FOLDER / "conformance.json"
    return json.loads(file.read_text())["figures"]["rows"] if file.exists() else {}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("numbers", nargs="*", metavar="NUMBER", help="how the numbers of the rows begin")
    parser.add_argument("--several", action="store_true", help="plain mutants of the same lines besides")
    parser.add_argument("--find", type=Path, metavar="FILE", help="look for tests that notice survivors")
    parser.add_argument(
        "--changed", action="store_true", help="what has changed since the figures were written"
    )
    parser.add_argument(
        "--jobs", type=int, default=2 * (os.cpu_count() or 1), help="how many run at a time: some wait"
    )
    add_option(parser)
    return parser


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    every = [row for rows in ROWS.values() for row in rows]
    rows = [row for row in every if not options.numbers or row.number.startswith(tuple(options.numbers))]
    if options.results is not None and (options.numbers or options.changed):
        parser.error("figures are those of all rows: --results goes with neither NUMBER nor --changed")
    if not rows:
        parser.error(f"no row begins with {' or '.join(options.numbers)}")
    if options.changed:
        recorded, turn = _recorded(), _turn()
        rows = [
            row for row in rows if recorded.get(row.number) != _fingerprint(row) or _has_its_turn(row, turn)
        ]
    own = _own(rows)
    with tempfile.TemporaryDirectory() as name:
        unchanged = _unchanged(rows, options.jobs)
        try_all([*unchanged, *(each.trial for each in own)], _folder(name, "own"), options.jobs)
        if failed := [each for each in unchanged if each.failed or not each.ran]:
            print(*(each.said for each in failed), "tests fail without any change", sep="\n")
            return 1
        plain: list[_Tried] = []
        if options.several:
            proven = _failed(rows, own)
            unproven = {node for row in rows for node in _nodes(row) if node not in proven[row.number]}
            plain = _plain(rows, unproven)
            try_all([each.trial for each in plain], _folder(name, "plain"), options.jobs, certain=False)
        survivors = list(_survivors(plain))
        for mutant, survived in survivors:
            print(f"{', '.join(row.number for row in survived)}: no test fails: {mutant}")
        if survivors and options.find:
            _find(survivors, every, options.find, _folder(name, "find"), options.jobs)
    faults = list(_faults(rows, own, plain))
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{len(rows)} rows, {figures_of(rows).with_mutant} with a mutant; ", end="")
    print(f"{len(own)} mutants, {sum(each.trial.killed for each in own)} killed")
    if plain:
        killed = sum(each.trial.killed or not each.trial.ran for each in plain)
        print(f"{len(plain)} plain mutants, {killed} killed, {len(survivors)} survive the tests of a row")
    write(options.results, "conformance", _figures(rows, own, plain, survivors, faults))
    return 1 if faults or survivors else 0


def _figures(
    rows: list[Requirement],
    own: list[_Tried],
    plain: list[_Tried],
    survivors: list[tuple[PlainMutant, list[Requirement]]],
    faults: list[str],
) -> dict[str, Any]:
    """What a run counted, by protocol, and the fingerprints of the rows that it proved."""
    tried = {row.number for row in rows}
    faulty = {line.partition(":")[0] for line in faults}
    pages: list[dict[str, Any]] = []
    for name, of_page in ROWS.items():
        numbers = {row.number for row in of_page} & tried
        if not numbers:
            continue
        ours = [each for each in own if numbers & {row.number for row in each.rows}]
        several = [each for each in plain if numbers & {row.number for row in each.rows}]
        pages.append(
            {
                "page": name,
                "statements": len(numbers),
                "with_mutant": sum(bool(row.mutants) for row in of_page if row.number in numbers),
                "mutants": len(ours),
                "killed": sum(each.trial.killed for each in ours),
                "plain": len(several),
                "plain_left": sum(any(row.number in numbers for row in left) for _, left in survivors),
            }
        )
    proven = {row.number: _fingerprint(row) for row in rows if row.number not in faulty}
    return {"pages": pages, "rows": dict(sorted(proven.items()))}


def _folder(parent: str, name: str) -> Path:
    folder = Path(parent) / name
    folder.mkdir()
    return folder


def _find(
    survivors: list[tuple[PlainMutant, list[Requirement]]],
    every: list[Requirement],
    found: Path,
    folder: Path,
    jobs: int,
) -> None:
    """Write down which test notices each of these, for each row the first in the order of ``_candidates``."""
    trials = [
        (mutant, row, Trial({mutant.path: mutant.text()}, _candidates(mutant, row, every), bool))
        for mutant, rows in survivors
        for row in rows
    ]
    try_all([trial for _, _, trial in trials], folder, jobs, certain=False)
    lines = [
        {
            "row": row.number,
            "module": mutant.module,
            "line": mutant.line,
            "old": mutant.lines()[0],
            "new": mutant.lines()[1],
            "test": next(iter(trial.failed), None),
        }
        for mutant, row, trial in trials
    ]
    found.write_text(json.dumps(lines, indent=1))


@cache
def _files_of(number: str) -> frozenset[Path]:
    """The files that the mutants of a row change."""
    [row] = [row for rows in ROWS.values() for row in rows if row.number == number]
    return frozenset(path for mutant in row.mutants for path in changed_sources(mutant))


def _candidates(mutant: PlainMutant, row: Requirement, every: list[Requirement]) -> list[str]:
    """Tests of rows of the same section, of rows about the same file, and then all in the files of the row's tests."""
    section = row.number.rpartition("-")[0]
    near = [each for each in every if each.number.rpartition("-")[0] == section]
    same = [each for each in every if each.mutants and mutant.path in _files_of(each.number)]
    files = list(dict.fromkeys(node.partition("::")[0] for node in _nodes(row)))
    nodes = [*_union(near), *_union(same), *_all_tests(files)]
    return [node for node in dict.fromkeys(nodes) if node not in _nodes(row)]


if __name__ == "__main__":
    sys.exit(main())
