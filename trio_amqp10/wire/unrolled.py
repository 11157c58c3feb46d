"""Straight code for a composite that is in every message: its list read, or written, field by field (1.4).

A loop over the fields of a ``Plan`` costs more than the fields themselves. So the source of two functions is
made here from the declaration, and compiled when the module that wants them is imported. Each knows the usual
shape only:

=========  =========================================================================================
reads      a ``list8`` whose fields are null or scalars of the field's own type. The result is what
           ``decode`` makes of it, filled up with None: free values remember their wire type
writes     a ``list8`` of fields that a check has passed already
=========  =========================================================================================

Anything else gives None, and the general codec takes over: it decides whether that is wrong, and how. Without
this file everything works, slower. The tests hold both functions equal to the general ones.

The frequent encodings are inlined; the others that a field may have go through the tables of ``readers`` and
``encode``. Strings and symbols of declared fields are few in practice, and remembered. Ids are not.
"""

from __future__ import annotations

import struct
from textwrap import indent
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError

from . import codes
from .bounded_memo import BoundedMemo
from .encode import WRITERS, encode
from .readers import SCALARS
from .values import Symbol, ULong

if TYPE_CHECKING:
    from collections.abc import Callable

    from .composite_plan import Field, Plan

__all__ = [
    "ENCODED_STRINGS",
    "READ_FAULTS",
    "STRING_HEADS",
    "SYMBOLS",
    "WRITE_FAULTS",
    "list_reader",
    "list_writer",
]

READ_FAULTS: Final = (IndexError, KeyError, UnicodeDecodeError, struct.error, RemoteProtocolError)
"""What a short way of reading meets where octets are not of the usual shape."""

WRITE_FAULTS: Final = (IndexError, UnicodeEncodeError, struct.error, LocalProtocolError)
"""What a short way of writing meets where a value is too long for it, or none that can be sent."""


def _encoder(name: str) -> Callable[[Any], bytes]:
    """The octets of a value of the type ``name``, constructor first."""
    write = WRITERS[name]

    def octets(value: Any) -> bytes:
        out = bytearray()
        write(out, value, 0)
        return bytes(out)

    return octets


ENCODED_STRINGS: Final = BoundedMemo[str, bytes](_encoder("string"))
"""The octets of a string by its text: of addresses, subjects and the keys of maps."""

STRING_HEADS: Final = [bytes((codes.STRING8, size)) for size in range(256)]
"""Constructor and size of a short string, by its size."""

_ENCODED_SYMBOLS: Final = BoundedMemo[str, bytes](_encoder("symbol"))

SYMBOLS: Final = BoundedMemo[bytes, Symbol](lambda octets: Symbol(octets.decode("ascii")))
"""Symbols by their octets, without constructor and size."""


def _types(field: Field) -> list[str]:
    """The scalar types that a field may have: more than one for an id."""
    return sorted({codes.ENCODINGS[code].type for code in field.readers if code in SCALARS} - {"null"})


def _locals(plan: Plan) -> list[str]:
    """What the fields are called in the source, where other names end without an underscore."""
    return [f"{field.name}_" for field in plan.fields]


# Reading ---------------------------------------------------------------------------------------------

_READ: Final = """\
def read(buf, start, end):
    if buf[start + 1] != {descriptor:#x} or buf[start + 3] != {list8:#x}:
        return None
    {nothing} = None
    try:
        count = buf[start + 5]
        pos = start + 6
{fields}
    except READ_FAULTS:
        return None
    return [{names}] if pos == end and count <= {most} else None
"""
_READ_FIELD: Final = """\
if count > {index}:
    code = buf[pos]
{inlined}\
    else:
        {name}, pos = {name}_readers[code](buf, pos + 1, None)
"""
_INLINED: Final = {
    codes.STRING8: """\
        stop = pos + 2 + buf[pos + 1]
        {name} = buf[pos + 2 : stop].decode()
        pos = stop
""",
    codes.SYMBOL8: """\
        stop = pos + 2 + buf[pos + 1]
        {name} = SYMBOLS[buf[pos + 2 : stop]]
        pos = stop
""",
    codes.TRUE: """\
        {name} = True
        pos += 1
""",
    codes.NULL: """\
        pos += 1
""",
    codes.ULONG: """\
        {name} = new_int(ULong, unpack_u64(buf, pos + 1)[0])
        pos += 9
""",
}
"""How a field is read whose code is there already, the most frequent codes first."""
_U64: Final = struct.Struct(">Q")


