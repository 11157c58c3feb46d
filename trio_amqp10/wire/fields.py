"""The types of declared fields: how each reads and writes, and the names that annotations use (1.3, 1.4).

Knows nothing of classes: ``composite`` makes codecs of these. It stands apart only because both
together would not fit a screenful.

A declared type is strict where a free value is not: a ``uint`` field takes the three encodings of
uint, and gives a plain ``int``, since the declaration already says what it is.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError, Scope
from trio_amqp10.protocol_rules import FIELD, FIELD_KEYS, ProtocolRule

from . import codes
from .decode import TABLE, Reader
from .encode import WRITERS, Writer, below, write_compound, write_value
from .pair_map import PairMap
from .values import Array, Described, Symbol, ZeroWidthArray
from .writers import check_class

if TYPE_CHECKING:
    from .decode_budget import Budget

__all__ = [
    "MULTIPLE",
    "FieldType",
    "InvalidFieldError",
    "Multiple",
    "Named",
    "OwnBudget",
    "Requires",
    "annotation_map",
    "archetype",
    "binary",
    "boolean",
    "byte",
    "char",
    "double",
    "float_",
    "int_",
    "long",
    "multiple_of",
    "plain_map",
    "restricted",
    "short",
    "string",
    "symbol",
    "symbol_map",
    "timestamp",
    "ubyte",
    "uint",
    "ulong",
    "ushort",
    "write_annotations",
    "write_symbol_map",
]

T = TypeVar("T")
E = TypeVar("E", bound=IntEnum)


class InvalidFieldError(RemoteProtocolError):
    """``amqp:invalid-field``: a field is missing, null, of a wrong type or of an unknown choice.

    Attributes:
        composite: the standard's name of the outermost type, such as ``amqp:attach:list``.
        field: the standard's name of its field.
        values: the fields before it, by Python name: enough to tell which link is meant.
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
        super().__init__(rule.says(where + detail), rule.condition, scope, rule=rule.name)
        self.broken: Final = rule
        self.detail = detail
        self.composite = composite
        self.field = field
        self.values: Mapping[str, Any] = values or {}


class FieldType:
    """How the values of a declared type come in and go out.

    Args:
        name: the standard's name of the type, ``*`` where any type may stand that provides ``requires``.
        readers: a reader for each constructor octet that the type may have; others are refused.
        write: appends a value, constructor first; raises LocalProtocolError for one of another type.
        requires: what a type must provide to stand here, or "".
    """

    __slots__ = ("name", "readers", "requires", "write")

    def __init__(self, name: str, readers: Mapping[int, Reader], write: Writer, requires: str = "") -> None:
        self.name: str = name
        self.readers: Final = dict(readers)
        self.write: Writer = write
        self.requires: Final = requires


class Named:
    """Annotates a restricted type with its own name, where it takes every value of its source."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name: str = name


class Requires:
    """Annotates a type with the archetype that its values should provide, where any value passes."""

    __slots__ = ("archetype",)

    def __init__(self, archetype: str) -> None:
        self.archetype: Final = archetype


class OwnBudget:
    """Annotates a field whose nodes are counted apart from those of its composite."""

    __slots__ = ("nodes",)

    def __init__(self, nodes: int) -> None:
        self.nodes: int = nodes


# Scalars: integers are read as plain ints, which is cheaper and all that a declared field needs.

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
    """The same reader, giving an int that remembers no wire type."""

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
    """The free value's reader of each encoding of the named types."""
    return {code: TABLE[code] for code, row in codes.ENCODINGS.items() if row.type in names}


def _scalar(name: str, write: Writer | None = None) -> FieldType:
    return FieldType(
        name, {code: _PLAIN.get(code, read) for code, read in _readers(name).items()}, write or WRITERS[name]
    )


# Maps ------------------------------------------------------------------------------------------


