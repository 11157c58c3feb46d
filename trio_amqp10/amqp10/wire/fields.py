"""The types of declared fields, and their names for annotations (1.3, 1.4).

``composite`` builds codecs of classes from them. A declared type is stricter than a free value: a ``uint`` field accepts only the
three encodings of uint. It returns a plain ``int``, because the declaration already states the type.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError, Scope
from trio_amqp10.core.peer_rules import FIELD, FIELD_KEYS, ProtocolRule

from . import codes
from .decode import TABLE, Reader
from .encode import WRITERS, Writer, below, write_compound, write_value
from .pair_map import PairMap
from .values import Array, Described, Symbol, ZeroWidthArray
from .writers import check_class

if TYPE_CHECKING:
    from .decode_budget import Budget

T = TypeVar("T")
E = TypeVar("E", bound=IntEnum)


class InvalidFieldError(RemoteProtocolError):
    """``amqp:invalid-field``: a field is missing, or its value is not allowed.

    Attributes:
        composite: the standard's name of the outermost type, such as ``amqp:attach:list``.
        field: the standard's name of its field.
        values: the fields before it, by Python name; enough to identify the link.
        broken: the rule that the field breaks.
    """

    def __init__(
        self,
        detail: str,
        composite: str = "",
        field: str = "",
        scope: Scope = "connection",
        values: Mapping[str, Any] | None = None,
        rule: ProtocolRule = FIELD,
    ) -> None:
        where = f"{composite}.{field}: " if composite else ""
        super().__init__(rule.describe(where + detail), rule.condition, scope, rule=rule.name)
        self.broken: Final = rule
        self.detail = detail
        self.composite = composite
        self.field = field
        self.values: Mapping[str, Any] = values or {}


class FieldType:
    """The codec of a declared type.

    Args:
        name: the standard's name of the type; ``*`` if any type is allowed that provides ``requires``.
        readers: the reader of each constructor octet that the type may have; others are refused.
        write: appends a value, with constructor; raises LocalProtocolError for a value of another type.
        requires: the archetype that values must provide, or "".
    """

    __slots__ = ("name", "readers", "requires", "write")

    def __init__(self, name: str, readers: Mapping[int, Reader], write: Writer, requires: str = "") -> None:
        self.name: str = name
        self.readers: Final = dict(readers)
        self.write: Writer = write
        self.requires: Final = requires


class Named:
    """An annotation with the name of a restricted type without further restrictions."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: str = name


class Requires:
    """An annotation with the archetype that values should provide; it is not enforced."""

    __slots__ = ("archetype",)

    def __init__(self, archetype: str) -> None:
        self.archetype: Final = archetype


