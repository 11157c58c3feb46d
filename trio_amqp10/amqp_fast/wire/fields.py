"""Types of fields: integers, strings, bits, tables (RFC 006, 3.1.1, 3.2.3.1).

==========  ===================================  ======================
type        octets                               Python
==========  ===================================  ======================
octet       1                                    int
short       2, network order                     int
long        4, network order                     int
bit         adjacent bits share octets,          bool
            the low bit first
shortstr    1 of length, UTF-8 without NUL       str
longstr     2 of length, any octets              bytes
table       2 of length, then name, letter and   dict
            value of each field
==========  ===================================  ======================

Values in tables: ``S`` text (str), ``I`` a signed integer of 32 bits (int), ``D`` a decimal (Decimal), ``T`` seconds since 1970
in 32 bits (datetime in UTC). If a name occurs twice, the first value counts. Text that is not UTF-8 is decoded with
``surrogateescape``, so that it is written as it was read.
"""

from __future__ import annotations

import re
import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.reply_codes import ReplyCodeRfc011

from .faults import ReplyError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NAME: Final = re.compile(r"[A-Za-z$#][A-Za-z0-9$#_]*", re.ASCII)
_NAME_OCTETS: Final = 128
_SHORT: Final = struct.Struct(">H")
_LONG: Final = struct.Struct(">I")
_SIGNED: Final = struct.Struct(">i")
_DECIMAL: Final = struct.Struct(">Bi")


class FieldType(NamedTuple):
    """The codec of one type of field.

    ``read`` takes octets, offset and end; it returns the value and the offset after it. ``write`` appends the encoded value.
    """

    name: str
    read: Callable[[bytes, int, int], tuple[Any, int]]
    write: Callable[[bytearray, Any], None]


def _bad(explanation: str) -> ReplyError:
    return ReplyError(ReplyCodeRfc011.SYNTAX_ERROR, explanation)


def _need(size: int, pos: int, end: int) -> int:
    """Return the offset after ``size`` octets; raise 502 if they are missing."""
    if pos + size > end:
        raise _bad(f"incomplete: {size} octets are needed from octet {pos}, but the data ends at octet {end}")
    return pos + size


def _unsigned(name: str, codec: struct.Struct) -> FieldType:
    def read(buf: bytes, pos: int, end: int) -> tuple[int, int]:
        after = _need(codec.size, pos, end)
        return codec.unpack_from(buf, pos)[0], after

    def write(out: bytearray, value: int) -> None:
        try:
            out += codec.pack(value)
        except struct.error as error:
            raise LocalProtocolError(f"{value!r} does not fit {8 * codec.size} unsigned bits") from error

    return FieldType(name, read, write)


def _read_short_string(buf: bytes, pos: int, end: int) -> tuple[str, int]:
    start = _need(1, pos, end)
    after = _need(buf[pos], start, end)
    octets = buf[start:after]
    if b"\0" in octets:
        raise _bad("a short string must not contain a zero octet")
    return octets.decode("utf-8", "surrogateescape"), after


def _write_short_string(out: bytearray, value: Any) -> None:
    if not isinstance(value, str):
        raise LocalProtocolError(f"a short string must be a str, not {value!r}")
    octets = _octets_of(value)
    if len(octets) > 255 or b"\0" in octets:
        raise LocalProtocolError(f"a short string has at most 255 octets, and none is zero: {value[:300]!r}")
    out.append(len(octets))
    out += octets


