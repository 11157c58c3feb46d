"""``python -m tests.prose [FOLDER ...]``: find prose that breaks a rule that a program can see.

It reads the docstrings and comments of modules, and the text of pages. CONTRIBUTING.md has the rules, and the reasons. Prints each
place, and exits with 1 if there are any. Without a folder it reads ``trio_amqp10``, ``examples``, and ``docs`` without the decisions.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from typing import TYPE_CHECKING, Final

from .places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIRST_LINE: Final = 80
"""Characters of the first line of a docstring, without indentation."""

_OPENING: Final = re.compile(
    r"(?:What|Those|Who|Whom|Whose|Whoever|Whatever|It|They|These|That|Where|Which|Of|As|So|Not|Such|There|"
    r"One (?:that|who|of|which|whose|by|for))\b"
)
_WORDS: Final = {
    "a program does not speak": re.compile(r"\b(?:tells?|told|says?|said|hears?|heard|spoken)\b"),
    "name the person or the program": re.compile(r"\b(?:nobody|somebody|whoever|whosoever)\b", re.IGNORECASE),
    "use a word of today": re.compile(r"\b(?:anew|thereof|therefrom|lest|hence|no sooner|for want of)\b"),
    "must, will or should": re.compile(r"\b(?:is|are|was|were) yet to be\b"),
}
_DECISIONS: Final = ROOT / "docs" / "decisions"
_QUOTED: Final = re.compile(r"``.*?``|\"[^\"]*\"")
_BLOCK: Final = re.compile(
    r"\s*(?:\.\. (?!list-table|glossary|note|warning|tip)|.*::$(?<!list-table::)(?<!glossary::))"
)
"""The line before an indented block that is no prose: a directive such as code-block, a comment, or text with two colons."""
_NOT_PROSE: Final = ("#!", "# ruff", "# type", "# noqa", "# pyright", "# mypy")


def faults_in(source: str) -> Iterator[tuple[int, str]]:
    """Give the line and the broken rule of each place in the text of a module."""
    for line, text in _docstrings(ast.parse(source)):
        first = text.strip().partition("\n")[0]
        if len(first) > FIRST_LINE:
            yield line, f"the first line has {len(first)} characters, not {FIRST_LINE}"
        if _OPENING.match(first):
            yield line, f"begins without its subject: {first[:30]!r}"
        yield from _words_in(line, text)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith(_NOT_PROSE):
            yield from _words_in(token.start[0], token.string)


def faults_in_page(text: str) -> Iterator[tuple[int, str]]:
    """Give the line and the broken rule of each place in a page in reStructuredText."""
    block: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        indent = len(line) - len(line.lstrip())
        if block is not None and (not line.strip() or indent > block):
            continue
        block = indent if _BLOCK.match(line) else None
        if block is None or not line.lstrip().startswith(".. "):
            yield from _words_in(number, _QUOTED.sub("", line))


def _docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Give each text that stands alone in a body: of modules, classes and functions, and after attributes."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for one in body if isinstance(body, list) else ():
            if (
                isinstance(one, ast.Expr)
                and isinstance(one.value, ast.Constant)
                and isinstance(one.value.value, str)
            ):
                yield one.lineno, one.value.value


def _words_in(line: int, text: str) -> Iterator[tuple[int, str]]:
    for rule, pattern in _WORDS.items():
        for found in pattern.finditer(text):
            yield line + text.count("\n", 0, found.start()), f"{rule}: {found[0]!r}"


def _faults_of(path: Path) -> Iterator[tuple[int, str]]:
    return (faults_in_page if path.suffix == ".rst" else faults_in)(path.read_text())


def main(folders: list[str]) -> int:
    """Print the faults of all modules and pages below the folders, and return the exit code."""
    files: list[Path] = sorted(
        path
        for folder in folders
        for ending in ("py", "rst")
        for path in (ROOT / folder).rglob(f"*.{ending}")
        if _DECISIONS not in path.parents
    )
    faults = [f"{path.relative_to(ROOT)}:{line}: {rule}" for path in files for line, rule in _faults_of(path)]
    print(*faults, f"{len(faults)} places in {len(files)} files", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["trio_amqp10", "examples", "docs"]))