def list_reader(plan: Plan) -> Callable[[bytes, int, int], list[Any] | None]:
    """A function that reads the list of ``plan`` in its usual shape.

    It takes the octets, where the descriptor's ``00`` is and where the list ends, as its size says. What it
    gives is a value for each field, or None for any other shape.
    """
    names = _locals(plan)
    namespace: dict[str, Any] = {
        "READ_FAULTS": READ_FAULTS,
        "SYMBOLS": SYMBOLS,
        "ULong": ULong,
        "new_int": int.__new__,
        "unpack_u64": _U64.unpack_from,
    }
    body = ""
    for index, (field, name) in reversed(list(enumerate(zip(plan.fields, names, strict=True)))):
        own = {code for code in field.readers if code in SCALARS} - {codes.NULL}
        namespace[f"{name}_readers"] = {code: SCALARS[code] for code in own}
        inlined = "    el".join(
            f"if code == {code:#x}:\n{text.format(name=name)}"
            for code, text in _INLINED.items()
            if code in own or code == codes.NULL
        )
        this = _READ_FIELD.format(index=index, inlined=f"    {inlined}", name=name)
        body = this + indent(body, "    ")
    source = _READ.format(
        descriptor=codes.SMALL_ULONG,
        list8=codes.LIST8,
        nothing=" = ".join(names),
        fields=indent(body, " " * 8),
        names=", ".join(names),
        most=len(names),
    )
    exec(compile(source, f"<reader of {plan.name}>", "exec"), namespace)
    return cast("Callable[[bytes, int, int], list[Any] | None]", namespace["read"])


# Writing ---------------------------------------------------------------------------------------------

_WRITE: Final = """\
def write(fields):
    {names} = fields
    parts = [b""]
    append = parts.append
    count = 0
    try:
{fields}
    except WRITE_FAULTS:
        return None
    if not count:
        return b""
    parts[0] = COUNTS[count]
    octets = b"".join(parts)
    return HEADS[len(octets)] + octets if len(octets) < 256 else None
"""
_WRITE_FIELD: Final = """\
if {name} is not None:
    if count != {index}:
        append(NULLS[{index} - count])
{value}\
    count = {index} + 1
"""
_WRITE_ID: Final = """\
    if {name}.__class__ is str:
        octets = {name}.encode()
        append(STRING_HEADS[len(octets)])
        append(octets)
    elif {name}.__class__ is ULong and {name} > 255:
        append(pack_ulong(ULONG, {name}))
    else:
        append(encode({name}))
"""
_WRITE_ONE: Final = """\
    append({encoder}({name}))
"""
_WRITE_REMEMBERED: Final = """\
    append({encoder}[{name}])
"""
_REMEMBERED: Final = {"string": ENCODED_STRINGS, "symbol": _ENCODED_SYMBOLS}


def list_writer(plan: Plan) -> Callable[[list[Any]], bytes | None]:
    """A function that writes the list of ``plan`` in its short form, descriptor first.

    It takes a value for each field, of the type that the field has; None leaves a field out. What it gives is
    empty where all are None, and None where the list takes more than 255 octets or something cannot be sent.
    """
    namespace: dict[str, Any] = {
        "COUNTS": [bytes((count,)) for count in range(len(plan.fields) + 1)],
        "HEADS": [plan.prefix + bytes((codes.LIST8, size)) for size in range(256)],
        "NULLS": [bytes((codes.NULL,)) * count for count in range(len(plan.fields))],
        "STRING_HEADS": STRING_HEADS,
        "ULONG": codes.ULONG,
        "ULong": ULong,
        "WRITE_FAULTS": WRITE_FAULTS,
        "encode": encode,
        "pack_ulong": struct.Struct(">BQ").pack,
    }
    body = ""
    names = _locals(plan)
    for index, (field, name) in enumerate(zip(plan.fields, names, strict=True)):
        types = _types(field)
        encoder = f"encoded_{types[0]}"
        if len(types) > 1:
            value = _WRITE_ID
        elif types[0] in _REMEMBERED:
            namespace[encoder] = _REMEMBERED[types[0]]
            value = _WRITE_REMEMBERED
        else:
            namespace[encoder] = _encoder(types[0])
            value = _WRITE_ONE
        body += _WRITE_FIELD.format(name=name, index=index, value=value.format(name=name, encoder=encoder))
    source = _WRITE.format(names=", ".join(names), fields=indent(body, " " * 8))
    exec(compile(source, f"<writer of {plan.name}>", "exec"), namespace)
    return cast("Callable[[list[Any]], bytes | None]", namespace["write"])
