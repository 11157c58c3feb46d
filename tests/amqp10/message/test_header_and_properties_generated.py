"""The straight code of header and properties says what their declarations say, and equals their plans for every field."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.amqp10.wire.strategies import SCALARS, same
from trio_amqp10.amqp10.message.header_and_properties_generated import (
    read_header,
    read_properties,
    write_properties,
)
from trio_amqp10.amqp10.spec import messaging as standard
from trio_amqp10.amqp10.wire import codes
from trio_amqp10.amqp10.wire.composite import plan_of
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import Symbol, Timestamp, ULong
from trio_amqp10.core.errors import LocalProtocolError

from .header_and_properties_source import MODULE, source

IDS = st.one_of([SCALARS[each] for each in ("ulong", "uuid", "binary", "string")])
HEADER = [SCALARS[each] for each in ("boolean", "ubyte", "uint", "boolean", "uint")]
PROPERTIES = [
    IDS,
    *(SCALARS[each] for each in ("binary", "string", "string", "string")),
    IDS,
    *(SCALARS[each] for each in ("symbol", "symbol", "timestamp", "timestamp", "string", "uint", "string")),
]
LISTS = {0x70: (HEADER, read_header), 0x73: (PROPERTIES, read_properties)}


def test_module_is_what_the_declarations_make() -> None:
    """In all but layout, which is the formatter's."""
    assert ast.dump(ast.parse(MODULE.read_text())) == ast.dump(ast.parse(source())), (
        "run python -m tests.amqp10.message.header_and_properties_source"
    )


def rows(own: list[Any]) -> st.SearchStrategy[list[Any]]:
    """Some of the fields, from the first on."""
    return st.integers(0, len(own)).flatmap(
        lambda count: st.tuples(*(st.none() | each for each in own[:count])).map(list)
    )


@given(row=st.tuples(*(st.none() | each for each in PROPERTIES)).map(list))
def test_list_is_written_as_by_the_plan(row: list[Any]) -> None:
    plan = plan_of(standard.Properties)
    octets = bytearray()
    plan.encode(
        octets,
        standard.Properties(**{field.name: value for field, value in zip(plan.fields, row, strict=True)}),
        32,
    )
    written = write_properties(row)
    if any(each is not None for each in row):
        assert written == octets or (written is None and len(octets) > 258)
    else:
        assert written == b""


@pytest.mark.parametrize("code", LISTS)
@given(data=st.data(), before=st.binary(max_size=3), after=st.binary(max_size=3))
def test_list_is_read_as_decoded(code: int, data: st.DataObject, before: bytes, after: bytes) -> None:
    own, read = LISTS[code]
    row = data.draw(rows(own))
    octets = bytes((0, 0x53, code)) + encode(row)
    values = read(before + octets + after, len(before), len(before) + len(octets))
    if octets[3] == codes.LIST8:
        assert values is not None or any(len(encode(each)) > 257 for each in row)
    if values is not None:
        assert same(values, decode(octets, 3)[0] + [None] * (len(own) - len(row)))


@pytest.mark.parametrize(
    ("code", "octets"),
    [
        (0x70, "c0 08 07 40 40 40 40 40 40 40"),  # more fields than there are
        (0x73, "c0 0f 0e 40 40 40 40 40 40 40 40 40 40 40 40 40 40"),
        (0x73, "c0 02 01 41"),  # of another type
        (0x70, "c0 03 02 41 41"),
        (0x73, "c0 03 01 a3 00"),
        (0x73, "c0 02 02 40"),  # fewer octets than fields
        (0x73, "c0 03 01 40 40"),  # more octets than fields
        (0x73, "c0 04 01 a1 02 61"),  # a string that runs on
        (0x73, "c0 05 01 a1 02 c3 28"),  # octets that are no text
        (0x73, "c0 0a 07 40 40 40 40 40 40 a3 01 ff"),
        (0x73, "c0 05 01 80 00 00 00"),
        (0x73, "45"),
        (0x73, "d0 00 00 00 04 00 00 00 00"),
        (0x70, "c1 01 00"),
    ],
)
def test_list_of_another_shape_is_not_read(code: int, octets: str) -> None:
    buf = bytes((0, 0x53, code)) + bytes.fromhex(octets)
    assert LISTS[code][1](buf, 0, len(buf)) is None


