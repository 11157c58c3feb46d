"""What ``trio_amqp10.testing`` exports: documented, typed, and honest about cancellation, as the package itself is."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from trio_amqp10 import testing

OBJECTS = {name: getattr(testing, name) for name in testing.__all__}
CALLABLES: dict[str, Any] = {name: item for name, item in OBJECTS.items() if inspect.isfunction(item)} | {
    f"{name}.{method}": item
    for name, cls in OBJECTS.items()
    if inspect.isclass(cls) and cls.__module__.startswith("trio_amqp10.testing")
    for base in reversed(cls.__mro__)
    if base.__module__.startswith("trio_amqp10.testing")
    for method, item in vars(base).items()
    if not method.startswith("_") and inspect.isfunction(item)
}


@pytest.mark.parametrize("name", OBJECTS)
def test_public_name_has_a_docstring(name: str) -> None:
    assert inspect.getdoc(OBJECTS[name])


@pytest.mark.parametrize("name", CALLABLES)
def test_public_callable_is_documented_and_typed(name: str) -> None:
    assert inspect.getdoc(CALLABLES[name])
    signature = inspect.signature(inspect.unwrap(CALLABLES[name]))
    assert signature.return_annotation is not inspect.Signature.empty
    untyped = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.annotation is inspect.Parameter.empty and parameter.name not in ("self", "cls")
    ]
    assert not untyped


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, item in CALLABLES.items()
        if inspect.iscoroutinefunction(item) or inspect.isasyncgenfunction(inspect.unwrap(item))
    ],
)
def test_async_callable_says_what_holds_when_it_is_cancelled(name: str) -> None:
    paragraphs = (inspect.getdoc(CALLABLES[name]) or "").split("\n\n")
    assert "ancelled" in paragraphs[-1]
