"""Values that remember their wire type (1.6)."""

from __future__ import annotations

import copy
import datetime
import json
import math
import pickle
from typing import Any

import pytest

from trio_amqp10.amqp10.wire.values import (
    Array,
    Byte,
    Char,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    ZeroWidthArray,
)
from trio_amqp10.core.errors import LocalProtocolError

INTEGERS = [UByte, UShort, UInt, ULong, Byte, Short, Int, Timestamp]


@pytest.mark.parametrize("cls", INTEGERS)
def test_integer_equals_its_base_and_shows_its_type(cls: Any) -> None:
    value = cls(5)
    assert value == 5
    assert hash(value) == hash(5)
    assert (str(value), f"{value}", repr(value)) == ("5", "5", f"{cls.__name__}(5)")
    assert json.dumps(value) == "5"
    assert type(value + 1) is int
    assert type(copy.copy(value)) is cls
    assert type(pickle.loads(pickle.dumps(value))) is cls


@pytest.mark.parametrize("cls", INTEGERS)
def test_integer_refuses_a_number_when_it_is_out_of_range(cls: Any) -> None:
    assert (cls(cls.MIN), cls(cls.MAX)) == (cls.MIN, cls.MAX)
    for number in (cls.MIN - 1, cls.MAX + 1):
        with pytest.raises(
            LocalProtocolError, match=f"{cls.__name__} holds {cls.MIN} to {cls.MAX}, not {number}"
        ):
            cls(number)


def test_integer_refuses_what_is_no_integer() -> None:
    with pytest.raises(TypeError):
        UInt(1.5)  # type: ignore[arg-type]


def test_symbol_equals_its_text_and_shows_its_type() -> None:
    assert Symbol("a") == "a"
    assert {"a": 1}[Symbol("a")] == 1
    assert (str(Symbol("a")), f"{Symbol('a')}", repr(Symbol("a"))) == ("a", "a", "Symbol('a')")


def test_symbol_refuses_text_when_it_is_not_ascii() -> None:
    with pytest.raises(LocalProtocolError, match="ASCII"):
        Symbol("é")


def test_char_is_one_character() -> None:
    assert Char("€") == "€"
    assert (str(Char("€")), repr(Char("€"))) == ("€", "Char('€')")


@pytest.mark.parametrize("text", ["", "ab", chr(0xD800), chr(0xDFFF)])
def test_char_refuses_text_when_it_is_not_one_character(text: str) -> None:
    with pytest.raises(LocalProtocolError, match="one Unicode character"):
        Char(text)


def test_float_is_rounded_when_it_is_made() -> None:
    assert Float(0.1) == 0.10000000149011612
    assert (str(Float(0.5)), repr(Float(0.5))) == ("0.5", "Float(0.5)")
    assert math.isnan(Float(math.nan))
    assert Float(math.inf) == math.inf


def test_float_refuses_a_number_when_32_bits_cannot_hold_it() -> None:
    with pytest.raises(LocalProtocolError, match="32-bit"):
        Float(1e300)


def test_timestamp_turns_into_the_datetime_that_it_was_made_of() -> None:
    moment = datetime.datetime(2024, 2, 29, 12, 0, 0, 123000, tzinfo=datetime.UTC)
    assert Timestamp.from_datetime(moment) == 1_709_208_000_123
    assert Timestamp(1_709_208_000_123).to_datetime() == moment
    assert Timestamp(-1).to_datetime() == datetime.datetime(
        1969, 12, 31, 23, 59, 59, 999000, tzinfo=datetime.UTC
    )


def test_timestamp_minds_the_time_zone_and_drops_microseconds() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    assert Timestamp.from_datetime(datetime.datetime(1970, 1, 1, 2, 0, 0, 1999, tzinfo=zone)) == 1


def test_timestamp_refuses_a_datetime_when_it_is_naive() -> None:
    with pytest.raises(LocalProtocolError, match="time zone"):
        Timestamp.from_datetime(datetime.datetime(2024, 1, 1))  # noqa: DTZ001  # the point of the test


