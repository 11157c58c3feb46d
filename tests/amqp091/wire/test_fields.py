"""Field tables: letters, round trips, bounds."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.amqp091 import naive
from tests.engine_pairs import refusal
from trio_amqp10.amqp091.wire import typed_values
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.fields import (
    MAX_VALUES,
    STRICT,
    USUAL,
    Letters,
    Scan,
    from_seconds,
    read_table,
    write_table,
)
from trio_amqp10.core.errors import LocalProtocolError


def encoded(table: dict[str, Any], letters: Letters = USUAL) -> bytes:
    out = bytearray()
    write_table(out, table, letters)
    return bytes(out)


def decoded(octets: bytes, letters: Letters = USUAL) -> dict[str, Any]:
    table, end = read_table(octets, 0, len(octets), Scan(letters))
    assert end == len(octets)
    return table


def integers(kind: type[int], bits: int, signed: bool) -> st.SearchStrategy[int]:
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return st.integers(least, most).map(kind)


names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60)
decimals = st.tuples(st.integers(0, 255), st.integers(-(1 << 31), (1 << 31) - 1)).map(
    lambda row: Decimal((int(row[1] < 0), tuple(map(int, str(abs(row[1])))), -row[0]))
)
common = st.one_of(
    st.booleans(),
    st.none(),
    integers(typed_values.Int8, 8, True),
    integers(typed_values.UInt8, 8, False),
    integers(typed_values.Int16, 16, True),
    integers(typed_values.UInt16, 16, False),
    integers(int, 32, True),
    integers(typed_values.UInt32, 32, False),
    integers(typed_values.Int64, 64, True),
    st.floats(width=32, allow_nan=False).map(typed_values.Float32),
    st.floats(allow_nan=False),
    decimals,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.integers(0, 253_402_300_799).map(from_seconds),
    st.integers(1 << 60, (1 << 64) - 1).map(typed_values.Timestamp),
)
usual = st.one_of(common, st.binary(max_size=30), integers(typed_values.Int64L, 64, True))
strict = st.one_of(common, integers(typed_values.UInt64, 64, False), names.map(typed_values.ShortString))


def tables(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    nested = st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
        max_leaves=12,
    )
    return st.dictionaries(names, nested, max_size=5)


def shown(value: Any) -> Any:
    """A value with its type, so that values which are equal and have other letters differ; plain integers by range."""
    if isinstance(value, dict):
        return [(name, shown(each)) for name, each in value.items()]
    if isinstance(value, list):
        return [shown(each) for each in value]
    return type(value), str(value)


@pytest.mark.parametrize(("letters", "leaves"), [(USUAL, usual), (STRICT, strict)], ids=["usual", "strict"])
def test_tables_round_trip_with_their_types(letters: Letters, leaves: Any) -> None:
    @given(tables(leaves))
    def law(table: dict[str, Any]) -> None:
        octets = encoded(table, letters)
        again = decoded(octets, letters)
        assert shown(again) == shown(table)
        assert encoded(again, letters) == octets
        if letters is USUAL:
            assert [name.decode() for name, _ in naive.table(octets)] == list(table)

    law()


@given(st.binary(max_size=60))
def test_any_octets_are_a_table_or_refused_with_502(octets: bytes) -> None:
    for letters in (USUAL, STRICT):
        fault = refusal(read_table, octets, 0, len(octets), Scan(letters))
        assert fault is None or fault.code == 502


@pytest.mark.parametrize(
    ("value", "octets"),
    [
        (1, b"I\0\0\0\1"),
        (1 << 31, b"l\0\0\0\0\x80\0\0\0"),
        (typed_values.UInt64(5), b"l\0\0\0\0\0\0\0\5"),
        ((1, None), b"A\0\0\0\6I\0\0\0\1V"),
        (bytearray(b"a"), b"x\0\0\0\1a"),
        (typed_values.LongString(b"\xff"), b"S\0\0\0\1\xff"),
        (datetime(1970, 1, 1, 0, 0, 1, 999_999, UTC), b"T\0\0\0\0\0\0\0\1"),
        (Decimal("1E+2"), b"D\0\0\0\0\x64"),
        (Decimal("-1.5"), b"D\1\xff\xff\xff\xf1"),
        (typed_values.ShortString("a"), b"S\0\0\0\1a"),
    ],
    ids=repr,
)
def test_value_is_written_with_its_letter(value: Any, octets: bytes) -> None:
    assert encoded({"k": value})[6:] == octets


def test_strict_letters_differ() -> None:
    row = {"a": 1 << 40, "b": typed_values.Int16(1), "c": b"x"}
    assert [letter for letter in encoded(row, STRICT) if chr(letter) in "lLUusSx"] == list(b"LUSx")
    assert decoded(encoded({"c": b"\xff"}, STRICT), STRICT) == {"c": typed_values.LongString(b"\xff")}
    with pytest.raises(ReplyError, match="unknown type b'x'"):
        decoded(b"\0\0\0\7\1kx\0\0\0\0", STRICT)
    with pytest.raises(ReplyError, match="a value of 1 octets"):
        decoded(b"\0\0\0\3\1ks", STRICT)
    with pytest.raises(ReplyError, match="unknown type b'U'"):
        decoded(b"\0\0\0\5\1kU\0\0")


def test_first_of_equal_names_counts() -> None:
    assert decoded(b"\0\0\0\x08\1kt\1\1kt\0") == {"k": True}


def test_text_that_is_no_utf_8_stays_octets() -> None:
    table = decoded(b"\0\0\0\x08\1kS\0\0\0\1\xff")
    assert type(table["k"]) is typed_values.LongString
    assert decoded(b"\0\0\0\3\1\xffV") == {"\udcff": None}
    assert encoded({"\udcff": None}) == b"\0\0\0\3\1\xffV"


@pytest.mark.parametrize(
    "octets",
    [
        b"\0\0\0",
        b"\0\0\0\1",
        b"\0\0\0\5\1kF\0\0",
        b"\0\0\0\1\1",
        b"\0\0\0\2\1k",
        b"\0\0\0\3\1kI",
        b"\0\0\0\4\1kS\0",
        b"\0\0\0\7\1kS\0\0\0\1",
        b"\0\0\0\4\1kF\0",
        b"\0\0\0\7\1kA\0\0\0\1",
        b"\0\0\0\3\1\0V",
    ],
)
def test_value_that_ends_early_is_refused(octets: bytes) -> None:
    with pytest.raises(ReplyError) as caught:
        decoded(octets)
    assert caught.value.code == 502


@pytest.mark.parametrize("letter", [b"F", b"A"])
def test_depth_is_bounded(letter: bytes) -> None:
    octets = b""
    for _ in range(31):
        octets = b"\1k" * (letter == b"F") + letter + len(octets).to_bytes(4) + octets
        if letter == b"A":
            octets = letter + (len(octets) - 5).to_bytes(4) + octets[5:]
    outer = octets if letter == b"F" else b"\1k" + octets
    decoded(len(outer).to_bytes(4) + outer)
    octets = b"\1k" * (letter == b"F") + letter + len(octets).to_bytes(4) + octets
    outer = octets if letter == b"F" else b"\1k" + octets
    with pytest.raises(ReplyError, match="deeper than 32"):
        decoded(len(outer).to_bytes(4) + outer)


def test_number_of_values_is_bounded() -> None:
    def array(size: int) -> bytes:
        return (7 + size).to_bytes(4) + b"\1kA" + size.to_bytes(4) + b"V" * size

    assert len(decoded(array(MAX_VALUES - 1))["k"]) == MAX_VALUES - 1
    with pytest.raises(ReplyError, match="more than 4096 values"):
        decoded(array(MAX_VALUES))


def test_cycle_is_refused() -> None:
    table: dict[str, Any] = {}
    table["k"] = [table]
    with pytest.raises(LocalProtocolError, match="deeper"):
        encoded(table)


@pytest.mark.parametrize(
    "table",
    [
        {"k": object()},
        {"k": 1 << 63},
        {"k": typed_values.UInt8(256)},
        {"k": typed_values.Float32(1e300)},
        {"k": Decimal(1 << 31)},
        {"k": Decimal("1E-256")},
        {"k": Decimal("1E+11")},
        {"k": Decimal("NaN")},
        {"k": datetime(2020, 1, 1)},  # noqa: DTZ001 - a time without a zone is what is refused
        {"k": datetime(1969, 1, 1, tzinfo=UTC)},
        {"k": typed_values.Timestamp(1 << 64)},
        {"k": "\ud800"},
        {"\ud800": 1},
        {"k" * 256: 1},
        {"\0": 1},
        {1: 1},
    ],
    ids=repr,
)
def test_table_that_cannot_be_written_is_a_local_error(table: Any) -> None:
    with pytest.raises(LocalProtocolError):
        encoded(table)


def test_subclass_is_written_as_the_nearest_type() -> None:
    class Number(int):
        pass

    assert encoded({"k": Number(1)}) == encoded({"k": 1})


class Order:
    """A class of a program, which AMQP does not know."""


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            {"x": Order()},
            "^the field 'x': a field table cannot contain a Order, .*: encode it, for example as JSON$",
        ),
        (
            {"x": {"y": [2**70]}},
            "^the field 'x': the field 'y': 1180591620717411303424 does not fit the type",
        ),
        ({5: 1}, "^the field 5: a short string must be a str, not 5$"),
    ],
)
def test_field_that_cannot_be_written_is_named(table: Any, said: str) -> None:
    with pytest.raises(LocalProtocolError, match=said):
        write_table(bytearray(), table, USUAL)
