"""Names that a package shows and imports when one of them is first used.

A package writes its imports under ``if TYPE_CHECKING``, for type checkers and readers, and gives ``lazy_names`` the same
names with the modules that they are in. ``import trio_amqp10`` so costs a few modules, and a client loads no container.

Knows modules; knows no name of theirs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["LazyNames", "lazy_names", "names_of"]


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


def lazy_names(package: str, homes: Mapping[str, str], modules: str = "") -> LazyNames:
    """The functions with which a package imports its names when they are first used.

    Args:
        package: its ``__name__``.
        homes: modules, from a dot on relative to it, and the names that are imported from each, with spaces between; a name
            may be that of a module there.
        modules: names of modules within it, with spaces between, that are its attributes without an import of their own.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}
    within = frozenset(modules.split())

    def get(name: str) -> Any:
        if name in within:
            return import_module(f"{package}.{name}")
        home = home_of.get(name)
        if home is None:
            # With the package as ``obj``, Python suggests a name that is spelt alike.
            raise AttributeError(f"{package} has no attribute {name!r}", name=name, obj=sys.modules[package])
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


def names_of(package: str, home: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package that shows the names, and so the ``__all__``, of one module within it.

    Args:
        package: its ``__name__``.
        home: the module, from a dot on relative to it; it has an ``__all__``.
    """

    def get(name: str) -> Any:
        # A module of the package is no name of ``home``: what imports one gets here first, while ``home`` may need it itself.
        public = name == "__all__" or not name.startswith("_")
        if public and find_spec(f"{package}.{name}") is None:
            module = import_module(home, package)
            if name == "__all__" or name in module.__all__:
                return getattr(module, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *get("__all__")})

    return get, names
