"""Build codecs from annotations, and the fields of a class.

A ``CodecBuilder`` makes the codecs of one annotation and of all annotations inside it. The registry gets them
only if all are complete, so that an undefined name, or an annotation without an AMQP type, leaves nothing
behind.

Knows no AMQP values; the other modules define the codecs of each kind.
"""

from __future__ import annotations

import collections
import enum
import types
import typing
from abc import ABCMeta
from collections import abc
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.wire.fields import MULTIPLE, FieldType
from trio_amqp10.amqp10.wire.pair_map import PairMap
from trio_amqp10.amqp10.wire.values import TYPE_NAMES, Array

from .choices import enum_codec, literal_codec
from .compounds import adapted, array_of, list_of, map_of, multiple_of, tuple_of
from .fields import fields_of, is_struct
from .scalars import NULL, PLAIN_CODECS, exact, field_codec, value_class
from .structs import Struct
from .unions import base_codec, optional, union_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .codec import Codec
    from .codec_tables import CodecTables

_LISTS: Final[dict[Any, Callable[[list[Any]], Any] | None]] = {
    list: None,
    abc.Sequence: None,
    abc.MutableSequence: None,
    abc.Collection: None,
    abc.Iterable: None,
    tuple: tuple,
    set: set,
    abc.MutableSet: set,
    frozenset: frozenset,
    abc.Set: frozenset,
    collections.deque: collections.deque,
}
_MAPS: Final[dict[Any, Callable[[Any], Any] | None]] = {
    dict: None,
    abc.Mapping: None,
    abc.MutableMapping: None,
    PairMap: PairMap,
    collections.OrderedDict: collections.OrderedDict,
}
_DICTS: Final = (dict, collections.OrderedDict)
_UNIONS: Final = (typing.Union, types.UnionType)
_WRAPPERS: Final = (typing.Required, typing.NotRequired, typing.Final)
_SIMPLE: Final = (bool, int, float, str, bytes)


