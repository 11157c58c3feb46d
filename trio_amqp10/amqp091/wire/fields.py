"""Strings, timestamps, field tables and arrays, and their octets (0-9-1, 4.2.5).

There are three sets of type letters. ``USUAL`` is the set of RabbitMQ and the common clients. ``STRICT`` is the
grammar of the specification (4.2.1), which differs in ``s``, ``U``, ``l``, ``L`` and ``x``. ``FIVE`` is the set
of 10.3.

Input is limited before it is read: every length is compared with the octets left, tables nest at most 32 deep,
  and the
tables of one method have at most 4,096 values. A violation is a ``ReplyError`` with code 502. A value that
cannot be written is a ``LocalProtocolError``.
"""

from __future__ import annotations

import re
import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.reply_codes import ReplyCode091

from .faults import ReplyError
from .typed_values import (
    Float32,
    Int8,
    Int16,
    Int64,
    Int64L,
    LongString,
    ShortString,
    Timestamp,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_DEPTH: Final = 32
"""The deepest nesting of tables and arrays, including the outermost."""

MAX_VALUES: Final = 4096
"""The values that all tables of one method or content header may have together."""

_LONG: Final = struct.Struct(">I")
_LATEST: Final = int(datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp())


class Scan:
    """The state while one method is read: the letters, and how many values are left."""

    __slots__ = ("left", "letters")

    def __init__(self, letters: Letters, values: int = MAX_VALUES) -> None:
        self.letters: Letters = letters
        self.left: int = values


class Letters:
    """A set of type letters: a reader for each letter, a writer for each Python type.

    Attributes:
        name: its name in errors.
        names: the pattern for names in a table; None for any name.
    """

    __slots__ = ("name", "names", "readers", "writers")

    def __init__(
        self,
        name: str,
        readers: Mapping[str, _Reader],
        writers: Mapping[type, _Writer],
        names: re.Pattern[str] | None = None,
    ) -> None:
        self.name: str = name
        self.names: Final = names
        self.readers: Final = {ord(letter): reader for letter, reader in readers.items()}
        self.writers: Final = dict(writers)

    def writer_of(self, value: object) -> _Writer:
        """Return the writer for the type of ``value``, or for its nearest base class.

        Raises:
            LocalProtocolError: field tables have no such type.
        """
        for each in type(value).__mro__:
            writer = self.writers.get(each)
            if writer is not None:
                return writer
        raise LocalProtocolError(
            f"a field table cannot contain a {type(value).__name__}, {value!r}: encode it, for example as JSON"
        )


if TYPE_CHECKING:
    _Reader = Callable[[bytes, int, int, Scan, int], tuple[Any, int]]
    _Writer = Callable[[bytearray, Any, Letters, int], None]


def _syntax(explanation: str) -> ReplyError:
    return ReplyError(ReplyCode091.SYNTAX_ERROR, explanation)


def _overrun(pos: int, size: int, end: int) -> ReplyError:
    return _syntax(f"a value of {size} octets at offset {pos}, but the table ends at {end}")


# -- reading --------------------------------------------------------------------------------


def read_table(
    buf: bytes, pos: int, end: int, scan: Scan, depth: int = MAX_DEPTH
) -> tuple[dict[str, Any], int]:
    """Read a field table with its length; return it and its end (4.2.5.5).

    If a name occurs more than once, the first value counts.

    Raises:
        ReplyError: 502; it exceeds the octets left, or something in it is not valid.
    """
    pos, stop = _enter(buf, pos, end, depth)
    table: dict[str, Any] = {}
    names = scan.letters.names
    while pos < stop:
        name, pos = read_short_string(buf, pos, stop)
        if names is not None and not names.fullmatch(name):
            raise _syntax(f"{name!r} is not a valid field name")
        value, pos = _read_value(buf, pos, stop, scan, depth - 1)
        table.setdefault(name, value)
    return table, pos


def _read_array(buf: bytes, pos: int, end: int, scan: Scan, depth: int) -> tuple[list[Any], int]:
    pos, stop = _enter(buf, pos, end, depth)
    array: list[Any] = []
    while pos < stop:
        value, pos = _read_value(buf, pos, stop, scan, depth - 1)
        array.append(value)
    return array, pos


def _enter(buf: bytes, pos: int, end: int, depth: int) -> tuple[int, int]:
    """Return begin and end of the content of a table or an array."""
    if not depth:
        raise _syntax(f"tables nested deeper than {MAX_DEPTH}")
    if pos + 4 > end:
        raise _overrun(pos, 4, end)
    stop = pos + 4 + _LONG.unpack_from(buf, pos)[0]
    if stop > end:
        raise _overrun(pos, stop - pos, end)
    return pos + 4, stop


def _read_value(buf: bytes, pos: int, end: int, scan: Scan, depth: int) -> tuple[Any, int]:
    if pos >= end:
        raise _overrun(pos, 1, end)
    if not scan.left:
        raise _syntax(f"more than {MAX_VALUES} values in the tables of one method")
    scan.left -= 1
    reader = scan.letters.readers.get(buf[pos])
    if reader is None:
        raise _syntax(f"unknown type {bytes(buf[pos : pos + 1])!r} of a value at offset {pos}")
    return reader(buf, pos + 1, end, scan, depth)


def read_short_string(buf: bytes, pos: int, end: int) -> tuple[str, int]:
    """Read a short string (4.2.5.3); octets that are not UTF-8 become lone surrogates.

    Raises:
        ReplyError: 502; it exceeds the octets left, or contains a NUL.
    """
    if pos >= end:
        raise _overrun(pos, 1, end)
    stop = pos + 1 + buf[pos]
    if stop > end:
        raise _overrun(pos, stop - pos, end)
    octets = buf[pos + 1 : stop]
    if 0 in octets:
        raise _syntax(f"a NUL in the short string at offset {pos}")
    return octets.decode("utf-8", "surrogateescape"), stop


def _read_octets(buf: bytes, pos: int, end: int, _scan: Scan, _depth: int) -> tuple[bytes, int]:
    if pos + 4 > end:
        raise _overrun(pos, 4, end)
    stop = pos + 4 + _LONG.unpack_from(buf, pos)[0]
    if stop > end:
        raise _overrun(pos, stop - pos, end)
    return bytes(buf[pos + 4 : stop]), stop


def _read_text(buf: bytes, pos: int, end: int, scan: Scan, depth: int) -> tuple[str | LongString, int]:
    octets, pos = _read_octets(buf, pos, end, scan, depth)
    try:
        return octets.decode(), pos
    except UnicodeDecodeError:
        return LongString(octets), pos


def _read_short_text(buf: bytes, pos: int, end: int, _scan: Scan, _depth: int) -> tuple[ShortString, int]:
    text, pos = read_short_string(buf, pos, end)
    return ShortString(text), pos


def _read_void(_buf: bytes, pos: int, _end: int, _scan: Scan, _depth: int) -> tuple[None, int]:
    return None, pos


def _fixed(form: str, make: Callable[..., Any]) -> _Reader:
    codec = struct.Struct(">" + form)
    size = codec.size

    def read(buf: bytes, pos: int, end: int, _scan: Scan, _depth: int) -> tuple[Any, int]:
        if pos + size > end:
            raise _overrun(pos, size, end)
        return make(*codec.unpack_from(buf, pos)), pos + size

    return read


def from_seconds(seconds: int) -> datetime | Timestamp:
    """Return a timestamp (4.2.5.4) as a time in UTC.

    After the year 9999, where ``datetime`` ends, return the number.
    """
    return datetime.fromtimestamp(seconds, UTC) if seconds <= _LATEST else Timestamp(seconds)


def to_seconds(value: object) -> int:
    """Return a timestamp (4.2.5.4) as whole seconds since 1970.

    Raises:
        LocalProtocolError: a time without a zone, or one outside 64 unsigned bits.
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise LocalProtocolError(f"a timestamp without a time zone: {value}")
        value = int(value.timestamp() // 1)
    if not (isinstance(value, int) and 0 <= value < 1 << 64):
        raise LocalProtocolError(
            f"a timestamp must be a datetime, or whole seconds in 64 unsigned bits, not {value!r}"
        )
    return value


def _decimal(scale: int, digits: int) -> Decimal:
    return Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -scale))


# -- writing --------------------------------------------------------------------------------


def write_table(out: bytearray, table: Mapping[str, Any], letters: Letters, depth: int = MAX_DEPTH) -> None:
    """Write a field table with its length (4.2.5.5).

    Raises:
        LocalProtocolError: a name or a value is not valid in a field table.
    """
    if not hasattr(table, "items"):
        raise LocalProtocolError(f"a field table must be a mapping, not {table!r}")
    start = _reserve(out, depth)
    for name, value in table.items():
        try:
            write_short_string(out, name)
            if letters.names is not None and not letters.names.fullmatch(name):
                raise LocalProtocolError(f"{name!r} is not a valid field name")
            letters.writer_of(value)(out, value, letters, depth - 1)
        except LocalProtocolError as error:
            raise LocalProtocolError(f"the field {name!r}: {error}") from None
    _fill_in(out, start)


def _reserve(out: bytearray, depth: int) -> int:
    if not depth:
        raise LocalProtocolError(f"tables nested deeper than {MAX_DEPTH}")
    out += b"\0\0\0\0"
    return len(out)


def _fill_in(out: bytearray, start: int) -> None:
    _LONG.pack_into(out, start - 4, len(out) - start)


def write_short_string(out: bytearray, text: Any) -> None:
    """Write a short string (4.2.5.3).

    Raises:
        LocalProtocolError: it is not a str, has more than 255 octets, or contains a NUL.
    """
    if not isinstance(text, str):
        raise LocalProtocolError(f"a short string must be a str, not {text!r}")
    octets = _encoded(text, "surrogateescape")
    if len(octets) > 255 or 0 in octets:
        raise LocalProtocolError(f"a short string has at most 255 octets, and no NUL, not {text[:256]!r}")
    out.append(len(octets))
    out += octets


def _encoded(text: str, errors: str = "strict") -> bytes:
    try:
        return text.encode("utf-8", errors)
    except UnicodeEncodeError as error:
        raise LocalProtocolError(f"text that cannot be encoded as UTF-8: {text!r}") from error


def _write_table(out: bytearray, value: Mapping[str, Any], letters: Letters, depth: int) -> None:
    out += b"F"
    write_table(out, value, letters, depth)


def _write_array(out: bytearray, value: list[Any], letters: Letters, depth: int) -> None:
    out += b"A"
    start = _reserve(out, depth)
    for each in value:
        letters.writer_of(each)(out, each, letters, depth - 1)
    _fill_in(out, start)


def _write_bool(out: bytearray, value: bool, _letters: Letters, _depth: int) -> None:
    out += b"t\1" if value else b"t\0"


def _write_void(out: bytearray, _value: None, _letters: Letters, _depth: int) -> None:
    out += b"V"


def _write_time(out: bytearray, value: datetime | int, _letters: Letters, _depth: int) -> None:
    out += b"T" + to_seconds(value).to_bytes(8)


def _write_decimal(out: bytearray, value: Decimal, _letters: Letters, _depth: int) -> None:
    sign, digits, exponent = value.as_tuple()
    if isinstance(exponent, int) and -255 <= exponent <= 10:  # 10 to the power of 10 exceeds 32 bits
        number = int("".join(map(str, digits))) * 10 ** max(exponent, 0) * (-1 if sign else 1)
        if -(1 << 31) <= number < 1 << 31:
            out += b"D" + max(-exponent, 0).to_bytes(1) + number.to_bytes(4, signed=True)
            return
    raise LocalProtocolError(f"a decimal fits 32 bits and has at most 255 places, not {value}")


def _number(letter: str, form: str) -> _Writer:
    codec = struct.Struct(">" + form)
    prefix = letter.encode()

    def write(out: bytearray, value: Any, _letters: Letters, _depth: int) -> None:
        try:
            out += prefix + codec.pack(value)
        except (struct.error, OverflowError) as error:
            raise LocalProtocolError(f"{value!r} does not fit the type {letter} of a field table") from error

    return write


def _octets(letter: bytes) -> _Writer:
    def write(out: bytearray, value: str | bytes, _letters: Letters, _depth: int) -> None:
        octets = _encoded(value) if isinstance(value, str) else bytes(value)
        out += letter + _LONG.pack(len(octets)) + octets

    return write


def _write_short_text(out: bytearray, value: str, _letters: Letters, _depth: int) -> None:
    out += b"s"
    write_short_string(out, value)


def _integer(narrow: _Writer, wide: _Writer) -> _Writer:
    def write(out: bytearray, value: int, letters: Letters, depth: int) -> None:
        (narrow if -(1 << 31) <= value < 1 << 31 else wide)(out, value, letters, depth)

    return write


# -- the sets --------------------------------------------------------------------------------

_READERS: Final[Mapping[str, _Reader]] = {
    "t": _fixed("B", bool),
    "b": _fixed("b", Int8),
    "B": _fixed("B", UInt8),
    "u": _fixed("H", UInt16),
    "I": _fixed("i", int),
    "i": _fixed("I", UInt32),
    "f": _fixed("f", Float32),
    "d": _fixed("d", float),
    "D": _fixed("Bi", _decimal),
    "S": _read_text,
    "A": _read_array,
    "F": read_table,
    "T": _fixed("Q", from_seconds),
    "V": _read_void,
}
"""The readers that ``USUAL`` and ``STRICT`` share."""

_WRITERS: Final[Mapping[type, _Writer]] = {
    bool: _write_bool,
    Int8: _number("b", "b"),
    UInt8: _number("B", "B"),
    UInt16: _number("u", "H"),
    UInt32: _number("i", "I"),
    Float32: _number("f", "f"),
    float: _number("d", "d"),
    Decimal: _write_decimal,
    str: _octets(b"S"),
    LongString: _octets(b"S"),
    list: _write_array,
    tuple: _write_array,
    dict: _write_table,
    datetime: _write_time,
    Timestamp: _write_time,
    type(None): _write_void,
}
"""The writers that ``USUAL`` and ``STRICT`` share."""

_OCTETS = _octets(b"x")
_TEXT = _octets(b"S")

USUAL: Final = Letters(
    "usual",
    {
        **_READERS,
        "s": _fixed("h", Int16),
        "l": _fixed("q", Int64),
        "L": _fixed("q", Int64L),
        "x": _read_octets,
    },
    {
        **_WRITERS,
        int: _integer(_number("I", "i"), _number("l", "q")),
        Int16: _number("s", "h"),
        Int64: _number("l", "q"),
        Int64L: _number("L", "q"),
        UInt64: _number("l", "q"),
        bytes: _OCTETS,
        bytearray: _OCTETS,
    },
)
"""The letters as RabbitMQ reads and writes them."""

STRICT: Final = Letters(
    "strict",
    {
        **_READERS,
        "U": _fixed("h", Int16),
        "s": _read_short_text,
        "L": _fixed("q", Int64),
        "l": _fixed("Q", UInt64),
    },
    {
        **_WRITERS,
        int: _integer(_number("I", "i"), _number("L", "q")),
        Int16: _number("U", "h"),
        Int64: _number("L", "q"),
        UInt64: _number("l", "Q"),
        ShortString: _write_short_text,
        bytes: _TEXT,
        bytearray: _TEXT,
    },
)
"""The letters of the specification's grammar (4.2.1)."""

FIVE: Final = Letters(
    "five",
    {letter: _READERS[letter] for letter in "SIDTF"},
    {
        **{each: _WRITERS[each] for each in (str, LongString, Decimal, dict, datetime, Timestamp)},
        int: _number("I", "i"),
        bytes: _TEXT,
        bytearray: _TEXT,
    },
    names=re.compile(r"[A-Za-z$#][A-Za-z0-9_$#]{0,127}"),
)
"""The five letters of 10.3, and its field names.

A name has up to 128 characters and begins with a letter, ``$`` or ``#``. A bool is written as 0 or 1.
"""
