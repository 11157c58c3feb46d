"""Several plain mutants of the lines that a row's own mutant touches.

The operators are those of mutmut where it has them (``tests.mutants``), and a few beside that it lacks: a branch that is
always or never taken, a part of a condition left out, a comparison turned round, a call, an assignment or a ``raise`` dropped,
and another field of the same kind in place of a field.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import libcst as cst
from libcst import matchers
from libcst.metadata import MetadataWrapper, WhitespaceInclusivePositionProvider
from mutmut.mutation import mutators

from .rst import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from .requirement import Change, Mutant


@dataclass(frozen=True, slots=True)
class PlainMutant:
    """One place of a file with another text.

    Attributes:
        path: the file.
        begin, end: where the text begins and ends in the file.
        new: what takes its place.
        line: the number of the line, from 1.
    """

    path: Path
    begin: int
    end: int
    new: str
    line: int

    @property
    def module(self) -> str:
        return str(self.path.relative_to(ROOT))

    def text(self) -> str:
        """The file as the mutant leaves it."""
        text = self.path.read_text()
        return text[: self.begin] + self.new + text[self.end :]

    def lines(self) -> tuple[str, str]:
        """The lines that change, before and after, without indentation."""
        text = self.path.read_text()
        first = text.rfind("\n", 0, self.begin) + 1
        last = text.find("\n", self.end)
        old = text[first:last]
        new = text[first : self.begin] + self.new + text[self.end : last]
        return tuple(" ".join(each.split()) for each in (old, new))  # type: ignore[return-value]

    def __str__(self) -> str:
        old, new = self.lines()
        return f"{self.module}:{self.line}\n    - {old}\n    + {new}"


_THEIRS: Final[tuple[tuple[type, Callable[[Any], Iterable[cst.CSTNode]]], ...]] = (
    (cst.BaseNumber, mutators.operator_number),
    (cst.Name, mutators.operator_name),
    (cst.UnaryOperation, mutators.operator_remove_unary_ops),
    (cst.CSTNode, mutators.operator_keywords),
    (cst.CSTNode, mutators.operator_swap_op),
    (cst.IfExp, mutators.operator_if_exp),
    (cst.Match, mutators.operator_match),
)
"""Those of mutmut that change what is done, and not only what is said of it."""

_FIELDS: Final = (
    ("first", "last"),
    ("incoming", "outgoing"),
    ("remote", "local"),
    ("sender", "receiver"),
    ("source", "target"),
    ("snd", "rcv"),
    ("sent", "received"),
    ("begin", "end"),
    ("min", "max"),
    ("head", "tail"),
    ("message_id", "correlation_id"),
    ("delivery_id", "delivery_count"),
    ("closed", "settled"),
    ("append", "appendleft"),
    ("pop", "popleft"),
)
"""Parts of names that stand for one another: the other field."""

_TURNED: Final[dict[type, type]] = {
    cst.LessThan: cst.GreaterThanEqual,
    cst.LessThanEqual: cst.GreaterThan,
    cst.GreaterThan: cst.LessThanEqual,
    cst.GreaterThanEqual: cst.LessThan,
}
_NOTHING: Final = cst.Pass()
_SKIPPED: Final = (cst.Annotation, cst.Assert, cst.Decorator, cst.Raise)
"""Nothing inside these is changed: what is raised is a text for people, and an assertion a word to the type checker."""

_Places = dict[cst.CSTNode, tuple[int, int, int]]


def _fields(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The other field, for an attribute or a name."""
    if isinstance(node, cst.Attribute):
        parts = node.attr.value.split("_")
        for pair in _FIELDS:
            for here, there in (pair, pair[::-1]):
                if here == node.attr.value or here in parts:
                    name = (
                        there
                        if here == node.attr.value
                        else "_".join(there if p == here else p for p in parts)
                    )
                    yield node.with_changes(attr=cst.Name(name))
    elif matchers.matches(node, matchers.Call(func=matchers.Name("min") | matchers.Name("max"))):
        call = cst.ensure_type(node, cst.Call)
        name = "max" if cst.ensure_type(call.func, cst.Name).value == "min" else "min"
        yield call.with_changes(func=cst.Name(name))