class CodecBuilder:
    """Makes the codecs of one annotation.

    Args:
        book: the tables of the registry.
        done: the codecs that the registry has already.
    """

    def __init__(self, book: CodecTables, done: Mapping[Any, Codec]) -> None:
        self._book = book
        self._done = done
        self.made: dict[Any, Codec] = {}

    def codec(self, annotation: Any) -> Codec:
        """Return the codec of ``annotation``.

        Raises:
            TypeError: it has no AMQP type.
            NameError: it has a name that is not defined, or not defined yet.
        """
        key = key_of(annotation)
        found = self._done.get(key) or self.made.get(key)
        if found is None:
            found = self._make(annotation)
            self.made[key] = found
        return found

    def _make(self, annotation: Any) -> Codec:
        if annotation is Any or annotation is object:
            return self._book.anything
        if annotation is None:
            return NULL
        if isinstance(annotation, type):
            adaptation = self._book.adaptation(annotation)
            if adaptation is not None:
                return self._adapted(annotation, *adaptation)
            if annotation in PLAIN_CODECS:
                return PLAIN_CODECS[annotation]
        origin = typing.get_origin(annotation)
        arguments = typing.get_args(annotation)
        if origin is typing.Annotated:
            return self._annotated(arguments[0], arguments[1:])
        if origin in _UNIONS:
            return self._union(arguments)
        if origin is typing.Literal:
            return self._literal(arguments)
        if origin in _WRAPPERS or getattr(origin, "__name__", "") == "ReadOnly":
            return self.codec(arguments[0])
        cls: Any = origin or annotation
        if isinstance(cls, type):
            return self._class(annotation, cls, arguments)
        return self._named(annotation)

    def _named(self, annotation: Any) -> Codec:
        """Return the codec of a NewType, or of an alias of the ``type`` statement."""
        for attribute in ("__supertype__", "__value__"):
            if hasattr(annotation, attribute):
                return self.codec(getattr(annotation, attribute))
        raise TypeError(f"{annotation!r} has no AMQP type")

    def _annotated(self, inner: Any, marks: tuple[Any, ...]) -> Codec:
        for mark in marks:
            if isinstance(mark, FieldType):
                return _declared(mark, getattr(inner, "__amqp__", None))
            if isinstance(mark, str) and mark == MULTIPLE:
                return multiple_of(self._typed_element(typing.get_args(inner)[0]))
            if typing.get_origin(mark) is typing.Annotated:
                # Annotated[Colour, ubyte] has the type of the values.
                return self._choice_as(inner, self.codec(mark))
        return self.codec(inner)

    def _choice_as(self, inner: Any, values: Codec) -> Codec:
        if isinstance(inner, type) and issubclass(inner, enum.Enum):
            return enum_codec(inner, values)
        if typing.get_origin(inner) is typing.Literal:
            return literal_codec(typing.get_args(inner), {_scalar_class(typing.get_args(inner)): values})
        raise TypeError(f"{inner!r}: only the values of an Enum or a Literal can be sent as another type")

    def _union(self, arguments: tuple[Any, ...]) -> Codec:
        members = [each for each in arguments if each is not types.NoneType]
        if len(members) == 1:
            return optional(self.codec(members[0]))
        bases = tuple(cls for cls in map(_class_of, members) if cls is not None)

        def subclass(key: Any) -> Codec | None:
            return self._book.subclass(bases, key)

        codec = union_of([self.codec(member) for member in members], subclass)
        return codec if len(members) == len(arguments) else optional(codec)

    def _literal(self, values: tuple[Any, ...]) -> Codec:
        codecs = {value.__class__: self.codec(value.__class__) for value in values}
        return literal_codec(values, codecs)

    def _class(self, annotation: Any, cls: Any, arguments: tuple[Any, ...]) -> Codec:
        if is_struct(cls):
            return self._struct(annotation, cls, arguments)
        if cls is Array:
            if not arguments:
                raise TypeError("an Array needs the type of its elements: Array[ulong]")
            return array_of(self._typed_element(arguments[0]))
        if cls is tuple and ... not in (arguments or (...,)):
            return tuple_of(tuple(self.codec(each) for each in arguments))
        if cls in _LISTS:
            return list_of(self.codec(arguments[0] if arguments else Any), _LISTS[cls])
        if cls in _MAPS:
            key, item = arguments or (Any, Any)
            return map_of(self.codec(key), self.codec(item), _MAPS[cls], every=cls not in _DICTS)
        value = value_class(cls)
        if value is not None:
            return value
        field_type = getattr(cls, "__amqp_field__", None)
        if field_type is not None:
            return _declared(field_type, getattr(cls, "__amqp__", None))
        if issubclass(cls, enum.Enum):
            return enum_codec(cls, self.codec(_scalar_class(tuple(each.value for each in cls))))
        return self._base(annotation)

    def _typed_element(self, annotation: Any) -> Codec:
        """Return the codec of an array's elements, which must have one type (1.6.24)."""
        codec = self.codec(annotation)
        if not codec.leaf or not codec.wire:
            raise TypeError(f"{annotation!r} has no single type for the elements of an array")
        return codec

    def _adapted(
        self, cls: type[Any], wire: Any, to_wire: Callable[[Any], Any], from_wire: Callable[[Any], Any]
    ) -> Codec:
        codec = self.codec(wire)
        if codec.nullable:
            raise TypeError(f"a {cls.__name__} cannot be sent as null, which is None")
        return adapted(cls, codec, to_wire, from_wire)

    def _struct(self, annotation: Any, cls: type[Any], arguments: tuple[Any, ...]) -> Codec:
        declaration = self._book.declaration(cls)
        if declaration is None:
            raise TypeError(
                f"{cls.__name__} encodes itself, or was declared in another registry: pass that one to Registry()"
            )

        book = self._book
        is_dict = typing.is_typeddict(cls)

        def subclass(key: Any) -> Codec | None:
            return None if is_dict else book.subclass((cls,), key)

        codec = Struct(cls, declaration, is_dict=is_dict, other=book.codec, subclass=subclass)
        self.made[key_of(annotation)] = codec  # before its fields, because a field may have its class
        codec.fill(fields_of(cls, arguments, declaration, self.codec, self._book.names()))
        return codec

    def _base(self, cls: type[Any]) -> Codec:
        if type(cls) is not ABCMeta:
            raise TypeError(
                f"{cls.__name__} has no AMQP type: make it a dataclass, a NamedTuple or a TypedDict, "
                f"or give the registry an adapter for it"
            )
        book = self._book

        def subclass(key: Any) -> Codec | None:
            return book.subclass((cls,), key)

        return base_codec(cls, subclass, book.object_codec)


def key_of(annotation: Any) -> Any:
    """Return the key of an annotation in the tables.

    Two unions with another order are equal in Python, but have different codecs.
    """
    if isinstance(annotation, type):
        return annotation
    try:
        hash(annotation)
    except TypeError:  # marks of other libraries may be unhashable
        return object()
    return annotation, repr(annotation)


def _declared(field_type: FieldType, plan: Any) -> Codec:
    """Return the codec of a declared type of ``wire.fields`` or ``wire.composite``."""
    if plan is None and field_type.name in _EXACT:
        return exact(field_type.name, plain=True)
    keys = frozenset[Any]() if plan is None else frozenset({plan.code, plan.name})
    return field_codec(field_type, keys)


_EXACT: Final = frozenset(
    name for name in TYPE_NAMES.values() if name not in ("list", "map", "array") and "decimal" not in name
)


def _class_of(annotation: Any) -> type[Any] | None:
    cls = typing.get_origin(annotation) or annotation
    return cls if isinstance(cls, type) and not typing.is_typeddict(cls) else None


def _scalar_class(values: tuple[Any, ...]) -> type[Any]:
    """Return the class that all values have, to find their codec."""
    for cls in _SIMPLE:
        if all(isinstance(value, cls) for value in values):
            return cls
    raise TypeError(f"{values!r} are not all of one simple type: bool, int, float, str or bytes")
