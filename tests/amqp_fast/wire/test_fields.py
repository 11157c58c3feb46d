"""Field tables: what is read, what is refused, what is not written."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.amqp_fast import naive
from trio_amqp10.amqp_fast.wire.faults import ReplyError
from trio_amqp10.amqp_fast.wire.fields import read_table, write_table
from trio_amqp10.core.errors import LocalProtocolError

NAMES = st.from_regex(r"[A-Za-z$#][A-Za-z0-9$#_]{0,20}", fullmatch=True)
INTEGERS = st.integers(-(2**31), 2**31 - 1)
VALUES = st.one_of(
    st.text(max_size=30),
    INTEGERS,
    st.builds(lambda n, places: Decimal(n).scaleb(-places), INTEGERS, st.integers(0, 255)),
    st.integers(0, 2**32 - 1).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)),
)


def table_octets(fields: dict[str, Any]) -> bytes:
    out = bytearray()
    write_table(out, fields)
    return bytes(out)


@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_table_is_read_as_it_was_written(fields: dict[str, Any]) -> None:
    octets = table_octets(fields)
    assert read_table(octets, 0, len(octets)) == (fields, len(octets))
    assert [name for name, _, _ in naive.table(octets[2:])] == list(fields)


def test_table_has_the_first_of_two_fields_of_one_name() -> None:
    octets = bytes.fromhex("000e 0161 49 00000001 0161 49 00000002")
    assert read_table(octets, 0, len(octets))[0] == {"a": 1}


def test_table_keeps_text_that_is_no_utf_8() -> None:
    octets = table_octets({"a": b"\xff"})
    fields, _ = read_table(octets, 0, len(octets))
    assert fields == {"a": "\udcff"}
    assert table_octets(fields) == octets


@pytest.mark.parametrize(
    "octets",
    [
        "00",
        "0003 0161",
        "0002 0161",
        "0003 003145",
        "0004 013149 00",
        "0004 0161 5a 00",
        "0006 0161 49 000000",
        "0007 0161 44 00000000",
        "0006 0161 54 000000",
        "0005 0161 53 0001",
        "0004 0261 0053",
    ],
)
def test_table_is_refused_when_it_is_none(octets: str) -> None:
    data = bytes.fromhex(octets)
    with pytest.raises(ReplyError) as caught:
        read_table(data, 0, len(data))
    assert caught.value.code == 502


@pytest.mark.parametrize(
    "fields",
    [
        {"": 1},
        {"1a": 1},
        {"a" * 129: 1},
        {"a": 2**31},
        {"a": True},
        {"a": None},
        {"a": datetime(2005, 3, 30)},  # noqa: DTZ001
        {"a": datetime(2200, 1, 1, tzinfo=UTC)},
        {"a": Decimal("NaN")},
        {"a": Decimal("1e10")},
        {"a": Decimal(9999999999)},
        {"a": Decimal("1e-256")},
        {"a": "\ud800"},
        {"a": b"x" * 65536},
        {"a": b"x" * 40000, "b": b"x" * 40000},
        {5: "a"},
        "text",
    ],
)
def test_table_is_not_written_when_it_cannot_be_read(fields: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError):
        table_octets(fields)
