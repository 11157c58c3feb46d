"""``python -m tests.conformance.reading [PAGE|NUMBER...]``: each statement with the source of its tests, to be read side by side."""

from __future__ import annotations

import ast
import sys
from functools import cache

from . import amqp_10_3, amqp_fast, draft_2010
from .conformance import PARTS
from .rst import ROOT, find_test


@cache
def _source(file: str) -> tuple[list[str], dict[str, ast.AST]]:
    text = (ROOT / "tests" / file).read_text()
    return text.splitlines(), {
        node.name: node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def _print(number: str, said: str, tests: list[tuple[str, str]], rows: int) -> None:
    print(f"## {number}: {said}")
    for file, name in tests:
        lines, functions = _source(file)
        node = functions[name.partition("[")[0]]
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        assert node.end_lineno is not None
        print(f"   {file}::{name}")
        for line in lines[node.lineno : min(node.end_lineno, node.lineno + rows)]:
            print(f"      {line}")


def main(wanted: list[str]) -> None:
    """Print those whose page or number begins with one of ``wanted``; all if there is none."""
    found: list[tuple[str, str, list[tuple[str, str]]]] = [
        (f"10.3 {lines}", said, [find_test(test)]) for lines, said, test in amqp_10_3.STATEMENTS
    ]
    found += [
        (f"fast {section} ({lines})", said, [amqp_fast.test_of(test)])
        for section, lines, said, test in amqp_fast.STATEMENTS
    ]
    found += [
        (f"draft {section} ({lines})", said, [draft_2010.test_of(test)])
        for section, lines, said, test in draft_2010.STATEMENTS
    ]
    found += [
        (row.number, f"{row.level}: {row.text}", [find_test(test) for test in row.tests])
        for rows in PARTS.values()
        for row in rows
    ]
    for number, said, tests in found:
        if not wanted or number.startswith(tuple(wanted)):
            _print(number, said, tests, 40)


if __name__ == "__main__":
    main(sys.argv[1:])
