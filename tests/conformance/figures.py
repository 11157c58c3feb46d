"""Figures of the conformance pages: the numbers of statements and of mutants.

They are counted, never written by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .requirement import RULE, Requirement

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .requirement import Mutant


@dataclass(frozen=True, slots=True)
class Figures:
    """The counts of a page.

    Attributes:
        statements: the rows.
        with_mutant: the rows that have a mutant.
        mutants: a mutant of several rows counts once.
    """

    statements: int
    with_mutant: int
    mutants: int


def figures_of(rows: Iterable[Requirement]) -> Figures:
    """Count the rows of a page, or of several."""
    rows = list(rows)
    return Figures(
        len(rows),
        sum(bool(row.mutants) for row in rows),
        len({mutant for row in rows for mutant in row.mutants}),
    )


def counted(rows: Iterable[Requirement]) -> str:
    """Return the figures as a paragraph."""
    figures = figures_of(rows)
    return (
        f"\n{figures.with_mutant} of these {figures.statements} statements have a mutant, a word that :doc:`conformance` explains. "
        f"There are {figures.mutants} mutants; one that stands for several statements counts once.\n"
    )


def numbered(
    page: str, statements: Sequence[tuple[str, str, str]], mutants: Mapping[str, tuple[Mutant, ...]]
) -> list[Requirement]:
    """Rows of statements, numbered in their section: ``fast:3.2.5-1``.

    Args:
        page: what their numbers begin with.
        statements: section, text, and the test, as ``find_test`` takes it.
        mutants: by the number without the page.
    """
    rows: list[Requirement] = []
    last: dict[str, int] = {}
    for section, said, test in statements:
        last[section] = last.get(section, 0) + 1
        number = f"{section}-{last[section]}"
        rows.append(Requirement(f"{page}:{number}", RULE, said, (test,), mutants.get(number, ())))
    return rows
