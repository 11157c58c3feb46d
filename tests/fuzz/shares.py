"""How many executions each target gets, and what all runs so far have given it.

An attempt against a whole container or program takes a thousand times as long as one against a codec. So of a given number of
executions these targets have one in ``WHOLE_ONE_OF`` together; the others have the rest. Among its kind, a target has its ``share``.

A file of results accumulates: each run adds what it did, by target and by commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.results import commit, earlier, write

from .targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

WHOLE_ONE_OF: Final = 200
"""One execution of so many plays a whole script."""

_COUNTS: Final = ("attempts", "failures", "measured", "seconds")


def executions_of(names: Sequence[str], total: int) -> dict[str, int]:
    """Executions of each target in a run of ``total``, at least one each."""
    found: dict[str, int] = {}
    for whole in (False, True):
        kind = [name for name in names if TARGETS[name].whole is whole]
        part = total if len(kind) == len(names) else total // WHOLE_ONE_OF
        if not whole and len(kind) != len(names):
            part = total - total // WHOLE_ONE_OF
        shares = sum(TARGETS[name].share for name in kind)
        found |= {name: max(1, round(part * TARGETS[name].share / shares)) for name in kind}
    return found


def executions_in(file: Path) -> int:
    """Executions that a file of results tells of, of all targets together."""
    return sum(row["attempts"] for row in earlier(file, "targets"))


def accumulate(file: Path | None, seed: int, results: Iterable[dict[str, Any]]) -> None:
    """Add what a run did to what the file says.

    Args:
        file: of results; None for none.
        seed: of the run.
        results: one for each target: its name, and its counts.
    """
    if file is None:
        return
    rows = {row["target"]: row for row in earlier(file, "targets")}
    at = commit()
    for result in results:
        row = rows.setdefault(result["target"], {"target": result["target"], "commits": {}})
        for count in _COUNTS:
            row[count] = round(row.get(count, 0) + result[count], 1)
        row["commits"][at] = row["commits"].get(at, 0) + result["attempts"]
    ordered = [rows[name] for name in [*TARGETS, *(rows.keys() - TARGETS.keys())] if name in rows]
    write(file, "fuzz", {"seed": seed, "targets": ordered})