def _is_none(node: cst.CSTNode) -> bool:
    return matchers.matches(node, matchers.Name("None"))


def _ours(node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """What is replaced, and by what."""
    if isinstance(node, cst.If | cst.While):
        yield from ((node.test, cst.Name("False")),)
        if isinstance(node, cst.If):
            yield node.test, cst.Name("True")
    elif isinstance(node, cst.CompIf):
        yield node.test, cst.Name("True")
    elif isinstance(node, cst.BooleanOperation):
        yield node, node.left
        if not isinstance(node.left, cst.BooleanOperation):
            yield node, node.right
    elif isinstance(node, cst.ComparisonTarget) and type(node.operator) in _TURNED:
        yield node, node.with_changes(operator=_TURNED[type(node.operator)]())
    elif (isinstance(node, cst.Expr) and isinstance(node.value, cst.Call | cst.Await)) or isinstance(
        node, cst.AugAssign | cst.Raise | cst.Del
    ):
        yield node, _NOTHING
    elif isinstance(node, cst.Assign):
        if all(not isinstance(target.target, cst.Name | cst.Tuple) for target in node.targets):
            yield node, _NOTHING
    elif isinstance(node, cst.Return) and node.value is not None and not _is_none(node.value):
        yield node.value, cst.Name("None")
    for other in _fields(node):
        yield node, other


@dataclass(frozen=True)
class _Parsed:
    text: str
    module: cst.Module
    places: _Places


@cache
def _parsed(path: Path) -> _Parsed:
    text = path.read_text()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    places = {
        node: (
            starts[at.start.line - 1] + at.start.column,
            starts[at.end.line - 1] + at.end.column,
            at.start.line,
        )
        for node, at in wrapper.resolve(WhitespaceInclusivePositionProvider).items()
    }
    return _Parsed(text, wrapper.module, places)


def _nodes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    if isinstance(node, _SKIPPED):
        return
    for child in node.children:
        yield from _nodes(child)


@cache
def _all_of(path: Path) -> list[tuple[int, cst.CSTNode]]:
    """Each node of a file with the line where it begins, without the space before it."""
    parsed = _parsed(path)
    found = []
    for node in _nodes(parsed.module):
        place = parsed.places.get(node)
        if place is not None:
            begin, end, line = place
            space = parsed.text[begin:end]
            found.append((line + space[: len(space) - len(space.lstrip())].count("\n"), node))
    return found


def plain_mutants(path: Path, lines: set[int]) -> Iterator[PlainMutant]:
    """All plain mutants of what begins in these lines of a file, each text once, and none that does not compile."""
    parsed = _parsed(path)
    seen: set[tuple[int, int, str]] = set()
    for line, node in _all_of(path):
        if line not in lines:
            continue
        changes = [
            (node, new) for kind, operator in _THEIRS if isinstance(node, kind) for new in operator(node)
        ]
        for old, new in [*changes, *_ours(node)]:
            if old not in parsed.places:
                continue
            begin, end, _ = parsed.places[old]
            text = parsed.module.code_for_node(new)
            if parsed.text[begin:end] == text or (begin, end, text) in seen:
                continue
            seen.add((begin, end, text))
            mutant = PlainMutant(path, begin, end, text, line)
            try:
                compile(mutant.text(), str(path), "exec", dont_inherit=True)
            except SyntaxError:
                continue
            yield mutant


def touched_lines(change: Change, text: str) -> set[int]:
    """The lines of a file that a change touches: those that it replaces, and both neighbours of what it inserts."""
    begin = text.index(change.old)
    first = text.count("\n", 0, begin) + 1
    old, new = change.old.split("\n"), change.new.split("\n")
    lines: set[int] = set()
    for kind, low, high, _, _ in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "insert":
            lines.update(first + at for at in (low - 1, low) if 0 <= at < len(old))
        elif kind != "equal":
            lines.update(range(first + low, first + high))
    return lines


def lines_of(mutant: Mutant, sources: dict[Path, str]) -> dict[Path, set[int]]:
    """The lines that a mutant touches, by file."""
    found: dict[Path, set[int]] = {}
    for change in mutant:
        [path] = [path for path, text in sources.items() if change.old in text]
        found.setdefault(path, set()).update(touched_lines(change, sources[path]))
    return found
