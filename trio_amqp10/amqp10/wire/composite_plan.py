"""The codec of one composite class: its fields, and its described list (1.4).

The docstring of ``composite`` explains how annotations become a plan. This module does not know the decorator or registries.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from operator import attrgetter
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.core.errors import LocalProtocolError, Scope
from trio_amqp10.core.peer_rules import SURPLUS_FIELDS

from . import codes
from .decode import Reader, read_descriptor
from .decode_budget import Budget, check_compound, enter, malformed, size_fault
from .encode import below, write_compound
from .fields import MULTIPLE, FieldType, InvalidFieldError, Named, OwnBudget, Requires, multiple_of
from .values import Symbol, ULong

if TYPE_CHECKING:
    from collections.abc import Callable

LISTS: Final = (codes.LIST0, codes.LIST8, codes.LIST32)

_U32: Final = Struct(">I")


def descriptor_octets(code: int) -> bytes:
    """Return the encoded descriptor, with code ``53`` if possible.

    It is used for 0 too, because some peers compare octets.
    """
    if code < 256:
        return bytes((codes.DESCRIBED, codes.SMALL_ULONG, code))
    return bytes((codes.DESCRIBED, codes.ULONG)) + code.to_bytes(8, "big")


def descriptor_key(descriptor: Any) -> Any:
    """Return a descriptor as a key for a registry; None if it is no ULong or Symbol.

    A long or a string would be equal to one in Python, but is another descriptor.
    """
    return descriptor if descriptor.__class__ in (ULong, Symbol) else None


class Field:
    """One field of a composite, and its codec.

    Attributes:
        name: the Python name; ``wire_name`` is the standard's name.
        type: the standard's name of the type; ``*`` for any type that provides ``requires``.
        default: the value of a field that is null or omitted.
    """

    __slots__ = (
        "default",
        "mandatory",
        "multiple",
        "name",
        "readers",
        "requires",
        "set",
        "type",
        "wire_name",
        "write",
    )

    def __init__(self, name: str, annotation: Any, default: Any) -> None:
        self.name: str = name
        self.wire_name: Final = name.replace("_", "-")
        self.mandatory: Final = default is dataclasses.MISSING
        self.default: Any = None if self.mandatory else default
        declared = _Annotation(annotation)
        field_type = typing.cast("FieldType", declared.type)
        self.type: Final[str] = declared.type_name
        self.requires: Final[str] = declared.requires
        self.multiple: Final[bool] = declared.multiple
        if self.multiple:
            field_type = multiple_of(field_type, self.mandatory)
            self.default = ()
        self.write: Final = field_type.write
        self.readers: dict[int, Reader] = dict(field_type.readers)
        if declared.nodes:
            self.readers = {code: _apart(read, declared.nodes) for code, read in self.readers.items()}
        if self.multiple or not self.mandatory:
            # A mandatory multiple field accepts null too, because null means the same as an empty array; the user of the field
            # then finds both with one check (5.3.3.1).
            self.readers[codes.NULL] = _null_as(self.default)
        self.set: Callable[[Any, Any], None]


def _null_as(default: Any) -> Reader:
    return lambda _buf, pos, _budget: (default, pos)


def _apart(read: Reader, nodes: int) -> Reader:
    """Return the reader with a separate budget of nodes."""

    def read_apart(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        rest, budget.nodes = budget.nodes, nodes
        value, pos = read(buf, pos, budget)
        budget.nodes = rest
        return value, pos

    return read_apart


class _Annotation:
    """The properties of a field that its annotation states."""

    __slots__ = ("multiple", "nodes", "requires", "type", "type_name")

    def __init__(self, annotation: Any) -> None:
        if typing.get_origin(annotation) in (typing.Union, types.UnionType):
            annotation = next(each for each in typing.get_args(annotation) if each is not types.NoneType)
        annotated = typing.get_origin(annotation) is typing.Annotated
        inner, *marks = typing.get_args(annotation) if annotated else (annotation,)
        self.type: FieldType | None = getattr(inner, "__amqp_field__", None)
        self.type_name = self.type.name if self.type else ""
        self.requires = self.type.requires if self.type else ""
        self.multiple = False
        self.nodes = 0
        for mark in marks:
            self._read(mark, inner)
        if self.type is None:
            raise TypeError(f"{annotation!r} has no AMQP type: use the names of wire.fields, or a composite")

    def _read(self, mark: Any, inner: Any) -> None:
        if mark == MULTIPLE:
            each = _Annotation(typing.get_args(inner)[0])
            self.type, self.type_name, self.requires = each.type, each.type_name, each.requires
            self.multiple = True
        elif isinstance(mark, FieldType):
            self.type, self.type_name, self.requires = mark, mark.name, mark.requires
        elif isinstance(mark, Named):
            self.type_name = mark.name
        elif isinstance(mark, Requires):
            self.requires = mark.archetype
        elif isinstance(mark, OwnBudget):
            self.nodes = mark.nodes


class Plan:
    """The codec of one class: its descriptors, and its fields in the standard's order.

    Attributes:
        cls: the class.
        name: the symbolic descriptor; ``code`` is the numeric descriptor.
        fields: the fields.
        provides: the archetypes that it provides (1.3).
        scope: the connection, session or link that an invalid field ends.
        shape: the kind of value that is described; ``constructors`` are the constructors of this kind.
    """

    shape = "list"
    constructors: tuple[int, ...] = LISTS

    __slots__ = ("cls", "code", "fields", "make", "name", "prefix", "provides", "scope", "values")

    def __init__(
        self,
        cls: type[Any],
        name: str,
        code: int,
        fields: tuple[Field, ...],
        provides: frozenset[str],
        scope: Scope,
    ) -> None:
        self.cls: Final = cls
        self.make: Callable[[], Any] = functools.partial(object.__new__, cls)
        self.name: Symbol = Symbol(name)
        self.code: Final = ULong(code)
        self.prefix: bytes = descriptor_octets(code)
        self.fields: tuple[Field, ...] = fields
        self.provides: Final = provides
        self.scope: Scope = scope
        self.values: Final = _values_getter([field.name for field in fields])

    def encode(self, out: bytearray, obj: Any, depth: int) -> None:
        """Append the described list of ``obj``."""
        depth = below(depth, 2)
        body = bytearray()
        count = 0
        for index, (field, value) in enumerate(zip(self.fields, self.values(obj), strict=True)):
            if value is None or (value == field.default and not field.mandatory) or value == ():
                if field.mandatory:
                    raise LocalProtocolError(f"{self.name}.{field.wire_name} is mandatory")
                continue
            if index > count:
                body += b"\x40" * (index - count)
            try:
                field.write(body, value, depth)
            except LocalProtocolError as error:
                raise LocalProtocolError(f"{self.name}.{field.wire_name}: {error}") from None
            count = index + 1
        out += self.prefix
        write_compound(out, codes.LIST8, codes.LIST32, count, body)

    def decode(self, buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        """Decode the list with its constructor at ``pos``; readers' exceptions propagate."""
        code = buf[pos]
        if code == codes.LIST8:
            end, count, pos = pos + 2 + buf[pos + 1], buf[pos + 2], pos + 3
        elif code == codes.LIST32:
            end, count, pos = (
                pos + 5 + _U32.unpack_from(buf, pos + 1)[0],
                _U32.unpack_from(buf, pos + 5)[0],
                pos + 9,
            )
        elif code == codes.LIST0:
            end, count, pos = pos + 1, 0, pos + 1
        else:
            raise malformed(f"{self.name} must be a list, not constructor {code:#04x}")
        check_compound(buf, pos, end, count)
        if count > len(self.fields):
            raise malformed(f"{self.name} has {len(self.fields)} fields, not {count}", SURPLUS_FIELDS)
        enter(budget, count, levels=2)
        obj: Any = self.make()
        index = 0
        try:
            for field in self.fields[:count]:
                reader = field.readers.get(buf[pos])
                if reader is None:
                    raise InvalidFieldError(refusal(field, buf[pos]))
                value, pos = reader(buf, pos + 1, budget)
                field.set(obj, value)
                index += 1
            for field in self.fields[count:]:
                if codes.NULL not in field.readers:
                    raise InvalidFieldError("mandatory, but missing")
                field.set(obj, field.default)
                index += 1
        except InvalidFieldError as error:
            raise self._place(error, obj, index) from None
        if pos != end:
            raise size_fault(pos, end)
        budget.depth += 2
        return obj, end

    def _place(self, error: InvalidFieldError, obj: Any, index: int) -> InvalidFieldError:
        """Return the error as one of this composite, with the scope of this composite."""
        detail = f"{error.composite}.{error.field}: {error.detail}" if error.composite else error.detail
        done = {field.name: getattr(obj, field.name) for field in self.fields[:index]}
        return InvalidFieldError(
            detail, str(self.name), self.fields[index].wire_name, self.scope, done, error.broken
        )

    def make_field_type(self) -> FieldType:
        """Return the type of a field for this composite, such as the error of a detach."""

        def read(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
            descriptor, pos = read_descriptor(buf, pos)
            if descriptor_key(descriptor) not in (self.code, self.name):
                raise InvalidFieldError(f"{descriptor!r} does not describe {self.name}")
            return self.decode(buf, pos, budget)

        def write(out: bytearray, value: Any, depth: int) -> None:
            if value.__class__ is not self.cls:
                raise LocalProtocolError(f"{value!r} is not {self.name}")
            self.encode(out, value, depth)

        name = self.name.removeprefix("amqp:").removesuffix(":list").removesuffix(":map")
        return FieldType(name, {codes.DESCRIBED: read}, write)


def refusal(field: Field, code: int) -> str:
    """Describe why a value with this constructor is not allowed in ``field``."""
    if code == codes.NULL:
        return "mandatory, but null"
    row = codes.ENCODINGS.get(code)
    what = "a described value" if code == codes.DESCRIBED else row.type if row else f"{code:#04x}"
    return f"{field.requires or field.type} expected, got {what}"


def _values_getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    if not names:
        return lambda _obj: ()
    if len(names) == 1:
        (name,) = names
        return lambda obj: (getattr(obj, name),)
    return attrgetter(*names)
