"""The type system of part 1, value by value, with every encoding selectable (1.2 to 1.6).

Written for obviousness: a value is ``Typed(type, value)``, and ``Typed(type, value, code)`` forces
the encoding with that format code. Knows neither frames nor performatives, and has no limits.
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class NaiveError(ValueError):
    """These octets, or this value, are not what the standard allows."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A value with its AMQP type; the format code says how it is, or was, encoded and does not count in ``==``.

    The value is a plain one, except: a described type holds ``(descriptor, value)``, a list a tuple
    of Typed, a map a tuple of pairs of Typed (so order and duplicates stay), an array ``Elements``;
    decimals are their raw octets, a timestamp its milliseconds.
    """

    type: str
    value: Any = None
    code: int | None = field(default=None, compare=False)


class Elements(NamedTuple):
    """The inside of an array: the one constructor, its descriptor if any, and the elements."""

    code: int
    items: tuple[Typed, ...]
    descriptor: Typed | None = None


# Figure 1.2 and section 1.6: format code -> type, fixed width, and how struct reads it.
FIXED: dict[int, tuple[str, int, str]] = {
    0x56: ("boolean", 1, ">B"),
    0x50: ("ubyte", 1, ">B"),
    0x60: ("ushort", 2, ">H"),
    0x70: ("uint", 4, ">I"),
    0x52: ("uint", 1, ">B"),
    0x80: ("ulong", 8, ">Q"),
    0x53: ("ulong", 1, ">B"),
    0x51: ("byte", 1, ">b"),
    0x61: ("short", 2, ">h"),
    0x71: ("int", 4, ">i"),
    0x54: ("int", 1, ">b"),
    0x81: ("long", 8, ">q"),
    0x55: ("long", 1, ">b"),
    0x72: ("float", 4, ">f"),
    0x82: ("double", 8, ">d"),
    0x74: ("decimal32", 4, ">4s"),
    0x84: ("decimal64", 8, ">8s"),
    0x94: ("decimal128", 16, ">16s"),
    0x73: ("char", 4, ">4s"),
    0x83: ("timestamp", 8, ">q"),
    0x98: ("uuid", 16, ">16s"),
}
# Nothing follows these constructors: they are the value.
EMPTY: dict[int, tuple[str, Any]] = {
    0x40: ("null", None),
    0x41: ("boolean", True),
    0x42: ("boolean", False),
    0x43: ("uint", 0),
    0x44: ("ulong", 0),
    0x45: ("list", ()),
}
# Format code -> type, and the width of the size (and of the count).
VARIABLE: dict[int, tuple[str, int]] = {
    0xA0: ("binary", 1),
    0xB0: ("binary", 4),
    0xA1: ("string", 1),
    0xB1: ("string", 4),
    0xA3: ("symbol", 1),
    0xB3: ("symbol", 4),
}
COMPOUND: dict[int, tuple[str, int]] = {
    0xC0: ("list", 1),
    0xD0: ("list", 4),
    0xC1: ("map", 1),
    0xD1: ("map", 4),
}
ARRAY: dict[int, int] = {0xE0: 1, 0xF0: 4}

# The constructor taken when the caller names none: the shortest is tried first.
PREFERRED: dict[str, tuple[int, ...]] = {
    "uint": (0x43, 0x52, 0x70),
    "ulong": (0x44, 0x53, 0x80),
    "int": (0x54, 0x71),
    "long": (0x55, 0x81),
    "boolean": (0x41, 0x42),
    "binary": (0xA0, 0xB0),
    "string": (0xA1, 0xB1),
    "symbol": (0xA3, 0xB3),
    "list": (0x45, 0xC0, 0xD0),
    "map": (0xC1, 0xD1),
    "array": (0xE0, 0xF0),
}


null = Typed("null")


def described(descriptor: Typed, value: Typed) -> Typed:
    return Typed("described", (descriptor, value))


def listing(*items: Typed, code: int | None = None) -> Typed:
    return Typed("list", items, code)


def mapping(*pairs: tuple[Typed, Typed], code: int | None = None) -> Typed:
    return Typed("map", pairs, code)


def array(
    element_code: int, *items: Typed, descriptor: Typed | None = None, code: int | None = None
) -> Typed:
    return Typed("array", Elements(element_code, items, descriptor), code)


def compound(code: int, count: int, content: bytes) -> bytes:
    """A list, map or array with this count and content, whether or not they fit each other (1.2.3)."""
    width = ARRAY[code] if code in ARRAY else COMPOUND[code][1]
    number = ">B" if width == 1 else ">I"
    return bytes([code]) + struct.pack(number, width + len(content)) + struct.pack(number, count) + content


# --- encoding ---


def encode(value: Typed) -> bytes:
    """The octets of a value: its constructor, then its body."""
    if value.type == "described":
        descriptor, inner = value.value
        return b"\x00" + encode(descriptor) + encode(inner)
    if value.code is not None:
        return bytes([value.code]) + encode_body(value, value.code)
    codes = (
        PREFERRED.get(value.type) or tuple(c for c, row in FIXED.items() if row[0] == value.type) or (0x40,)
    )
    for code in codes:
        try:
            return bytes([code]) + encode_body(value, code)
        except (NaiveError, struct.error):
            continue
    raise NaiveError(f"no encoding takes {value!r}")


def encode_body(value: Typed, code: int) -> bytes:
    """What follows the constructor ``code``, which an array writes only once."""
    v = value.value
    if code in EMPTY:
        if (value.type, v) != EMPTY[code]:
            raise NaiveError(f"{value!r} is not what {code:#x} stands for")
        return b""
    if code in FIXED:
        return struct.pack(FIXED[code][2], fixed_to_struct(FIXED[code][0], v))
    if code in VARIABLE:
        kind, width = VARIABLE[code]
        octets: bytes = v if kind == "binary" else v.encode("utf-8" if kind == "string" else "ascii")
        return struct.pack(">B" if width == 1 else ">I", len(octets)) + octets
    if code in COMPOUND:
        kind, _ = COMPOUND[code]
        items = list(v) if kind == "list" else [item for pair in v for item in pair]
        return compound(code, len(items), b"".join(encode(item) for item in items))[1:]
    if code in ARRAY:
        return compound(code, len(v.items), encode_elements(v))[1:]
    raise NaiveError(f"no such format code: {code:#x}")


def encode_elements(elements: Elements) -> bytes:
    head = bytes([elements.code])
    if elements.descriptor is not None:
        head = b"\x00" + encode(elements.descriptor) + head
    return head + b"".join(encode_body(item, elements.code) for item in elements.items)


def fixed_to_struct(kind: str, v: Any) -> Any:
    if kind == "boolean":
        return int(v)
    if kind == "char":
        return v.encode("utf-32-be")
    if kind == "uuid":
        return v.bytes
    return v


# --- decoding ---


def decode(buf: bytes) -> tuple[Typed, bytes]:
    """The first value of ``buf``, and the octets after it."""
    code, rest = take(buf, 1)
    if code == b"\x00":
        descriptor, rest = decode(rest)
        inner, rest = decode(rest)
        return described(descriptor, inner), rest
    return decode_body(code[0], rest)


def decode_all(buf: bytes) -> list[Typed]:
    """Every value of ``buf``, which must end where the last one does."""
    values: list[Typed] = []
    while buf:
        value, buf = decode(buf)
        values.append(value)
    return values


def decode_body(code: int, buf: bytes) -> tuple[Typed, bytes]:
    if code in EMPTY:
        kind, v = EMPTY[code]
        return Typed(kind, v, code), buf
    if code in FIXED:
        kind, width, layout = FIXED[code]
        octets, rest = take(buf, width)
        (raw,) = struct.unpack(layout, octets)
        return Typed(kind, fixed_from_struct(kind, raw), code), rest
    if code in VARIABLE:
        kind, width = VARIABLE[code]
        size, rest = take_number(buf, width)
        octets, rest = take(rest, size)
        text = {"binary": "", "string": "utf-8", "symbol": "ascii"}[kind]
        try:
            return Typed(kind, octets.decode(text) if text else octets, code), rest
        except UnicodeDecodeError as error:
            raise NaiveError(f"{kind} is not {text}: {octets!r}") from error
    if code in COMPOUND:
        return decode_compound(code, buf)
    if code in ARRAY:
        return decode_array(code, buf)
    raise NaiveError(f"no such format code: {code:#x}")


def decode_compound(code: int, buf: bytes) -> tuple[Typed, bytes]:
    kind, width = COMPOUND[code]
    size, rest = take_number(buf, width)
    content, rest = take(rest, size)
    count, content = take_number(content, width)
    items = decode_all(content)
    if len(items) != count:
        raise NaiveError(f"{kind} of {count} items holds {len(items)}")
    if kind == "list":
        return Typed("list", tuple(items), code), rest
    if count % 2:
        raise NaiveError(f"map with an odd count of {count} (1.6.23)")
    return Typed("map", tuple(zip(items[::2], items[1::2], strict=True)), code), rest


def decode_array(code: int, buf: bytes) -> tuple[Typed, bytes]:
    width = ARRAY[code]
    size, rest = take_number(buf, width)
    content, rest = take(rest, size)
    count, content = take_number(content, width)
    descriptor = None
    constructor, content = take(content, 1)
    if constructor == b"\x00":
        descriptor, content = decode(content)
        constructor, content = take(content, 1)
    items: list[Typed] = []
    for _ in range(count):
        item, content = decode_body(constructor[0], content)
        items.append(item)
    if content:
        raise NaiveError(f"array holds {len(content)} octets after its {count} elements")
    return Typed("array", Elements(constructor[0], tuple(items), descriptor), code), rest


def fixed_from_struct(kind: str, raw: Any) -> Any:
    if kind == "boolean":
        if raw not in (0, 1):
            raise NaiveError(f"boolean octet {raw:#x} (1.6.2)")
        return bool(raw)
    if kind == "char":
        try:
            return raw.decode("utf-32-be")
        except UnicodeDecodeError as error:
            raise NaiveError(f"not a character: {raw!r} (1.6.16)") from error
    if kind == "uuid":
        return uuid.UUID(bytes=raw)
    return raw


def take(buf: bytes, size: int) -> tuple[bytes, bytes]:
    if len(buf) < size:
        raise NaiveError(f"{size} octets wanted, {len(buf)} there")
    return buf[:size], buf[size:]


def take_number(buf: bytes, width: int) -> tuple[int, bytes]:
    octets, rest = take(buf, width)
    return int.from_bytes(octets, "big"), rest
