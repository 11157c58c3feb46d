"""Change functions of modules that are imported already, so that a mutant costs no import.

A function gets the code that its changed source compiles to. That does for a change inside functions; for a change of what
runs while a module is imported (a constant, a table, the fields of a class) the module has to be imported again.
"""

from __future__ import annotations

import inspect
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

from tests.living_objects import living_objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_NESTED = object()


def _nested(code: CodeType) -> list[CodeType]:
    return [const for const in code.co_consts if isinstance(const, CodeType)]


def _own(code: CodeType) -> tuple[object, ...]:
    """All of a code object that matters but its lines and the code nested in it."""
    consts = tuple(_NESTED if isinstance(const, CodeType) else repr(const) for const in code.co_consts)
    return (
        code.co_name,
        code.co_code,
        consts,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_flags,
        code.co_argcount,
        code.co_kwonlyargcount,
        code.co_posonlyargcount,
        code.co_exceptiontable,
    )


def _same(old: CodeType, new: CodeType) -> bool:
    olds, news = _nested(old), _nested(new)
    return _own(old) == _own(new) and len(olds) == len(news) and all(map(_same, olds, news))


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType] | None]:
    if old.co_flags & inspect.CO_OPTIMIZED:
        if not _same(old, new):
            yield None if old.co_name.startswith("<") else (old, new)
        return
    olds, news = _nested(old), _nested(new)
    if _own(old) != _own(new) or len(olds) != len(news):
        yield None
        return
    for each, other in zip(olds, news, strict=True):
        yield from _pairs(each, other)


def changed_code(changed: Mapping[Path, str]) -> list[tuple[CodeType, CodeType]] | None:
    """The code of the functions that changed, before and after; None if something outside of functions changed."""
    found: list[tuple[CodeType, CodeType]] = []
    for path, text in changed.items():
        for pair in _pairs(
            compile(path.read_text(), str(path), "exec", dont_inherit=True),
            compile(text, str(path), "exec", dont_inherit=True),
        ):
            if pair is None:
                return None
            found.append(pair)
    return found


class Functions:
    """All functions that this process has, by where they are written."""

    def __init__(self, package: Path) -> None:
        self._by_place: dict[tuple[str, str, int], list[FunctionType]] = {}
        for each in living_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(str(package)):
                self._by_place.setdefault(_place(each.__code__), []).append(each)

    def swap(self, pairs: list[tuple[CodeType, CodeType]]) -> bool:
        """Give functions their changed code. False if one of them is not to be had: nothing is certain then."""
        for old, new in pairs:
            found = self._by_place.get(_place(old), [])
            if not found or any(function.__code__.co_freevars != new.co_freevars for function in found):
                return False
            for function in found:
                function.__code__ = new
        return True


def _place(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno
