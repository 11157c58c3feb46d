"""The source of ``trio_amqp10.amqp10.message.header_and_properties_generated``, made from the declarations: ``python -m tests.amqp10.message.header_and_properties_source`` writes it.

Each function there reads or writes the list of one composite field by field, which costs half of what a loop over the
fields of its plan costs. The frequent encodings of a field are in line, the others go through the tables of ``readers``
and ``encode``. The test beside this holds that the module says what the declarations say.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp10 import message
from trio_amqp10.amqp10.spec import messaging as standard
from trio_amqp10.amqp10.wire import codes
from trio_amqp10.amqp10.wire.composite import plan_of
from trio_amqp10.amqp10.wire.readers import SCALARS

if TYPE_CHECKING:
    from trio_amqp10.amqp10.wire.composite_plan import Field, Plan

MODULE: Final = Path(message.__file__).with_name("header_and_properties_generated.py")
CODES: Final = {
    value: name for name, value in vars(codes).items() if name.isupper() and isinstance(value, int)
}


def types(field: Field) -> list[str]:
    """The scalar types that a field may have: more than one for an id."""
    return sorted({codes.ENCODINGS[code].type for code in field.readers if code in SCALARS} - {"null"})


HEAD = '''\
"""Generated readers and writers of header and properties (3.2.1, 3.2.4).

``python -m tests.amqp10.message.header_and_properties_source`` writes this module from the declarations in
``spec.messaging``: change those, or that program, but not this module. A function knows only the usual shape and
returns None for any other; then the general codec decides whether that is an error, and which. Tests check that
both give the same result.

=========  =========================================================================================
reads      a ``list8`` whose fields are null or scalars of the field's own type, from the ``00`` of
           the section to the end that its size defines. The result is that of ``decode``, filled
           up with None: free values remember their wire type
writes     a ``list8`` of checked fields, with its descriptor before it; no octets if all
           fields are None
=========  =========================================================================================
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from trio_amqp10.amqp10.wire.codes import ({codes})
from trio_amqp10.amqp10.wire.decode_budget import NO_BUDGET
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.readers import SCALARS
from trio_amqp10.amqp10.wire.shortcut_memos import (
    ENCODED_STRINGS,
    ENCODED_SYMBOLS,
    READ_FAULTS,
    STRING_HEADS,
    SYMBOLS,
    WRITE_FAULTS,
    encoder,
)
from trio_amqp10.amqp10.wire.values import ULong

_new_int: Final[Any] = int.__new__
_unpack_ulong: Final[Any] = Struct(">Q").unpack_from
_pack_ulong: Final[Any] = Struct(">BQ").pack
'''
READ = '''\


def read_{name}(buf: bytes, start: int, end: int) -> list[Any] | None:
    """Return the fields of the {name} section, or None."""
    if buf[start + 1] != SMALL_ULONG or buf[start + 3] != LIST8:
        return None
{nothing}
    try:
        count = buf[start + 5]
        pos = start + 6
{fields}
    except READ_FAULTS:
        return None
    return [{names}] if pos == end and count <= {most} else None
'''
READ_FIELD = """\
if count > {index}:
    code = buf[pos]
{inlined}\
    else:
        {name}, pos = _{table}_READERS[code](buf, pos + 1, NO_BUDGET)
"""
INLINED = {
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
        {name} = _new_int(ULong, _unpack_ulong(buf, pos + 1)[0])
        pos += 9
""",
}
"""How a field is read whose code is there already, the most frequent codes first."""


def reader(plan: Plan) -> str:
    """The source of a function that reads the list of ``plan``."""
    body = ""
    for index, field in reversed(list(enumerate(plan.fields))):
        own = {code for code in field.readers if code in SCALARS} - {codes.NULL}
        inlined = "    el".join(
            f"if code == {CODES[code]}:\n{text.format(name=field.name)}"
            for code, text in INLINED.items()
            if code in own or code == codes.NULL
        )
        this = READ_FIELD.format(index=index, inlined=f"    {inlined}", name=field.name, table=table(field))
        body = this + indent(body, "    ")
    return READ.format(
        name=plan.cls.__name__.lower(),
        nothing="".join(f"    {field.name}: Any = None\n" for field in plan.fields),
        fields=indent(body, " " * 8),
        names=", ".join(field.name for field in plan.fields),
        most=len(plan.fields),
    )


def table(field: Field) -> str:
    """The name of the table with the readers of a field: one for each set of types."""
    return "ID" if len(types(field)) > 1 else types(field)[0].upper()


def tables(plans: list[Plan]) -> str:
    """The tables themselves."""
    every = {
        table(field): sorted({code for code in field.readers if code in SCALARS} - {codes.NULL})
        for plan in plans
        for field in plan.fields
    }
    return "".join(
        f"_{name}_READERS: Final = {{{', '.join(f'{CODES[code]}: SCALARS[{CODES[code]}]' for code in each)}}}\n"
        for name, each in sorted(every.items())
    )


WRITE = '''\


