"""The straight code of a composite equals its plan, for every field."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.strategies import SCALARS, same
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.wire import codes
from trio_amqp10.wire.composite import composite, plan_of
from trio_amqp10.wire.decode import decode
from trio_amqp10.wire.encode import encode
from trio_amqp10.wire.fields import archetype, binary, string, symbol, timestamp, uint
from trio_amqp10.wire.unrolled import list_reader, list_writer
from trio_amqp10.wire.values import Symbol, Timestamp, ULong

Id = Annotated[Any, archetype("id", "ulong", "uuid", "binary", "string")]


@composite("test:row:list", 0x77)
class Row:
    """One field of each kind that there is straight code for."""

    identity: Id | None = None
    octets: binary | None = None
    text: string | None = None
    name: symbol | None = None
    number: uint | None = None
    moment: timestamp | None = None


PLAN = plan_of(Row)
read, write = list_reader(PLAN), list_writer(PLAN)
IDS = st.one_of([SCALARS[each] for each in ("ulong", "uuid", "binary", "string")])
ROWS = st.tuples(
    *(
        st.none() | each
        for each in (IDS, *(SCALARS[name] for name in ("binary", "string", "symbol", "uint", "timestamp")))
    )
).map(list)


@given(row=ROWS)
def test_list_is_written_as_by_the_plan(row: list[Any]) -> None:
    octets = bytearray()
    PLAN.encode(octets, Row(**{field.name: value for field, value in zip(PLAN.fields, row, strict=True)}), 32)
    written = write(row)
    if any(each is not None for each in row):
        assert written == octets or (written is None and len(octets) > 258)
    else:
        assert written == b""


@given(row=ROWS, before=st.binary(max_size=3), after=st.binary(max_size=3))
def test_list_is_read_as_decoded(row: list[Any], before: bytes, after: bytes) -> None:
    octets = b"\0\x53\x77" + encode(row)
    values = read(before + octets + after, len(before), len(before) + len(octets))
    if octets[3] == codes.LIST8:
        assert values is not None or any(len(encode(each)) > 257 for each in row)
    if values is not None:
        assert same(values, decode(octets, 3)[0])


def test_list_that_ends_early_is_filled_up() -> None:
    assert read(bytes.fromhex("00 53 77 c0 01 00"), 0, 6) == [None] * 6
    assert read(bytes.fromhex("00 53 77 c0 03 01 a1 00"), 0, 8) == ["", None, None, None, None, None]


@pytest.mark.parametrize(
    "octets",
    [
        "c0 08 07 40 40 40 40 40 40 40",  # more fields than there are
        "c0 02 01 41",  # of another type
        "c0 03 01 a3 00",
        "c0 02 02 40",  # fewer octets than fields
        "c0 03 01 40 40",  # more octets than fields
        "c0 04 01 a1 02 61",  # a string that runs on
        "c0 05 01 a1 02 c3 28",  # octets that are no text
        "c0 07 04 40 40 40 a3 01 ff",
        "c0 05 01 80 00 00 00",
        "45",
        "d0 00 00 00 04 00 00 00 00",
        "c1 01 00",
    ],
)
def test_list_of_another_shape_is_not_read(octets: str) -> None:
    buf = bytes.fromhex("00 53 77" + octets)
    assert read(buf, 0, len(buf)) is None


def test_list_under_another_form_of_the_descriptor_is_not_read() -> None:
    buf = bytes.fromhex("00 80 00 00 00 00 00 00 00 77 c0 01 00")
    assert read(buf, 0, len(buf)) is None


@pytest.mark.parametrize(
    "row",
    [
        ["\ud800"],
        ["x" * 256],
        [None, b"x" * 252],
        [None, None, "\ud800"],
        [None, None, None, "é"],
        [None, None, None, None, 2**32],
        [None, None, None, None, None, 2**63],
    ],
)
def test_list_that_is_too_long_or_cannot_be_sent_is_not_written(row: list[Any]) -> None:
    assert write(row + [None] * (6 - len(row))) is None


def test_text_that_comes_again_is_written_as_what_its_field_is() -> None:
    row = [None, None, "same", Symbol("same"), None, Timestamp(5)]
    assert write(row) == write(row) == b"\0\x53\x77" + encode(row)
    with pytest.raises(LocalProtocolError):
        encode([ULong(0), object()])