def _with_symbols(read: Reader) -> Reader:
    """The same reader of a map, whose keys are symbols where the budget says so."""

    def read_fields(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        value, pos = read(buf, pos, budget)
        if budget.symbol_keys:
            for key in value:
                if not isinstance(key, Symbol):
                    raise InvalidFieldError(
                        f"a key of type {type(key).__name__}: {key!r:.100}", rule=FIELD_KEYS
                    )
        return value, pos

    return read_fields


_FIELDS: Final = {code: _with_symbols(read) for code, read in _readers("map").items()}


def _write_keyed(out: bytearray, value: Any, depth: int, integers: bool) -> None:
    if value.__class__ is PairMap:  # as a peer sent it, with keys that it may not have
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
            raise LocalProtocolError(f"a key of this map is a symbol, not {key!r}")
        write_value(body, each, depth)
    write_compound(out, codes.MAP8, codes.MAP32, 2 * len(pairs), body)
    return None


def write_symbol_map(out: bytearray, value: Any, depth: int) -> None:
    """Append a map whose str keys travel as symbols (2.8.13, 3.5.8)."""
    _write_keyed(out, value, depth, integers=False)


def write_annotations(out: bytearray, value: Any, depth: int) -> None:
    """Append a map whose str keys travel as symbols, and int keys as ulong (3.2.10)."""
    _write_keyed(out, value, depth, integers=True)


# Choices, archetypes and multiples ---------------------------------------------------------------


def restricted(name: str, source: str) -> Callable[[type[E]], type[E]]:
    """Make an IntEnum the closed set of a restricted type: other values are ``amqp:invalid-field`` (1.4)."""

    def decorate(cls: type[E]) -> type[E]:
        members = {int(member): member for member in cls}
        base = WRITERS[source]

        def reader(read: Reader) -> Reader:
            def read_choice(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
                number, pos = read(buf, pos, budget)
                member = members.get(number)
                if member is None:
                    raise InvalidFieldError(f"{number} is no {name}")
                return member, pos

            return read_choice

        def write(out: bytearray, value: Any, depth: int) -> None:
            if not isinstance(value, int) or value.__class__ is bool or value not in members:
                raise LocalProtocolError(f"{value!r} is no {name}")
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
    """Any type that provides ``name``: composites that say so, and the given primitive types (1.3).

    A described value that no registry knows passes as ``Described``: it may provide the archetype in
    a specification that we have not read, so its user decides. ``*`` as source lets everything pass.
    """
    anything = "*" in sources
    readers = dict(enumerate(TABLE)) if anything else _readers(*sources)
    readers.pop(codes.NULL, None)
    choices = [(_PYTHON[source], WRITERS[source]) for source in sources if not anything]

    def read(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        value, pos = TABLE[codes.DESCRIBED](buf, pos, budget)
        plan = getattr(value.__class__, "__amqp__", None)
        if plan is not None and name not in plan.provides:
            raise InvalidFieldError(f"{plan.name} provides no {name}")
        return value, pos

    def write(out: bytearray, value: Any, depth: int) -> None:
        cls = value.__class__
        plan = getattr(cls, "__amqp__", None)
        if plan is not None and name not in plan.provides and not anything:
            raise LocalProtocolError(f"{plan.name} provides no {name}")
        if anything or plan is not None or cls is Described or hasattr(cls, "__amqp_encode__"):
            return write_value(out, value, depth)
        for python, writer in choices:
            if isinstance(value, python) and cls is not bool:
                return writer(out, value, depth)
        raise LocalProtocolError(f"{value!r} is no {name}")

    if not anything:
        readers[codes.DESCRIBED] = read
    return FieldType("*", readers, write, name)


def multiple_of(base: FieldType, mandatory: bool) -> FieldType:
    """Zero or more of ``base``, read as a tuple: null, one value, or an array of them (1.4).

    Arrays are written for two and more. A single value goes as itself, which every peer reads,
    except where the field is mandatory: there (the SASL mechanisms) peers look for an array alone.
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
                raise InvalidFieldError(f"an array of something else than {base.name}")
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


# Names for annotations: ``incoming_window: uint``. Restricted types follow in ``spec``, capitalised.
# ``int`` and ``float`` are Python's, and mean other types there: the standard's have a trailing ``_``.

MULTIPLE: Final = "multiple"
"""Marks an annotation as zero or more of what it wraps; any iterable of them is taken, or one."""

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
