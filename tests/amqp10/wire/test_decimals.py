"""Decimals in the binary integer encoding of IEEE 754-2008 (1.6.13 to 1.6.15)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.wire.decimals import Decimal32, Decimal64, Decimal128
from trio_amqp10.core.errors import LocalProtocolError

VECTORS: list[tuple[Any, str, str]] = [
    (Decimal32, "1", "32800001"),
    (Decimal32, "-1.5", "b200000f"),
    (Decimal32, "0", "32800000"),
    (Decimal32, "9999999E+90", "77f8967f"),
    (Decimal32, "1E-101", "00000001"),
    (Decimal32, "Infinity", "78000000"),
    (Decimal32, "-Infinity", "f8000000"),
    (Decimal32, "NaN", "7c000000"),
    (Decimal32, "-NaN5", "fc000005"),
    (Decimal32, "sNaN", "7e000000"),
    (Decimal64, "1", "31c0000000000001"),
    (Decimal64, "9999999999999999E+369", "77fb86f26fc0ffff"),
    (Decimal64, "0.01", "3180000000000001"),
    (Decimal128, "1", "30400000000000000000000000000001"),
    (Decimal128, "-0.3", "b03e0000000000000000000000000003"),
    (Decimal128, "9999999999999999999999999999999999E+6111", "5fffed09bead87c0378d8e63ffffffff"),
]


@pytest.mark.parametrize(("cls", "text", "bits"), VECTORS)
def test_decimal_has_the_bits_of_the_standard(cls: Any, text: str, bits: str) -> None:
    assert cls.from_decimal(Decimal(text)).bits.hex() == bits
    assert str(cls(bytes.fromhex(bits))) == str(Decimal(text))


@pytest.mark.parametrize(
    ("cls", "text", "same"),
    [
        (Decimal32, "1E+96", "1000000E+90"),  # padded to the largest exponent
        (Decimal32, "10E-102", "1E-101"),  # trailing zeros give way at the smallest
        (Decimal32, "123456700E+1", "1234567E+3"),
        (Decimal32, "0E+500", "0E+90"),
        (Decimal32, "0E-500", "0E-101"),
    ],
)
def test_decimal_moves_the_exponent_when_only_that_makes_it_fit(cls: Any, text: str, same: str) -> None:
    assert str(cls.from_decimal(Decimal(text))) == str(Decimal(same))


@pytest.mark.parametrize("text", ["12345678", "1E+97", "1E-102", "NaN1000000"])
def test_decimal_is_refused_when_it_does_not_fit_exactly(text: str) -> None:
    with pytest.raises(LocalProtocolError, match="does not fit"):
        Decimal32.from_decimal(Decimal(text))


@pytest.mark.parametrize("bits", ["6cb89680", "77ffffff"])
def test_decimal_reads_as_zero_when_its_coefficient_is_out_of_range(bits: str) -> None:
    assert Decimal32(bytes.fromhex(bits)).to_decimal().is_zero()


def test_decimal_drops_the_payload_of_a_nan_when_it_is_out_of_range() -> None:
    assert str(Decimal32(bytes.fromhex("7c0fffff"))) == "NaN"


def test_decimal_compares_by_its_bits() -> None:
    one = Decimal32(bytes.fromhex("32800001"))
    assert one == Decimal32.from_decimal(Decimal(1))
    assert one != Decimal32.from_decimal(Decimal("1.0"))
    assert one != Decimal(1)
    assert one != Decimal64.from_decimal(Decimal(1))
    assert len({one, Decimal32(one.bits)}) == 1
    assert repr(one) == "Decimal32(bytes.fromhex('32800001'))"


def test_decimal_refuses_bits_of_another_width() -> None:
    with pytest.raises(LocalProtocolError, match="4 octets, not 8"):
        Decimal32(bytes(8))


@given(st.sampled_from([Decimal32, Decimal64, Decimal128]), st.decimals())
def test_decimal_gives_back_the_number_that_went_in_when_it_fits(cls: Any, number: Decimal) -> None:
    try:
        value = cls.from_decimal(number)
    except LocalProtocolError:
        return
    back = value.to_decimal()
    assert str(back) == str(number) or back == number
    assert back.is_signed() == number.is_signed()


@given(st.sampled_from([Decimal32, Decimal64, Decimal128]), st.binary(min_size=16, max_size=16))
def test_decimal_reads_every_pattern_and_writes_an_equal_number(cls: Any, octets: bytes) -> None:
    number = cls(octets[: cls.WIDTH // 8]).to_decimal()
    assert str(cls.from_decimal(number).to_decimal()) == str(number)
