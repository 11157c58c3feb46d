"""Tables of reStructuredText, and where a test is found by its name."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = Path(__file__).resolve().parents[2]

_TEST = re.compile(r"^ *(?:async )?def test_(\w+)\(", re.MULTILINE)
_BOOK = "rule_ends_what_it_says_by_its_name_when_it_is_broken"


def title(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n"


def between(text: str, marks: tuple[str, str], made: str) -> str:
    """Return a text with something new between its two marks."""
    begin, end = (re.escape(mark) for mark in marks)
    changed, count = re.subn(f"{begin}.*?{end}", lambda _: marks[0] + made + marks[1], text, flags=re.DOTALL)
    assert count == 1, marks
    return changed


def table(head: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int]) -> str:
    """A list-table; cells are on one line each."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {' '.join(map(str, widths))}", ""]
    for row in (head, *rows):
        assert len(row) == len(head), row
        for index, cell in enumerate(row):
            mark = "   * - " if index == 0 else "     - "
            lines.append((mark + cell).rstrip())
    return "\n".join(lines) + "\n"


@cache
def _tests() -> dict[str, list[str]]:
    """Every test function, by its name without ``test_``: the files that have one."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        file = str(path.relative_to(ROOT / "tests"))
        for name in _TEST.findall(path.read_text()):
            found.setdefault(name, []).append(file)
    return found


def find_test(reference: str) -> tuple[str, str]:
    """The file below tests/ and the name of the test that a table refers to.

    Args:
        reference: a name without ``test_``; ``file:name`` where several files have it; or ``[rule]`` for the
            case of a rule in the book.

    Raises:
        LookupError: there is no such test, or more than one.
    """
    if reference.startswith("["):
        return "amqp10/engine/test_rules.py", f"test_{_BOOK}{reference}"
    file, _, name = reference.rpartition(":")
    files = [each for each in _tests().get(name, []) if not file or each == f"{file}.py"]
    if len(files) != 1:
        where = f"{', '.join(files)}: say which, as in file:name" if files else "no file"
        raise LookupError(f"{reference!r} is a test of {where}")
    return files[0], f"test_{name}"
