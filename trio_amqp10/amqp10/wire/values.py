"""Python types for AMQP types, where plain Python has one type for several (1.6).

``None``, ``bool``, ``int`` (long), ``float`` (double), ``str``, ``bytes``, ``list``, ``dict`` and ``uuid.UUID`` are plain. Every
other type is a subclass that equals its base, so ``UInt(5) == 5`` and ``Symbol("a") == "a"``; only decimals are compared by their
bits. The octets of values are in ``encode`` and ``decode``.
"""

from __future__ import annotations

import datetime
import reprlib
import uuid
from operator import index
from struct import Struct
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, SupportsFloat, SupportsIndex, TypeVar

from trio_amqp10.core.errors import LocalProtocolError

from .decimals import Decimal32, Decimal64, Decimal128

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "TYPE_NAMES",
    "Array",
    "Byte",
    "Char",
    "Decimal32",
    "Decimal64",
    "Decimal128",
    "Described",
    "Float",
    "Int",
    "Short",
    "Symbol",
    "Timestamp",
    "UByte",
    "UInt",
    "ULong",
    "UShort",
    "ZeroWidthArray",
]

T = TypeVar("T")


class Symbol(str):
    """A name from a constrained domain, ASCII only (1.6.21).

    Raises:
        LocalProtocolError: the text has other characters.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        if not text.isascii():
            raise LocalProtocolError(f"a symbol is ASCII only, not {text!r}")
        return super().__new__(cls, text)

    def __repr__(self) -> str:
        return f"Symbol({super().__repr__()})"


class Char(str):
    """A single Unicode character (1.6.16).

    Raises:
        LocalProtocolError: the text is not exactly one character, or is a surrogate.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        if len(text) != 1 or "\ud800" <= text <= "\udfff":
            raise LocalProtocolError(f"a char is one Unicode character, not {text!r}")
        return super().__new__(cls, text)

    def __repr__(self) -> str:
        return f"Char({super().__repr__()})"


class _Integer(int):
    """An integer with the range of its AMQP type; arithmetic returns plain integers."""

    __slots__ = ()

    MIN: ClassVar[int]
    MAX: ClassVar[int]

    def __new__(cls, value: SupportsIndex) -> Self:
        number = index(value)
        if not cls.MIN <= number <= cls.MAX:
            raise LocalProtocolError(f"{cls.__name__} holds {cls.MIN} to {cls.MAX}, not {number}")
        return super().__new__(cls, number)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({int.__repr__(self)})"

    def __str__(self) -> str:
        return int.__repr__(self)


class UByte(_Integer):
    """An integer from 0 to 255 (1.6.3)."""

    __slots__ = ()
    MIN: ClassVar[int] = 0
    MAX: ClassVar[int] = 2**8 - 1


class UShort(_Integer):
    """An integer from 0 to 65,535 (1.6.4)."""

    __slots__ = ()
    MIN: ClassVar[int] = 0
    MAX: ClassVar[int] = 2**16 - 1


class UInt(_Integer):
    """An integer from 0 to 2^32 - 1 (1.6.5)."""

    __slots__ = ()
    MIN: ClassVar[int] = 0
    MAX: ClassVar[int] = 2**32 - 1


class ULong(_Integer):
    """An integer from 0 to 2^64 - 1 (1.6.6)."""

    __slots__ = ()
    MIN: ClassVar[int] = 0
    MAX: ClassVar[int] = 2**64 - 1


class Byte(_Integer):
    """An integer from -128 to 127 (1.6.7)."""

    __slots__ = ()
    MIN: ClassVar[int] = -(2**7)
    MAX: ClassVar[int] = 2**7 - 1


class Short(_Integer):
    """An integer from -32,768 to 32,767 (1.6.8)."""

    __slots__ = ()
    MIN: ClassVar[int] = -(2**15)
    MAX: ClassVar[int] = 2**15 - 1


