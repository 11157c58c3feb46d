"""Scalars are read from their octets, in every encoding (1.6.1 to 1.6.21)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.wire import codes, writers
from trio_amqp10.amqp10.wire.decode_budget import NO_BUDGET
from trio_amqp10.amqp10.wire.readers import SCALARS
from trio_amqp10.amqp10.wire.values import (
    Byte,
    Char,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from trio_amqp10.core.errors import RemoteProtocolError

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "ubyte": st.integers(0, 2**8 - 1).map(UByte),
    "ushort": st.integers(0, 2**16 - 1).map(UShort),
    "uint": st.integers(0, 2**32 - 1).map(UInt),
    "ulong": st.integers(0, 2**64 - 1).map(ULong),
    "byte": st.integers(-(2**7), 2**7 - 1).map(Byte),
    "short": st.integers(-(2**15), 2**15 - 1).map(Short),
    "int": st.integers(-(2**31), 2**31 - 1).map(Int),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False, width=32).map(Float),
    "double": st.floats(allow_nan=False),
    "char": st.characters(exclude_categories=["Cs"]).map(Char),
    "timestamp": st.integers(-(2**63), 2**63 - 1).map(Timestamp),
    "uuid": st.uuids(),
    "binary": st.binary(max_size=300),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=300),
    "symbol": st.text(st.characters(max_codepoint=127), max_size=300).map(Symbol),
}


@pytest.mark.parametrize("name", VALUES)
def test_scalar_is_read_as_it_was_written_wherever_it_stands(name: str) -> None:
    @given(VALUES[name], st.binary(max_size=3), st.binary(max_size=3))
    def law(value: Any, before: bytes, behind: bytes) -> None:
        out = bytearray(before)
        writers.SCALARS[name](out, value, 0)
        octets = bytes(out) + behind
        read, end = SCALARS[octets[len(before)]](octets, len(before) + 1, NO_BUDGET)
        assert (read.__class__, read) == (value.__class__, value)
        assert octets[end:] == behind

    law()


@pytest.mark.parametrize(
    ("code", "octets", "value"),
    [
        (codes.BOOLEAN, "00", False),
        (codes.BOOLEAN, "01", True),
        (codes.UINT0, "", UInt(0)),
        (codes.SMALL_UINT, "ff", UInt(255)),
        (codes.ULONG0, "", ULong(0)),
        (codes.SMALL_ULONG, "ff", ULong(255)),
        (codes.SMALL_INT, "ff", Int(-1)),
        (codes.SMALL_LONG, "80", -128),
        (codes.STRING32, "0000000161", "a"),
        (codes.SYMBOL32, "0000000161", Symbol("a")),
        (codes.BINARY32, "0000000100", b"\0"),
        (codes.NULL, "", None),
    ],
)
def test_encoding_that_is_never_written_is_read(code: int, octets: str, value: Any) -> None:
    read, end = SCALARS[code](bytes.fromhex(octets), 0, NO_BUDGET)
    assert (read.__class__, read) == (value.__class__, value)
    assert end == len(octets) // 2


def test_octet_that_is_neither_true_nor_false_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="0x02 is not the octet of a boolean"):
        SCALARS[codes.BOOLEAN](b"\2", 0, NO_BUDGET)
