"""Find the fields of a class, by its annotations and defaults.

Knows three kinds of class: dataclasses, NamedTuples and TypedDicts; generic ones too.
"""

from __future__ import annotations

import dataclasses
import sys
import typing
from typing import TYPE_CHECKING, Any, TypeVar

from .field_markers import REST, Key
from .structs import Declaration, Field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .codec import Codec


def is_struct(cls: type[Any]) -> bool:
    """Whether ``cls`` is a dataclass, NamedTuple or TypedDict."""
    if hasattr(cls, "__amqp__"):  # a composite of the standard's kind, which is a dataclass too
        return False
    return dataclasses.is_dataclass(cls) or typing.is_typeddict(cls) or hasattr(cls, "_field_defaults")


def fields_of(
    cls: type[Any],
    arguments: tuple[Any, ...],
    declaration: Declaration,
    codec: Callable[[Any], Codec],
    names: dict[str, Any],
) -> list[Field]:
    """Return the fields that are encoded, those of base classes first.

    Args:
        cls: the class.
        arguments: the type arguments of a generic class.
        declaration: the declaration of the class.
        codec: returns the codec of an annotation.
        names: classes that annotations may name, besides the globals of their module.

    Raises:
        TypeError: an annotation has no AMQP type, or two fields have one key, or the like.
        NameError: an annotation has a name that is not defined.
    """
    hints = _hints(cls, names)
    variables = _variables(cls, arguments)
    fields: list[Field] = []
    for name, optional, none_is_default, own_key in _rows(cls, hints):
        annotation = _substitute(hints.get(name, Any), variables)
        marks = _marks(annotation)
        key = next((mark.name for mark in marks if isinstance(mark, Key)), own_key)
        if key is None:
            key = declaration.rename(name) if declaration.rename else name
        fields.append(
            Field(
                name, key, codec(annotation), optional, none_is_default, any(mark is REST for mark in marks)
            )
        )
    _check(cls, declaration, fields)
    return fields


def _hints(cls: type[Any], names: dict[str, Any]) -> dict[str, Any]:
    """Return the evaluated annotations.

    A name that is not a global of the module may be a declared class.
    """
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except NameError:
        own = vars(sys.modules[cls.__module__])
        local = {name: each for name, each in names.items() if name not in own}
        return typing.get_type_hints(cls, localns=local | {cls.__name__: cls}, include_extras=True)


def _marks(annotation: Any) -> tuple[Any, ...]:
    """Return the marks of Annotated, also inside of NotRequired and the like."""
    while typing.get_origin(annotation) in (typing.Required, typing.NotRequired, typing.Final):
        (annotation,) = typing.get_args(annotation)
    return getattr(annotation, "__metadata__", ())


def _rows(cls: type[Any], hints: dict[str, Any]) -> Iterator[tuple[str, bool, bool, str | None]]:
    """Yield name, whether optional, whether absence reads as None, and the own key."""
    if dataclasses.is_dataclass(cls):
        for name, hint in hints.items():
            if isinstance(hint, dataclasses.InitVar) and not hasattr(cls, name):
                raise TypeError(
                    f"{cls.__name__}.{name} is an InitVar without a default, and is not sent: give it a default"
                )
        for field in dataclasses.fields(cls):
            if field.init:
                bare = field.default is field.default_factory is dataclasses.MISSING
                yield field.name, not bare, bare or field.default is None, field.metadata.get("amqp")
    elif typing.is_typeddict(cls):
        for name, hint in hints.items():
            yield name, not _required(cls, name, hint), False, None
    else:
        defaults = getattr(cls, "_field_defaults", {})
        for name in getattr(cls, "_fields", ()):
            yield name, name in defaults, defaults.get(name) is None, None


def _required(cls: type[Any], name: str, hint: Any) -> bool:
    """Whether a key of a TypedDict is required.

    With postponed annotations, the class itself knows only its totality.
    """
    origin = typing.get_origin(hint)
    if origin is typing.Required or origin is typing.NotRequired:
        return origin is typing.Required
    return name in getattr(cls, "__required_keys__", ())


def _variables(cls: type[Any], arguments: tuple[Any, ...]) -> dict[Any, Any]:
    """Return the values of the type variables of a generic class and its bases."""
    variables = dict(zip(getattr(cls, "__parameters__", ()), arguments, strict=False))
    for base in getattr(cls, "__orig_bases__", ()):
        origin = typing.get_origin(base)
        if isinstance(origin, type) and is_struct(origin):
            given = tuple(_substitute(each, variables) for each in typing.get_args(base))
            variables |= _variables(origin, given)
    return variables


def _substitute(annotation: Any, variables: dict[Any, Any]) -> Any:
    if isinstance(annotation, TypeVar):
        return variables.get(annotation, annotation.__bound__ or Any)
    parameters = getattr(annotation, "__parameters__", ())
    if not parameters or isinstance(annotation, type):
        return annotation
    return annotation[tuple(_substitute(each, variables) for each in parameters)]


def _check(cls: type[Any], declaration: Declaration, fields: list[Field]) -> None:
    rest = [field for field in fields if field.rest]
    if len(rest) > 1 or (rest and (declaration.encoding != "map" or typing.is_typeddict(cls))):
        raise TypeError(
            f"{cls.__name__}: only one field of a map can be marked REST, and no key of a TypedDict"
        )
    if rest and dict not in (rest[0].codec.kinds or ()):
        raise TypeError(f"{cls.__name__}.{rest[0].name} is marked REST: make it a dict")
    if declaration.encoding == "value" and len(fields) != 1:
        raise TypeError(f"{cls.__name__} has {len(fields)} fields: encoding='value' is for one field")
    if typing.is_typeddict(cls) and declaration.encoding != "map":
        raise TypeError(f"{cls.__name__} is a TypedDict, which can be sent only as a map")
    keys = [field.key for field in fields if not field.rest]
    if len(set(keys)) < len(keys):
        raise TypeError(f"{cls.__name__} has two fields with one key: {keys}")
