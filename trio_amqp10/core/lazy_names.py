"""Names of a package that are imported at their first use.

A package contains its imports under ``if TYPE_CHECKING``, for type checkers and readers, and passes the same
names with their modules to ``lazy_names``. So ``import trio_amqp10`` loads only a few modules, and a client loads no container.

Knows modules; knows none of their names.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class LazyNames(NamedTuple):
    """The functions and the list that a package binds to its special names.

    Attributes:
        get: its ``__getattr__``.
        names: its ``__dir__``.
        shown: its ``__all__``.
    """

    get: Callable[[str], Any]
    names: Callable[[], list[str]]
    shown: list[str]


def lazy_names(package: str, homes: Mapping[str, str], modules: str = "") -> LazyNames:
    """Return the functions with which a package imports names at their first use.

    Args:
        package: its ``__name__``.
        homes: modules (relative to the package if they begin with a dot), and the names that are imported from each, separated
            by spaces; a name may be that of a module there.
        modules: names of modules within the package, separated by spaces, that are its attributes without having been imported.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}
    within = frozenset(modules.split())

    def get(name: str) -> Any:
        if name in within:
            return import_module(f"{package}.{name}")
        home = home_of.get(name)
        if home is None:
            # With the package as ``obj``, Python suggests a similar name.
            raise AttributeError(f"{package} has no attribute {name!r}", name=name, obj=sys.modules[package])
        module = import_module(home, package)
        if home != "." and hasattr(module, name):
            found = getattr(module, name)
        else:
            found = import_module(f"{module.__name__}.{name}")
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        return _shown(package, home_of)

    return LazyNames(get, names, list(home_of))


def names_of(package: str, home: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package with one module's names.

    These include the ``__all__`` of the module.

    Args:
        package: its ``__name__``.
        home: the module, which has an ``__all__``; relative to the package if it begins with a dot.
    """

    def get(name: str) -> Any:
        # A module of the package is no name of ``home``. Importing such a module calls this function first, perhaps
        # while ``home`` itself is being imported and needs the module.
        public = name == "__all__" or not name.startswith("_")
        if public and find_spec(f"{package}.{name}") is None:
            module = import_module(home, package)
            if name == "__all__" or name in module.__all__:
                return getattr(module, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)

    def names() -> list[str]:
        return _shown(package, get("__all__"))

    return get, names


def _shown(package: str, public: Iterable[str]) -> list[str]:
    """Return the public and the special names, without the package's own imports."""
    special = {name for name in vars(sys.modules[package]) if name.startswith("__")}
    return sorted({*special, *public})
