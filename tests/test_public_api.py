"""What ``trio_amqp10`` exports: each name once, typed, documented, and honest about cancellation."""

from __future__ import annotations

import ast
import inspect
import types
import typing
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import trio_amqp10 as amqp

SOURCE = Path(amqp.__file__).read_text()


def public_names() -> list[str]:
    """In the order of the file, as often as they stand there."""
    names: list[str] = []
    for node in ast.parse(SOURCE).body:
        if isinstance(node, ast.ImportFrom):
            names += [alias.asname or alias.name for alias in node.names]
    return names


NAMES = public_names()
OBJECTS = {name: getattr(amqp, name) for name in NAMES}
CLASSES = {name: cls for name, cls in OBJECTS.items() if inspect.isclass(cls)}


def methods(cls: type) -> dict[str, Any]:
    """What a class of ours defines for its users."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("trio_amqp10"):
            found |= {name: item for name, item in vars(base).items() if not name.startswith("_")}
    return found


ASYNC = {
    f"{name}.{method}": item
    for name, cls in CLASSES.items()
    for method, item in methods(cls).items()
    if inspect.iscoroutinefunction(item)
} | {name: item for name, item in OBJECTS.items() if inspect.iscoroutinefunction(item)}


def test_public_name_is_exported_once() -> None:
    assert len(NAMES) == len(set(NAMES))
    assert all("import" not in name and not name.startswith("_") for name in NAMES)


def test_public_name_is_exported_for_type_checkers() -> None:
    for node in ast.parse(SOURCE).body:
        if isinstance(node, ast.ImportFrom):
            assert all(alias.asname == alias.name for alias in node.names), ast.unparse(node)


def test_init_has_no_logic() -> None:
    docstring, *statements = ast.parse(SOURCE).body
    assert isinstance(docstring, ast.Expr)
    assert all(isinstance(node, ast.ImportFrom) for node in statements)


def test_package_says_that_it_is_typed() -> None:
    assert files("trio_amqp10").joinpath("py.typed").is_file()


@pytest.mark.parametrize("name", NAMES)
def test_public_name_has_a_docstring(name: str) -> None:
    item = OBJECTS[name]
    if isinstance(item, types.UnionType) or typing.get_origin(item) is not None:
        return  # an alias of classes that have one each
    assert inspect.getdoc(item), name


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_public_method_has_a_docstring(name: str) -> None:
    for method, item in methods(CLASSES[name]).items():
        if inspect.isfunction(item) or isinstance(item, (property, classmethod, staticmethod)):
            assert inspect.getdoc(getattr(CLASSES[name], method)), f"{name}.{method}"


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_public_method_is_typed(name: str) -> None:
    for method, item in methods(CLASSES[name]).items():
        if inspect.isfunction(item):
            signature = inspect.signature(item)
            assert signature.return_annotation is not inspect.Signature.empty, f"{name}.{method}"
            untyped = [
                parameter.name
                for parameter in list(signature.parameters.values())[1:]
                if parameter.annotation is inspect.Parameter.empty
            ]
            assert not untyped, f"{name}.{method}: {untyped}"


@pytest.mark.parametrize("name", sorted(ASYNC))
def test_async_callable_says_what_holds_when_it_is_cancelled(name: str) -> None:
    docstring = inspect.getdoc(ASYNC[name]) or ""
    *_, last = [line for line in docstring.split("\n\n") if line.strip()] or [""]
    assert "ancelled" in last, f"{name} ends with: {last!r}"