class OwnBudget:
    """An annotation of a field whose values have a budget of their own."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: int) -> None:
        self.nodes: int = nodes


# Scalars: declared integers are read as plain ints, which is faster and sufficient.

_U16: Final = Struct(">H")
_U32: Final = Struct(">I")
_U64: Final = Struct(">Q")


def _octet(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return buf[pos], pos + 1


def _u16(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _U16.unpack_from(buf, pos)[0], pos + 2


def _u32(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _U32.unpack_from(buf, pos)[0], pos + 4


def _u64(buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return _U64.unpack_from(buf, pos)[0], pos + 8


def _zero(_buf: bytes, pos: int, _budget: Budget) -> tuple[Any, int]:
    return 0, pos


def _plain(read: Reader) -> Reader:
    """Return a reader whose results are plain ints, without an AMQP type."""

    def read_plain(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        value, pos = read(buf, pos, budget)
        return int(value), pos

    return read_plain


_PLAIN: Final[dict[int, Reader]] = {
    codes.UBYTE: _octet,
    codes.USHORT: _u16,
    codes.UINT: _u32,
    codes.SMALL_UINT: _octet,
    codes.UINT0: _zero,
    codes.ULONG: _u64,
    codes.SMALL_ULONG: _octet,
    codes.ULONG0: _zero,
    codes.BYTE: _plain(TABLE[codes.BYTE]),
    codes.SHORT: _plain(TABLE[codes.SHORT]),
    codes.INT: _plain(TABLE[codes.INT]),
    codes.SMALL_INT: _plain(TABLE[codes.SMALL_INT]),
}


def _readers(*names: str) -> dict[int, Reader]:
    """Return the readers of free values for each encoding of the named types."""
    return {code: TABLE[code] for code, row in codes.ENCODINGS.items() if row.type in names}


def _scalar(name: str, write: Writer | None = None) -> FieldType:
    return FieldType(
        name, {code: _PLAIN.get(code, read) for code, read in _readers(name).items()}, write or WRITERS[name]
    )


# Maps ------------------------------------------------------------------------------------------


def _with_symbols(read: Reader) -> Reader:
    """Return a reader of maps that refuses or counts keys other than symbols."""

    def read_fields(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        value, pos = read(buf, pos, budget)
        for key in value:
            if not isinstance(key, Symbol):
                if budget.symbol_keys:
                    raise InvalidFieldError(
                        f"a key of type {type(key).__name__}: {key!r:.100}", rule=FIELD_KEYS
                    )
                budget.tolerate(FIELD_KEYS)
                break
        return value, pos

    return read_fields


_FIELDS: Final = {code: _with_symbols(read) for code, read in _readers("map").items()}


def _write_keyed(out: bytearray, value: Any, depth: int, integers: bool) -> None:
    if value.__class__ is PairMap:  # as received, so its keys are not converted or checked
        return WRITERS["map"](out, value, depth)
    check_class(value, Mapping, "a mapping")
    pairs: Mapping[Any, Any] = value
    depth = below(depth)
    body = bytearray()
    for key, each in pairs.items():
        if isinstance(key, str):
            WRITERS["symbol"](body, key, depth)
        elif integers and isinstance(key, int):
            WRITERS["ulong"](body, key, depth)
        else:
            raise LocalProtocolError(f"a key of this map must be a symbol, not {key!r}")
        write_value(body, each, depth)
    write_compound(out, codes.MAP8, codes.MAP32, 2 * len(pairs), body)
    return None


def write_symbol_map(out: bytearray, value: Any, depth: int) -> None:
    """Append a map; its str keys are sent as symbols (2.8.13, 3.5.8)."""
    _write_keyed(out, value, depth, integers=False)


def write_annotations(out: bytearray, value: Any, depth: int) -> None:
    """Append a map; its str keys are sent as symbols, its int keys as ulongs (3.2.10)."""
    _write_keyed(out, value, depth, integers=True)


# Choices, archetypes and multiples ---------------------------------------------------------------


def restricted(name: str, source: str) -> Callable[[type[E]], type[E]]:
    """Decorate an IntEnum as the closed set of values of a restricted type (1.4).

    A received value that is not in the set is an ``amqp:invalid-field``.
    """

    def decorate(cls: type[E]) -> type[E]:
        members = {int(member): member for member in cls}
        base = WRITERS[source]

        def reader(read: Reader) -> Reader:
            def read_choice(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
                number, pos = read(buf, pos, budget)
                member = members.get(number)
                if member is None:
                    raise InvalidFieldError(f"{number} is not a valid {name}")
                return member, pos

            return read_choice

        def write(out: bytearray, value: Any, depth: int) -> None:
            if not isinstance(value, int) or value.__class__ is bool or value not in members:
                raise LocalProtocolError(f"{value!r} is not a valid {name}")
            base(out, value, depth)

        readers = {code: reader(_PLAIN[code]) for code in _readers(source)}
        cls.__amqp_field__ = FieldType(name, readers, write)  # type: ignore[attr-defined]
        return cls

    return decorate


_PYTHON: Final[dict[str, Any]] = {
    "string": str,
    "binary": (bytes, bytearray, memoryview),
    "uuid": uuid.UUID,
    "ulong": int,
}


def archetype(name: str, *sources: str) -> FieldType:
    """Return the field type for any type that provides ``name`` (1.3).

    These are the composites that declare it, and the given primitive types. A described value with an unknown descriptor is
    accepted as ``Described``: another specification may let it provide the archetype, so the caller must decide. The source
    ``*`` allows any value.
    """
    anything = "*" in sources
    readers = dict(enumerate(TABLE)) if anything else _readers(*sources)
    readers.pop(codes.NULL, None)
    choices = [(_PYTHON[source], WRITERS[source]) for source in sources if not anything]

    def read(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        value, pos = TABLE[codes.DESCRIBED](buf, pos, budget)
        plan = getattr(value.__class__, "__amqp__", None)
        if plan is not None and name not in plan.provides:
            raise InvalidFieldError(f"{plan.name} does not provide {name}")
        return value, pos

    def write(out: bytearray, value: Any, depth: int) -> None:
        cls = value.__class__
        plan = getattr(cls, "__amqp__", None)
        if plan is not None and name not in plan.provides and not anything:
            raise LocalProtocolError(f"{plan.name} does not provide {name}")
        if anything or plan is not None or cls is Described or hasattr(cls, "__amqp_encode__"):
            return write_value(out, value, depth)
        for python, writer in choices:
            if isinstance(value, python) and cls is not bool:
                return writer(out, value, depth)
        raise LocalProtocolError(f"{value!r} is not a valid {name}")

    if not anything:
        readers[codes.DESCRIBED] = read
    return FieldType("*", readers, write, name)


def multiple_of(base: FieldType, mandatory: bool) -> FieldType:
    """Return the field type for zero or more values of ``base``, as a tuple (1.4).

    A received null, single value or array is read. Two or more values are written as an array. A single value is written as
    itself, which every peer accepts; but if the field is mandatory (the SASL mechanisms), it is written as an array, because
    there some peers accept only an array.
    """
    if base.name == "*":
        raise TypeError("a field of any type cannot be multiple")

    def one(read: Reader) -> Reader:
        def read_one(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
            value, pos = read(buf, pos, budget)
            return (value,), pos

        return read_one

    def many(read: Reader) -> Reader:
        def read_many(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
            array, pos = read(buf, pos, budget)
            if len(array) == 0:
                return (), pos
            if array.__class__ is ZeroWidthArray or array.type != base.name or array.descriptors:
                raise InvalidFieldError(f"an array whose elements are not of type {base.name}")
            return tuple(array), pos

        return read_many

    def write(out: bytearray, value: Any, depth: int) -> None:
        if len(value) == 1 and not mandatory:
            base.write(out, value[0], depth)
        else:
            WRITERS["array"](out, Array(value, base.name), depth)

    readers = {code: one(read) for code, read in base.readers.items()}
    readers |= {code: many(TABLE[code]) for code in (codes.ARRAY8, codes.ARRAY32)}
    return FieldType(base.name, readers, write, base.requires)


# Names for annotations: ``incoming_window: uint``. ``spec`` adds the restricted types, with capital letters. ``int`` and
# ``float`` are Python's own types, so the standard's types of these names have a trailing ``_``.

MULTIPLE: Final = "multiple"
"""The mark of an annotation for zero or more values: an iterable, or one value."""

Multiple = Annotated[Sequence[T], MULTIPLE]

boolean = Annotated[bool, _scalar("boolean")]
ubyte = Annotated[int, _scalar("ubyte")]
ushort = Annotated[int, _scalar("ushort")]
uint = Annotated[int, _scalar("uint")]
ulong = Annotated[int, _scalar("ulong")]
byte = Annotated[int, _scalar("byte")]
short = Annotated[int, _scalar("short")]
int_ = Annotated[int, _scalar("int")]
long = Annotated[int, _scalar("long")]
float_ = Annotated[float, _scalar("float")]
double = Annotated[float, _scalar("double")]
char = Annotated[str, _scalar("char")]
timestamp = Annotated[int, _scalar("timestamp")]
binary = Annotated[bytes, _scalar("binary")]
string = Annotated[str, _scalar("string")]
symbol = Annotated[str, _scalar("symbol")]
plain_map = Annotated[Mapping[Any, Any], _scalar("map")]
symbol_map = Annotated[Mapping[Any, Any], FieldType("map", _FIELDS, write_symbol_map)]
annotation_map = Annotated[Mapping[Any, Any], _scalar("map", write_annotations)]