def _octets_of(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise LocalProtocolError(f"the text cannot be encoded as UTF-8: {error}") from error


def _read_long_string(buf: bytes, pos: int, end: int) -> tuple[bytes, int]:
    start = _need(2, pos, end)
    after = _need(_SHORT.unpack_from(buf, pos)[0], start, end)
    return buf[start:after], after


def _write_long_string(out: bytearray, value: Any) -> None:
    if not isinstance(value, bytes):
        raise LocalProtocolError(f"a long string must be bytes, not {value!r}")
    if len(value) > 0xFFFF:
        raise LocalProtocolError(f"a long string has at most 65535 octets, not {len(value)}")
    out += _SHORT.pack(len(value))
    out += value


def read_table(buf: bytes, pos: int, end: int) -> tuple[dict[str, Any], int]:
    """Decode the table at ``pos``; return it and the offset after it (3.2.3.1).

    Raises:
        ReplyError: 502: the table is incomplete, or a name or a type is invalid.
    """
    start = _need(2, pos, end)
    after = _need(_SHORT.unpack_from(buf, pos)[0], start, end)
    found: dict[str, Any] = {}
    pos = start
    while pos < after:
        name, pos = _read_short_string(buf, pos, after)
        if not _is_name(name):
            raise _bad(f"{name!r} is not a valid field name")
        pos = _need(1, pos, after)
        reader = _READERS.get(buf[pos - 1])
        if reader is None:
            raise _bad(f"the field {name} has the unknown type {buf[pos - 1 : pos]!r}")
        value, pos = reader(buf, pos, after)
        found.setdefault(name, value)
    return found, after


def write_table(out: bytearray, fields: Mapping[str, Any]) -> None:
    """Append an encoded table (3.2.3.1).

    Raises:
        LocalProtocolError: a name or a value is not allowed in tables, or the table exceeds 65535 octets.
    """
    if not hasattr(fields, "items"):
        raise LocalProtocolError(f"a field table must be a mapping, not {fields!r}")
    body = bytearray()
    for name, value in fields.items():
        if not _is_name(name):
            raise LocalProtocolError(f"{name!r} is not a valid field name")
        _write_short_string(body, name)
        _write_value(body, name, value)
    if len(body) > 0xFFFF:
        raise LocalProtocolError(f"a table has at most 65535 octets, not {len(body)}")
    out += _SHORT.pack(len(body))
    out += body


def _is_name(name: object) -> bool:
    return isinstance(name, str) and len(name) <= _NAME_OCTETS and _NAME.fullmatch(name) is not None


def _read_text(buf: bytes, pos: int, end: int) -> tuple[str, int]:
    octets, pos = _read_long_string(buf, pos, end)
    return octets.decode("utf-8", "surrogateescape"), pos


def _read_integer(buf: bytes, pos: int, end: int) -> tuple[int, int]:
    after = _need(4, pos, end)
    return _SIGNED.unpack_from(buf, pos)[0], after


def _read_decimal(buf: bytes, pos: int, end: int) -> tuple[Decimal, int]:
    after = _need(5, pos, end)
    decimals, value = _DECIMAL.unpack_from(buf, pos)
    digits = tuple(map(int, str(abs(value))))
    return Decimal((int(value < 0), digits, -decimals)), after


def _read_time(buf: bytes, pos: int, end: int) -> tuple[datetime, int]:
    after = _need(4, pos, end)
    return datetime.fromtimestamp(_LONG.unpack_from(buf, pos)[0], UTC), after


_READERS: Final[dict[int, Callable[[bytes, int, int], tuple[Any, int]]]] = {
    ord("S"): _read_text,
    ord("I"): _read_integer,
    ord("D"): _read_decimal,
    ord("T"): _read_time,
}


def _write_value(out: bytearray, name: str, value: Any) -> None:
    try:
        if isinstance(value, str | bytes):
            out += b"S"
            _write_long_string(out, value if isinstance(value, bytes) else _octets_of(value))
        elif isinstance(value, int) and not isinstance(value, bool):
            out += b"I" + _SIGNED.pack(value)
        elif isinstance(value, Decimal):
            out += b"D" + _pack_decimal(value)
        elif isinstance(value, datetime) and value.tzinfo is not None:
            out += b"T" + _LONG.pack(int(value.timestamp()))
        else:
            raise LocalProtocolError(f"{name}: a table cannot contain {value!r}")
    except struct.error as error:
        raise LocalProtocolError(f"{name}: {value!r} does not fit 32 bits") from error


def _pack_decimal(value: Decimal) -> bytes:
    if not value.is_finite():
        raise LocalProtocolError(f"a table cannot contain {value!r}")
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    # The length is checked first, so that a huge exponent does not cost time and memory.
    if len(digits) + max(exponent, 0) > 10:
        raise LocalProtocolError(f"{value!r} does not fit 32 bits")
    mantissa = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    return _DECIMAL.pack(max(-exponent, 0), -mantissa if sign else mantissa)


BIT: Final = _unsigned("bit", struct.Struct(">B"))
"""The octet that contains bits; a ``Plan`` packs and unpacks them."""

octet = Annotated[int, _unsigned("octet", struct.Struct(">B"))]
short = Annotated[int, _unsigned("short", _SHORT)]
long = Annotated[int, _unsigned("long", _LONG)]
bit = Annotated[bool, BIT]
shortstr = Annotated[str, FieldType("shortstr", _read_short_string, _write_short_string)]
longstr = Annotated[bytes, FieldType("longstr", _read_long_string, _write_long_string)]
table = Annotated[dict[str, Any], FieldType("table", read_table, write_table)]
