"""List the public names of the library, with the parameters of its functions.

``python -m tests.public_names`` writes them to ``tests/public_names.txt``, so that a change of what programs rely on
is seen in the diff; ``tests/test_public_names.py`` compares the two.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

LIST: Final = ROOT / "tests/public_names.txt"

MODULES: Final = (
    "trio_amqp10",
    "trio_amqp10.amqp091",
    "trio_amqp10.amqp_10_3",
    "trio_amqp10.amqp_fast",
    "trio_amqp10.blocking",
    "trio_amqp10.container",
    "trio_amqp10.kombu",
    "trio_amqp10.otel",
    "trio_amqp10.rabbitmq",
    "trio_amqp10.sasl",
    "trio_amqp10.spark",
    "trio_amqp10.testing",
    "trio_amqp10.typed",
)
"""The modules that the manual names."""

_STARS: Final = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def public_names() -> list[str]:
    """Return each public name once, sorted: of modules, their classes, and the parameters of functions."""
    found: set[str] = set()
    for name in MODULES:
        module = import_module(name)
        for key in module.__all__:
            found |= set(_names_of(f"{name}.{key}", getattr(module, key)))
    return sorted(found)


def _names_of(name: str, item: Any) -> Iterator[str]:
    if inspect.isclass(item):
        yield f"{name}{_parameters(item)}"
        for base in item.__mro__:
            if base.__module__.startswith("trio_amqp10"):
                for key in {*vars(base), *vars(base).get("__annotations__", {})}:
                    if not key.startswith("_"):
                        yield f"{name}.{key}{_parameters(getattr(item, key, None))}"
    else:
        yield f"{name}{_parameters(item)}"


def _parameters(item: Any) -> str:
    """Return the names of the parameters of a function or a class, keywords after ``*``, as in a call."""
    if not (inspect.isroutine(item) or inspect.isclass(item)):
        return ""
    try:
        parameters = inspect.signature(item).parameters.values()
    except (TypeError, ValueError):
        return "()"
    shown: list[str] = []
    for each in parameters:
        if each.name not in ("self", "cls") and not each.name.startswith("_"):
            if each.kind is each.KEYWORD_ONLY and not any(name.startswith("*") for name in shown):
                shown.append("*")
            shown.append(_STARS.get(each.kind, "") + each.name + ("" if each.default is each.empty else "="))
    return f"({', '.join(shown)})"


def main() -> None:
    """Write the list."""
    LIST.write_text("\n".join(public_names()) + "\n")


if __name__ == "__main__":
    main()