def write_{name}(fields: list[Any]) -> bytes | None:
    """Return the {name} section of these fields, or None."""
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
    parts[0] = _COUNTS[count]
    octets = b"".join(parts)
    return _{upper}_HEADS[len(octets)] + octets if len(octets) < 256 else None
'''
WRITE_FIELD = """\
if {name} is not None:
{nulls}{value}\
    count = {count}
"""
WRITE_NULLS = """\
    if count != {index}:
        append(_NULLS[{index} - count])
"""
WRITE_ID = """\
    if {name}.__class__ is str:
        octets = {name}.encode()
        append(STRING_HEADS[len(octets)])
        append(octets)
    elif {name}.__class__ is ULong and {name} > 255:
        append(_pack_ulong(ULONG, {name}))
    else:
        append(encode({name}))
"""
REMEMBERED = {"string": "ENCODED_STRINGS", "symbol": "ENCODED_SYMBOLS"}


def writer(plan: Plan) -> str:
    """The source of a function that writes the list of ``plan``, and the octets that it begins with."""
    name = plan.cls.__name__.lower()
    body = ""
    for index, field in enumerate(plan.fields):
        kinds = types(field)
        if len(kinds) > 1:
            value = WRITE_ID.format(name=field.name)
        elif kinds[0] in REMEMBERED:
            value = f"    append({REMEMBERED[kinds[0]]}[{field.name}])\n"
        else:
            value = f"    append(_{kinds[0]}({field.name}))\n"
        nulls = WRITE_NULLS.format(index=index) if index else ""
        body += WRITE_FIELD.format(name=field.name, nulls=nulls, value=value, count=index + 1)
    heads = f"""\
_{name.upper()}_HEADS: Final = [
    bytes((DESCRIBED, SMALL_ULONG, {int(plan.code):#04x}, LIST8, size)) for size in range(256)
]
"""
    function = WRITE.format(
        name=name,
        upper=name.upper(),
        names=", ".join(field.name for field in plan.fields),
        fields=indent(body, " " * 8),
    )
    return heads + function


def source() -> str:
    """All of the module, as it is before the formatter sees it."""
    header, properties = plan_of(standard.Header), plan_of(standard.Properties)
    most = len(properties.fields)
    encoders = sorted(
        {types(field)[0] for field in properties.fields if len(types(field)) == 1} - set(REMEMBERED)
    )
    constants = f"""\
_COUNTS: Final = [bytes((count,)) for count in range({most + 1})]
_NULLS: Final = [bytes((NULL,)) * count for count in range({most})]
"""
    text = "".join(
        (
            *(f"_{kind}: Final = encoder({kind!r})\n" for kind in encoders),
            tables([header, properties]),
            constants,
            reader(header),
            reader(properties),
            "\n\n",
            writer(properties),
        )
    )
    used = sorted(
        set(CODES.values()) & set(re.findall(r"\w+", text)),
        key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)],
    )
    return HEAD.replace("{codes}", ", ".join(used)) + text


def main() -> None:
    """Write the module where it belongs."""
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "-"],
        input=source(),
        capture_output=True,
        text=True,
        check=True,
    )
    MODULE.write_text(done.stdout)


if __name__ == "__main__":
    main()