class Int(_Integer):
    """An integer from -2^31 to 2^31 - 1 (1.6.9)."""

    __slots__ = ()
    MIN: ClassVar[int] = -(2**31)
    MAX: ClassVar[int] = 2**31 - 1


_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND: Final = datetime.timedelta(milliseconds=1)


class Timestamp(_Integer):
    """A point in time, in milliseconds since the Unix epoch (1.6.17)."""

    __slots__ = ()
    MIN: ClassVar[int] = -(2**63)
    MAX: ClassVar[int] = 2**63 - 1

    @classmethod
    def from_datetime(cls, moment: datetime.datetime) -> Self:
        """Convert a datetime, rounded down to a millisecond.

        Raises:
            LocalProtocolError: ``moment`` has no time zone, so it is not a point in time.
        """
        if moment.utcoffset() is None:
            raise LocalProtocolError(
                f"{moment!r} has no time zone: give an aware datetime, e.g. datetime.now(timezone.utc)"
            )
        return cls((moment - _EPOCH) // _MILLISECOND)

    def to_datetime(self) -> datetime.datetime:
        """Convert to an aware datetime in UTC.

        Raises:
            OverflowError: the time is outside the years 1 to 9999, the range of a datetime.
        """
        return _EPOCH + int(self) * _MILLISECOND


_F32: Final = Struct(">f")
_F64: Final = Struct(">d")


class Float(float):
    """A 32-bit binary number (1.6.11).

    The value is rounded at construction, so that it equals the received value.

    Raises:
        LocalProtocolError: the number is finite and too large for 32 bits.
    """

    __slots__ = ()

    def __new__(cls, value: SupportsFloat) -> Self:
        number = float(value)
        if number == number:  # Rounding could change the payload of a NaN.
            try:
                (number,) = _F32.unpack(_F32.pack(number))
            except OverflowError:
                raise LocalProtocolError(f"{number!r} does not fit a 32-bit float") from None
        return super().__new__(cls, number)

    def __repr__(self) -> str:
        return f"Float({super().__repr__()})"

    def __str__(self) -> str:
        return float.__repr__(self)


def _descriptor(value: Any) -> Any:
    """Convert a plain str or int to the symbol or ulong of a descriptor (1.2)."""
    if value.__class__ is str:
        return Symbol(value)
    return ULong(value) if value.__class__ is int else value


class Described:
    """A value with a descriptor, which states its meaning (1.2).

    Args:
        descriptor: a Symbol, or a ULong whose upper half is the domain that assigned it; a plain str or int becomes one of these.
            Other values are reserved: they are kept when a peer sends them.
        value: the value that the descriptor applies to.
    """

    __slots__ = ("descriptor", "value")

    def __init__(self, descriptor: Any, value: Any) -> None:
        self.descriptor: Any = _descriptor(descriptor)
        self.value: Any = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Described):
            return NotImplemented
        return bool(self.descriptor == other.descriptor and self.value == other.value)

    def __hash__(self) -> int:
        return hash((Described, self.descriptor, self.value))

    def __repr__(self) -> str:
        return f"Described({self.descriptor!r}, {self.value!r})"


TYPE_NAMES: Final[dict[type, str]] = {
    bool: "boolean",
    UByte: "ubyte",
    UShort: "ushort",
    UInt: "uint",
    ULong: "ulong",
    Byte: "byte",
    Short: "short",
    Int: "int",
    int: "long",
    Float: "float",
    float: "double",
    Decimal32: "decimal32",
    Decimal64: "decimal64",
    Decimal128: "decimal128",
    Char: "char",
    Timestamp: "timestamp",
    uuid.UUID: "uuid",
    bytes: "binary",
    str: "string",
    Symbol: "symbol",
    list: "list",
    dict: "map",
}
"""The standard's name for each Python type; "array" is added below ``Array``."""


