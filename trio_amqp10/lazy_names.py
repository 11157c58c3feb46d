"""Names that a package shows and imports when one of them is first used.

A package writes its imports under ``if TYPE_CHECKING``, for type checkers and readers, and gives ``lazy_names`` the same
names with the modules that they are in. ``import trio_amqp10`` so costs a few modules, and a client loads no container.

Knows modules; knows no name of theirs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["LazyNames", "lazy_names"]


class LazyNames(NamedTuple):
    """What a package binds at its top.

    Attributes:
        get: its ``__getattr__``.
        names: its ``__dir__``.
        shown: its ``__all__``.
    """

    get: Callable[[str], Any]
    names: Callable[[], list[str]]
    shown: list[str]


def lazy_names(
    package: str,
    homes: Mapping[str, str],
    modules: str = "",
    *,
    otherwise: Callable[[str], Any] | None = None,
) -> LazyNames:
    """The functions with which a package imports its names when they are first used.

    Args:
        package: its ``__name__``.
        homes: modules, from a dot on relative to it, and the names that are imported from each, with spaces between; a name
            may be that of a module there.
        modules: names of modules within it, with spaces between, that are its attributes without an import of their own.
        otherwise: gives an attribute of any other name, or raises ``AttributeError``; None if there is none.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}
    within = frozenset(modules.split())

    def get(name: str) -> Any:
        if name in within:
            return import_module(f"{package}.{name}")
        home = home_of.get(name)
        if home is None:
            if otherwise is not None:
                return otherwise(name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        module = import_module(home, package)
        if home != "." and hasattr(module, name):
            found = getattr(module, name)
        else:
            found = import_module(f"{module.__name__}.{name}")
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of, *within})

    return LazyNames(get, names, list(home_of))