@pytest.mark.parametrize("code", LISTS)
def test_list_under_another_form_of_the_descriptor_is_not_read(code: int) -> None:
    buf = bytes.fromhex("00 80 00 00 00 00 00 00 00") + bytes((code,)) + bytes.fromhex("c0 01 00")
    assert LISTS[code][1](buf, 0, len(buf)) is None


@pytest.mark.parametrize(
    "row",
    [
        ["\ud800"],
        ["x" * 256],
        [None, b"x" * 252],
        [None, None, "\ud800"],
        [None] * 6 + ["é"],
        [None] * 11 + [2**32],
        [None] * 8 + [2**63],
    ],
)
def test_list_that_is_too_long_or_cannot_be_sent_is_not_written(row: list[Any]) -> None:
    assert write_properties(row + [None] * (13 - len(row))) is None


def test_text_that_comes_again_is_written_as_what_its_field_is() -> None:
    row = [None, None, "same", None, None, None, Symbol("same"), None, Timestamp(5)]
    whole = row + [None] * 4
    assert write_properties(whole) == write_properties(whole) == b"\0\x53\x73" + encode(row)
    with pytest.raises(LocalProtocolError):
        encode([ULong(0), object()])


USUAL = {"string": "a1 01 61", "symbol": "a3 01 61", "binary": "a0 01 61", "boolean": "41", "uint": "43"}
OTHERS = {
    "string": "b1 00 00 00 01 61",
    "symbol": "b3 00 00 00 01 61",
    "binary": "b0 00 00 00 01 61",
    "boolean": "56 00",
    "ubyte": "50 05",
    "uint": "52 05",
    "timestamp": "83 00 00 00 00 00 00 00 05",
}
VALUES: dict[str, Any] = {
    "string": "a",
    "symbol": Symbol("a"),
    "binary": b"a",
    "timestamp": Timestamp(5),
    "uint": 5,
}


def kinds(code: int) -> list[str]:
    """The type of each field; that of an id is a string here."""
    fields = plan_of(standard.Header if code == 0x70 else standard.Properties).fields
    restricted = {"*": "string", "milliseconds": "uint", "sequence-no": "uint"}
    return [restricted.get(field.type, field.type) for field in fields]


@pytest.mark.parametrize("code", LISTS)
@pytest.mark.parametrize("forms", [USUAL, OTHERS, {}])
def test_every_field_is_read_in_each_form_and_as_null(code: int, forms: dict[str, str]) -> None:
    own = kinds(code)
    for count in range(len(own) + 1):
        octets = b"".join(bytes.fromhex(forms.get(kind, "40")) for kind in own[:count])
        buf = bytes((0, 0x53, code, codes.LIST8, len(octets) + 1, count)) + octets
        assert same(LISTS[code][1](buf, 0, len(buf)), decode(buf, 3)[0] + [None] * (len(own) - count))


def test_identifier_is_read_and_written_in_every_form() -> None:
    for place in (0, 5):
        for value in (ULong(0), ULong(255), ULong(256), "a", b"a"):
            row: list[Any] = [None] * 13
            row[place] = value
            octets = write_properties(row)
            assert octets is not None
            assert same(read_properties(octets, 0, len(octets)), row)


def test_every_field_is_written_alone_and_beside_all_others() -> None:
    whole = [VALUES[kind] for kind in kinds(0x73)]
    for row in (whole, *([None] * place + [whole[place]] + [None] * (12 - place) for place in range(13))):
        octets = write_properties(row)
        assert octets is not None
        assert read_properties(octets, 0, len(octets)) == row