class Array(list[T]):
    """A list whose elements all have one AMQP type (1.6.24).

    It equals a plain list of the same elements.

    Args:
        items: the elements. They may be plain values: ``Array([1, 2], "ubyte")``.
        type: the standard's name of the element type; None for the type of the first element.
        descriptors: descriptors of every element, outermost first; ``items`` are the values inside of them.

    Raises:
        LocalProtocolError: there is no such type, or no type and no element.
    """

    __slots__ = ("descriptors", "type")

    def __init__(
        self,
        items: Iterable[T] = (),
        type: str | None = None,  # noqa: A002  # the standard's own word for it
        descriptors: Iterable[Any] = (),
    ) -> None:
        if isinstance(items, str) or type.__class__ not in (str, NoneType):
            raise LocalProtocolError(
                f"Array({reprlib.repr(items)}, {reprlib.repr(type)}): elements come first, then the name of their type, "
                "as in Array([1, 2], 'ubyte')"
            )
        super().__init__(items)
        if type is None:
            if not self:
                raise LocalProtocolError("an empty Array needs the type of its elements: Array([], 'symbol')")
            type = TYPE_NAMES.get(self[0].__class__)  # noqa: A001
        if type not in _ELEMENT_TYPES:
            raise LocalProtocolError(
                f"an Array needs the type of its elements, one of {', '.join(sorted(_ELEMENT_TYPES))}"
            )
        self.type: str = type
        self.descriptors: tuple[Any, ...] = tuple(map(_descriptor, descriptors))

    @property
    def descriptor(self) -> Any:
        """The outermost descriptor of the elements; None without descriptors."""
        return self.descriptors[0] if self.descriptors else None

    def __repr__(self) -> str:
        described = f", {self.descriptors!r}" if self.descriptors else ""
        return f"Array({super().__repr__()}, {self.type!r}{described})"


TYPE_NAMES[Array] = "array"
_ELEMENT_TYPES: Final = frozenset(TYPE_NAMES.values())


class ZeroWidthArray:
    """An array whose elements take no octets, such as a thousand nulls.

    It is kept as element code and count: ten octets can state four thousand million elements, so they are created only by
    ``expand``.

    Args:
        code: the constructor of every element, one of ``codes.ZERO_WIDTH``.
        count: the number of elements, 0 to 2^32 - 1.
        descriptors: descriptors of every element, outermost first.
    """

    __slots__ = ("code", "count", "descriptors")

    def __init__(self, code: int, count: int, descriptors: Iterable[Any] = ()) -> None:
        if code not in _ZERO_WIDTH_VALUES:
            raise LocalProtocolError(f"elements made by constructor {code:#04x} take octets: use Array")
        self.code: Final = code
        self.count: UInt = UInt(count)
        self.descriptors: tuple[Any, ...] = tuple(map(_descriptor, descriptors))

    def __len__(self) -> int:
        return int(self.count)

    def expand(self, limit: int = 65_536) -> list[Any]:
        """Return the elements, without their descriptors.

        Raises:
            LocalProtocolError: there are more than ``limit``.
        """
        if self.count > limit:
            raise LocalProtocolError(f"an array of {self.count} elements, more than the {limit} allowed here")
        value = _ZERO_WIDTH_VALUES[self.code]
        return [[] for _ in range(self.count)] if isinstance(value, list) else [value] * self.count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ZeroWidthArray):
            return NotImplemented
        return (self.code, self.count, self.descriptors) == (other.code, other.count, other.descriptors)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # a descriptor may be unhashable

    def __repr__(self) -> str:
        described = f", {self.descriptors!r}" if self.descriptors else ""
        return f"ZeroWidthArray({self.code:#04x}, {int(self.count)}{described})"


_ZERO_WIDTH_VALUES: Final[dict[int, Any]] = {
    0x40: None,
    0x41: True,
    0x42: False,
    0x43: UInt(0),
    0x44: ULong(0),
    0x45: list[Any](),
}
