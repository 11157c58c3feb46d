"""What the sources look like: chains, import circles, files, lines, functions and mirrored tests, as figures.

``python -m tests.structure`` prints them for every part of the package, and how many calls in how many files one message and
one received chunk take (``bench.path``). ``test_structure`` holds the engine to its goals, and the package to its share of
modules ``A/b.py`` whose tests are in ``tests/A/test_b.py``.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import trio_amqp10
from bench import path as paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PACKAGE = Path(trio_amqp10.__file__).parent
TESTS = Path(__file__).parent
CHAIN = re.compile(r"\bsession\.connection\.|\.session\.context\b")
"""A part that reaches through its session for what belongs to the connection."""


class Function(NamedTuple):
    """A function and its length in lines, without its docstring and its comments."""

    lines: int
    file: str
    name: str


def sources(part: str = "") -> list[Path]:
    """The files of a part of the package; of the whole package by default."""
    root = PACKAGE / part
    return sorted(root.rglob("*.py")) if root.is_dir() else [root.with_suffix(".py")]


@cache
def tree_of(path: Path) -> ast.Module:
    """The file, parsed once for all that ask."""
    return ast.parse(path.read_text())


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Each statement at any depth, without going through the expressions in it."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.stmt):
            yield node
        todo += _bodies(node)


def _bodies(node: ast.AST) -> Iterator[ast.AST]:
    """What has the statements of a statement."""
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        yield from getattr(node, field, ())


def _does_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def acts(path: Path) -> bool:
    """Whether a function does something, or a class while it is made: it is more than types, protocols and constants."""
    held = (ast.Assign, ast.AnnAssign, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in statements(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            allowed = held if isinstance(node, ast.ClassDef) else ()
            if not all(_does_nothing(each) or isinstance(each, allowed) for each in node.body):
                return True
    return False


def mirrored(files: Iterable[Path]) -> dict[Path, bool]:
    """Each module that acts, and whether its tests are where a reader looks for them: ``A/b.py`` in ``tests/A/test_b.py``.

    Packages and generated modules are none of them.
    """
    return {
        path: (TESTS / path.relative_to(PACKAGE).with_name(f"test_{path.name}")).exists()
        for path in files
        if path.stem != "__init__" and not path.stem.endswith("_generated") and acts(path)
    }


@cache
def lines_of_code(path: Path) -> int:
    """Lines that are neither blank, nor a comment, nor inside a docstring."""
    text = path.read_text()
    documented = {
        line
        for node in statements(tree_of(path))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(text.splitlines(), 1)
    return sum(
        1 for number, line in lines if line.strip() and line.strip()[0] != "#" and number not in documented
    )


def functions(files: Iterable[Path]) -> list[Function]:
    """Every function, the longest first."""
    return sorted((each for path in files for each in _functions_in(path)), reverse=True)


@cache
def _functions_in(path: Path) -> list[Function]:
    found: list[Function] = []
    lines = path.read_text().splitlines()
    for node in statements(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            length = sum(
                not line.lstrip().startswith("#") for line in lines[first.lineno - 1 : node.end_lineno]
            )
            found.append(Function(length, str(path.relative_to(PACKAGE)), node.name))
    return found


def chains(files: Iterable[Path]) -> list[str]:
    """Where a part reaches through its session for the connection, or for what the connection handed down."""
    return [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if CHAIN.search(line)
    ]


def imports(files: Iterable[Path], *, typing: bool) -> dict[Path, set[Path]]:
    """Which of these files each of them imports; with ``typing``, also those that only the type checker reads."""
    names = {_name(path): path for path in files}
    return {path: _imported(path, names, typing=typing) - {path} for path in names.values()}


def _name(path: Path) -> str:
    parts = ("trio_amqp10", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(path: Path, names: dict[str, Path], *, typing: bool) -> set[Path]:
    found: set[str] = set()
    for module, inside in _import_statements(path, typing=typing):
        found |= inside & names.keys() or {module}
    return {names[name] for name in found & names.keys()}


@cache
def _import_statements(path: Path, *, typing: bool) -> list[tuple[str, set[str]]]:
    """Each module that is imported, with the names that are taken from it, which may be modules too."""
    here = ("trio_amqp10", *path.relative_to(PACKAGE).parts)[:-1]
    found: list[tuple[str, set[str]]] = []
    todo: list[ast.AST] = [tree_of(path)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test) and not typing:
            todo += node.orelse
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, set()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) + 1 - node.level] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            inside = {f"{module}.{alias.name}" for alias in node.names}
            found.append((module, inside))
        todo += _bodies(node)
    return found


def circles(graph: dict[Path, set[Path]]) -> list[list[str]]:
    """Files that import each other, over however many others; each circle in order of name, the largest first."""
    reach = {path: _reached(path, graph) for path in graph}
    found: list[list[str]] = []
    seen: set[Path] = set()
    for path in graph:
        if path not in seen and path in reach[path]:
            circle = {other for other in reach[path] if path in reach[other]}
            seen |= circle
            found.append(sorted(str(each.relative_to(PACKAGE)) for each in circle))
    return sorted(found, key=len, reverse=True)


def _reached(path: Path, graph: dict[Path, set[Path]]) -> set[Path]:
    reached: set[Path] = set()
    todo = list(graph[path])
    while todo:
        other = todo.pop()
        if other not in reached:
            reached.add(other)
            todo += graph[other]
    return reached


def main() -> None:
    """Print the figures."""
    parts = ["", *sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())]
    print(
        f"{'part':12}{'files':>6}{'lines':>8}{'< 100':>7}{'chains':>8}{'circles':>9}{'for types':>11}{'tests':>9}  longest function"
    )
    for part in parts:
        files = sources(part)
        short = sum(1 for path in files if len(path.read_text().splitlines()) < 100)
        own = [circles(imports(files, typing=typing)) for typing in (False, True)]
        runtime, typing = (len(found[0]) if found else 0 for found in own)
        tests = mirrored(files)
        share = f"{sum(tests.values())}/{len(tests)}"
        longest = functions(files)[0] if functions(files) else Function(0, "", "")
        print(
            f"{part or 'all':12}{len(files):6}{sum(map(lines_of_code, files)):8}{short:7}{len(chains(files)):8}"
            f"{runtime:9}{typing:11}{share:>9}  {longest.lines} {longest.file} {longest.name}"
        )
    print()
    tests = mirrored(sources())
    print(f"modules with a test file of their name: {sum(tests.values()) / len(tests):.1%}")
    print()
    paths.main([])
    for circle in circles(imports(sources("amqp10/engine"), typing=True)):
        print("circle of the engine:", *circle)


if __name__ == "__main__":
    main()
