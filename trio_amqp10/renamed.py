"""Public names that have another name now: the old ones work for one more release, with a ``DeprecationWarning``.

Knows names; imports what they mean when one is asked for.
"""

from __future__ import annotations

import sys
import warnings
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["RENAMED", "RenamedAttribute", "add_older_names", "adopt_older_names", "with_renamed_argument"]

_NODE: Final = "trio_amqp10.container.nodes.node"

RENAMED: Final = {
    "Consumer": ("trio_amqp10.container.handlers", "ConsumerNode"),
    "Error": ("trio_amqp10.spec.transport", "ErrorInfo"),
    "Conversation": ("trio_amqp10.container.protocols.amqp10.connection", "Amqp10Connection"),
    "Function": ("trio_amqp10.container.handlers", "FunctionNode"),
    "House": (_NODE, "ContainerPeer"),
    "Interest": (_NODE, "SubscriptionTerms"),
    "Producer": ("trio_amqp10.container.nodes.producer", "ProducerNode"),
    "Rule": ("trio_amqp10.protocol_rules", "ProtocolRule"),
    "Table": ("trio_amqp10.container.stores.base", "StoreTable"),
}
"""For each old name, the module and the new name."""


def __getattr__(name: str) -> Any:
    """What an old name means, for the packages that had it."""
    if name not in RENAMED:
        package = sys.modules["trio_amqp10"]  # with it, Python suggests a name that is spelt alike
        raise AttributeError(f"trio_amqp10 has no attribute {name!r}", name=name, obj=package)
    module, new = RENAMED[name]
    advice = "; to catch the library's exceptions, use AmqpError" if name == "Error" else ""
    _warn(name, new, 4, advice)  # the package asks for it with a function of its own
    return getattr(import_module(module), new)


class RenamedAttribute:
    """An attribute by its old name: reads and sets the one with the new name.

    Args:
        new: the new name; ``"part.name"`` for one that a part has now.
    """

    def __init__(self, new: str) -> None:
        self._new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        overriding = [
            each
            for each in type(instance).__mro__
            if self._old in vars(each) and vars(each)[self._old] is not self
        ]
        if overriding:  # a subclass overrides it by the old name, and asks with super()
            parent = cast("Any", super(overriding[-1], instance))
            return getattr(parent, self._new)
        return getattr(*self._found(instance))

    def __set__(self, instance: Any, value: Any) -> None:
        setattr(*self._found(instance), value)

    def _found(self, instance: Any) -> tuple[Any, str]:
        name = type(instance).__name__
        _warn(f"{name}.{self._old}", f"{name}.{self._new}", 4)
        part, _, last = self._new.rpartition(".")
        return (getattr(instance, part) if part else instance), last


def add_older_names(cls: type, names: Mapping[str, str]) -> None:
    """Give a class a ``RenamedAttribute`` for each old name.

    Args:
        cls: the class that has the attributes with the new names.
        names: the new name for each old one.
    """
    for old, new in names.items():
        attribute = RenamedAttribute(new)
        attribute.__set_name__(cls, old)
        setattr(cls, old, attribute)


def adopt_older_names(cls: type, names: Mapping[str, str]) -> None:
    """Give what a subclass of the user's defines by an old name its new name; for ``__init_subclass__``.

    Args:
        cls: the subclass.
        names: the new name for each old one; the base class has ``RenamedAttribute`` for each.
    """
    for old, new in names.items():
        value = vars(cls).get(old)
        if value is None or isinstance(value, RenamedAttribute):
            continue
        _warn(f"{cls.__name__}.{old}", f"{cls.__name__}.{new}", 5)
        setattr(cls, new, value)
        if not callable(value) and not isinstance(value, property):
            delattr(cls, old)  # so that it can be set on an instance by its old name


def with_renamed_argument(function: Callable[..., Any], old: str, new: str) -> Callable[..., Any]:
    """``function``, callable with a keyword argument by its old and its new name, whichever it takes itself."""
    import inspect  # what a program with new names need not load

    takes, other = (old, new) if old in inspect.signature(function).parameters else (new, old)
    if takes == old:
        _warn(f"{function.__qualname__}({old})", new, 4)

    @wraps(function)
    def renaming(*args: Any, **options: Any) -> Any:
        if other in options:
            options[takes] = options.pop(other)
        return function(*args, **options)

    return renaming


def _warn(old: str, new: str, level: int, advice: str = "") -> None:
    warnings.warn(f"trio_amqp10: {old} is {new} now{advice}", DeprecationWarning, stacklevel=level)
