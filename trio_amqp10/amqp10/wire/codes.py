"""The table of encodings: constructor, type, and width (1.6).

``decode`` and ``encode`` interpret the octets after a constructor.
"""

from __future__ import annotations

from typing import Final, NamedTuple

DESCRIBED: Final = 0x00
"""The start of a described value, before its descriptor and constructor (1.2)."""

NULL: Final = 0x40
TRUE: Final = 0x41
FALSE: Final = 0x42
BOOLEAN: Final = 0x56
UBYTE: Final = 0x50
USHORT: Final = 0x60
UINT: Final = 0x70
SMALL_UINT: Final = 0x52
UINT0: Final = 0x43
ULONG: Final = 0x80
SMALL_ULONG: Final = 0x53
ULONG0: Final = 0x44
BYTE: Final = 0x51
SHORT: Final = 0x61
INT: Final = 0x71
SMALL_INT: Final = 0x54
LONG: Final = 0x81
SMALL_LONG: Final = 0x55
FLOAT: Final = 0x72
DOUBLE: Final = 0x82
DECIMAL32: Final = 0x74
DECIMAL64: Final = 0x84
DECIMAL128: Final = 0x94
CHAR: Final = 0x73
TIMESTAMP: Final = 0x83
UUID: Final = 0x98
BINARY8: Final = 0xA0
BINARY32: Final = 0xB0
STRING8: Final = 0xA1
STRING32: Final = 0xB1
SYMBOL8: Final = 0xA3
SYMBOL32: Final = 0xB3
LIST0: Final = 0x45
LIST8: Final = 0xC0
LIST32: Final = 0xD0
MAP8: Final = 0xC1
MAP32: Final = 0xD1
ARRAY8: Final = 0xE0
ARRAY32: Final = 0xF0


class Encoding(NamedTuple):
    """One row of the table (1.6); ``width`` is for the value, or its size and count."""

    type: str
    name: str
    category: str
    width: int


ENCODINGS: Final[dict[int, Encoding]] = {
    NULL: Encoding("null", "", "fixed", 0),
    BOOLEAN: Encoding("boolean", "", "fixed", 1),
    TRUE: Encoding("boolean", "true", "fixed", 0),
    FALSE: Encoding("boolean", "false", "fixed", 0),
    UBYTE: Encoding("ubyte", "", "fixed", 1),
    USHORT: Encoding("ushort", "", "fixed", 2),
    UINT: Encoding("uint", "", "fixed", 4),
    SMALL_UINT: Encoding("uint", "smalluint", "fixed", 1),
    UINT0: Encoding("uint", "uint0", "fixed", 0),
    ULONG: Encoding("ulong", "", "fixed", 8),
    SMALL_ULONG: Encoding("ulong", "smallulong", "fixed", 1),
    ULONG0: Encoding("ulong", "ulong0", "fixed", 0),
    BYTE: Encoding("byte", "", "fixed", 1),
    SHORT: Encoding("short", "", "fixed", 2),
    INT: Encoding("int", "", "fixed", 4),
    SMALL_INT: Encoding("int", "smallint", "fixed", 1),
    LONG: Encoding("long", "", "fixed", 8),
    SMALL_LONG: Encoding("long", "smalllong", "fixed", 1),
    FLOAT: Encoding("float", "ieee-754", "fixed", 4),
    DOUBLE: Encoding("double", "ieee-754", "fixed", 8),
    DECIMAL32: Encoding("decimal32", "ieee-754", "fixed", 4),
    DECIMAL64: Encoding("decimal64", "ieee-754", "fixed", 8),
    DECIMAL128: Encoding("decimal128", "ieee-754", "fixed", 16),
    CHAR: Encoding("char", "utf32", "fixed", 4),
    TIMESTAMP: Encoding("timestamp", "ms64", "fixed", 8),
    UUID: Encoding("uuid", "", "fixed", 16),
    BINARY8: Encoding("binary", "vbin8", "variable", 1),
    BINARY32: Encoding("binary", "vbin32", "variable", 4),
    STRING8: Encoding("string", "str8-utf8", "variable", 1),
    STRING32: Encoding("string", "str32-utf8", "variable", 4),
    SYMBOL8: Encoding("symbol", "sym8", "variable", 1),
    SYMBOL32: Encoding("symbol", "sym32", "variable", 4),
    LIST0: Encoding("list", "list0", "fixed", 0),
    LIST8: Encoding("list", "list8", "compound", 1),
    LIST32: Encoding("list", "list32", "compound", 4),
    MAP8: Encoding("map", "map8", "compound", 1),
    MAP32: Encoding("map", "map32", "compound", 4),
    ARRAY8: Encoding("array", "array8", "array", 1),
    ARRAY32: Encoding("array", "array32", "array", 4),
}

ZERO_WIDTH: Final = frozenset(code for code, row in ENCODINGS.items() if row.width == 0)
"""Constructors without octets after them; an array of them takes no octets."""