def test_timestamp_overflows_when_a_datetime_cannot_tell_it() -> None:
    with pytest.raises(OverflowError):
        Timestamp(2**62).to_datetime()


def test_described_compares_and_hashes_by_both_parts() -> None:
    assert Described("a", 1) == Described("a", 1)
    assert Described("a", 1) != Described("b", 1)
    assert Described("a", 1) != Described("a", 2)
    assert Described("a", 1) != 1
    assert len({Described("a", 1), Described("a", 1)}) == 1
    assert repr(Described(5, [1])) == "Described(ULong(5), [1])"
    with pytest.raises(TypeError):
        hash(Described("a", []))


def test_described_reads_a_plain_descriptor_as_symbol_or_ulong() -> None:
    assert type(Described("a", None).descriptor) is Symbol
    assert type(Described(5, None).descriptor) is ULong
    assert Described(None, None).descriptor is None
    assert type(Array([], "int", ["a"]).descriptor) is Symbol
    assert type(ZeroWidthArray(0x40, 1, [5]).descriptors[0]) is ULong


def test_array_equals_the_plain_list_and_shows_its_type() -> None:
    array = Array([1, 2], "ubyte", ["d"])
    assert array == [1, 2]
    assert repr(array) == "Array([1, 2], 'ubyte', (Symbol('d'),))"
    assert repr(Array([1], "long")) == "Array([1], 'long')"
    assert array.descriptor == "d"
    assert Array([], "int").descriptor is None


def test_array_takes_the_type_of_its_first_element_when_none_is_given() -> None:
    assert Array([UInt(1)]).type == "uint"
    assert Array(["a"]).type == "string"
    assert Array([Array([1])]).type == "array"


@pytest.mark.parametrize(
    ("items", "kind"), [([], None), ([object()], None), ([None], None), ([1], "null"), ([1], "x")]
)
def test_array_is_refused_when_its_elements_have_no_type(items: list[Any], kind: str | None) -> None:
    with pytest.raises(LocalProtocolError, match="needs the type of its elements"):
        Array(items, kind)


def test_zero_width_array_expands_when_asked() -> None:
    assert ZeroWidthArray(0x41, 3).expand() == [True, True, True]
    assert [type(each) for each in ZeroWidthArray(0x43, 2).expand()] == [UInt, UInt]
    first, second = ZeroWidthArray(0x45, 2).expand()
    assert first is not second
    assert len(ZeroWidthArray(0x40, 2**32 - 1)) == 2**32 - 1


def test_zero_width_array_refuses_to_expand_beyond_a_limit() -> None:
    with pytest.raises(LocalProtocolError, match="more than the 65536"):
        ZeroWidthArray(0x40, 65_537).expand()
    assert ZeroWidthArray(0x40, 5).expand(limit=5) == [None] * 5


def test_zero_width_array_refuses_a_constructor_whose_values_take_octets() -> None:
    with pytest.raises(LocalProtocolError, match="use Array"):
        ZeroWidthArray(0x50, 1)


def test_zero_width_array_compares_by_code_count_and_descriptors() -> None:
    assert ZeroWidthArray(0x40, 1) == ZeroWidthArray(0x40, 1)
    assert ZeroWidthArray(0x40, 1) != ZeroWidthArray(0x41, 1)
    assert ZeroWidthArray(0x40, 1) != ZeroWidthArray(0x40, 1, ["d"])
    assert ZeroWidthArray(0x40, 1) != [None]
    assert repr(ZeroWidthArray(0x40, 1)) == "ZeroWidthArray(0x40, 1)"
    assert repr(ZeroWidthArray(0x40, 1, ["d"])) == "ZeroWidthArray(0x40, 1, (Symbol('d'),))"
    with pytest.raises(TypeError):
        hash(ZeroWidthArray(0x40, 1))


@pytest.mark.parametrize("arguments", [("uint", [1]), ([1], 7), ("uint", "uint")])
def test_array_whose_arguments_are_the_wrong_way_round_is_refused_with_an_example(arguments: Any) -> None:
    with pytest.raises(LocalProtocolError, match=r"elements come first, .*Array\(\[1, 2\], 'ubyte'\)"):
        Array(*arguments)
