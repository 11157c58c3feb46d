"""Encodings of the draft and of the final standard, both ways (D 422-456)."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.amqp10.wire.strategies import modest_values, same
from trio_amqp10.amqp10.draft_2010.encodings import from_draft, to_draft
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.decode_budget import Budget
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.pair_map import PairMap
from trio_amqp10.amqp10.wire.values import (
    Array,
    Decimal128,
    Described,
    Int,
    Symbol,
    UInt,
    ULong,
    ZeroWidthArray,
)
from trio_amqp10.core.errors import RemoteProtocolError


def in_the_draft(value: Any) -> Any:
    """Return a value as the draft carries it: arrays as lists, decimal128 as text."""
    match value:
        case Decimal128():
            return str(value)
        case Array():
            items: Any = [in_the_draft(item) for item in value]
            for descriptor in reversed(value.descriptors):
                items = [described(descriptor, item) for item in items]
            return items
        case ZeroWidthArray():
            items = value.expand()
            for descriptor in reversed(value.descriptors):
                items = [described(descriptor, item) for item in items]
            return items
        case Described():
            return described(value.descriptor, in_the_draft(value.value))
        case list():
            return [in_the_draft(item) for item in value]
        case dict() | PairMap():
            pairs: Any = [(in_the_draft(key), in_the_draft(each)) for key, each in value.items()]
            return pairs
        case _:
            return value


def described(descriptor: Any, value: Any) -> Described:
    made = Described(None, value)
    made.descriptor = in_the_draft(descriptor)
    return made


@given(modest_values)
def test_value_comes_back_from_the_draft_and_its_octets_are_of_the_draft(value: Any) -> None:
    octets = to_draft(encode(value))
    back, end = decode(from_draft(octets, strict=True))
    assert end == len(from_draft(octets))
    expected = in_the_draft(value)
    assert same(in_the_draft(back), expected)


@given(st.binary(max_size=40))
def test_any_octets_are_rewritten_or_refused(octets: bytes) -> None:
    for rewrite in (from_draft, to_draft):
        try:
            made = rewrite(octets)
        except RemoteProtocolError:
            continue
        assert rewrite(made) == made


@pytest.mark.parametrize(
    ("final", "draft"),
    [
        ("43", "7000000000"),
        ("5207", "7000000007"),
        ("44", "800000000000000000"),
        ("5307", "800000000000000007"),
        ("54ff", "71ffffffff"),
        ("55fe", "81fffffffffffffffe"),
        ("5601", "41"),
        ("5600", "42"),
        ("45", "c00100"),
        ("e0020543", "c01a05" + "7000000000" * 5),
    ],
)
def test_form_that_the_draft_has_not_is_widened(final: str, draft: str) -> None:
    assert to_draft(bytes.fromhex(final)).hex() == draft
    assert decode(from_draft(bytes.fromhex(final)))[0] == decode(bytes.fromhex(draft))[0]
    with pytest.raises(RemoteProtocolError, match="in the draft of 2010"):
        from_draft(bytes.fromhex(final), strict=True)


def test_described_array_becomes_a_list_of_described_values() -> None:
    array = Array([1, 2], "uint", ["a:b"])
    back, _ = decode(from_draft(to_draft(encode(array)), strict=True))
    assert back == [Described("a:b", UInt(1)), Described("a:b", UInt(2))]


@pytest.mark.parametrize("text", ["", "hi", "é", "\U0001f600", "x" * 100])
def test_utf16_is_read(text: str) -> None:
    octets = text.encode("utf-16-be")
    assert decode(from_draft(b"\xa2" + bytes((len(octets),)) + octets))[0] == text
    assert decode(from_draft(b"\xb2" + struct.pack(">I", len(octets)) + octets))[0] == text


@pytest.mark.parametrize(
    "octets",
    [
        "a20100",  # half a character
        "a202d800",  # half a pair
        "a20400",  # ends too early
        "70000000",
        "a005",
        "b0000000",
        "c0",
        "d000",
        "c00501",
        "c0020152",
        "c00300" + "4040",
        "e0",
        "e0030152",
        "e00502520101ff",
        "00a30161",
        "94" + "00" * 15,
        "ff",
        "00ff40",
    ],
)
def test_octets_that_are_no_value_are_a_decode_error(octets: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        from_draft(bytes.fromhex(octets))
    assert caught.value.condition == "amqp:decode-error"


@pytest.mark.parametrize("octets", ["5602", "94" + "00" * 15, "45" * 2 + "52", "c0020152"])
def test_octets_that_are_no_value_of_the_final_standard_are_a_decode_error(octets: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        to_draft(bytes.fromhex(octets))
    assert caught.value.condition == "amqp:decode-error"


def test_encoding_of_utf16_is_none_of_the_final_standard() -> None:
    with pytest.raises(RemoteProtocolError, match="constructs no type"):
        to_draft(b"\xa2\x02\x00h")


def test_array_of_very_many_empty_elements_is_too_much() -> None:
    octets = bytes.fromhex("f0000000050fffffff40")
    with pytest.raises(RemoteProtocolError) as caught:
        from_draft(octets)
    assert caught.value.condition == "amqp:resource-limit-exceeded"


def test_descriptors_of_an_array_count_for_each_element() -> None:
    octets = encode(Array([1] * 200, "ubyte", ["a", "b"]))
    with pytest.raises(RemoteProtocolError, match="more values"):
        from_draft(octets, budget=Budget(500))


def test_nesting_is_bounded() -> None:
    with pytest.raises(RemoteProtocolError, match="nested"):
        from_draft(b"\x00" * 100)


def test_decimal_of_16_octets_is_text() -> None:
    number = Decimal128(b"\x30\x40" + bytes(13) + b"\x07")
    assert decode(to_draft(encode(number)))[0] == str(number) == "7"


def test_shorter_lists_and_maps_keep_the_short_form() -> None:
    value = {Symbol("k"): [Int(1), ULong(2)]}
    octets = to_draft(encode(value))
    assert octets[0] == 0xC1
    long = to_draft(encode(["x" * 300, {"a": "y" * 300}]))
    assert long[0] == 0xD0
    assert from_draft(long) == long
