"""IEEE 754-2008 decimals, kept as their bits (1.6.13 to 1.6.15).

The bits are those of the binary integer encoding. This module knows their layout; use ``decimal.Decimal`` for arithmetic.
"""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar, Final, Self

from trio_amqp10.core.errors import LocalProtocolError


class _BinaryInteger:
    """The bits of a decimal of one width.

    Every bit pattern is preserved, canonical or not, and equality is equality of the bits.

    The layout, from the left, is: a sign; then an exponent of ``EXPONENT`` bits and the coefficient. If two ones follow the
    sign, then the exponent follows them, and the lower bits of the coefficient, whose top three bits are 100. If four ones
    follow the sign, the next bit is 0 for infinity and 1 for not-a-number.
    """

    __slots__ = ("bits",)

    WIDTH: ClassVar[int]
    """The number of bits."""
    EXPONENT: ClassVar[int]
    """The number of bits of the exponent."""
    DIGITS: ClassVar[int]
    """The decimal digits of the largest coefficient."""
    BIAS: ClassVar[int]
    """The constant that is added to the exponent of the last digit of the coefficient."""

    def __init__(self, bits: bytes) -> None:
        if len(bits) * 8 != self.WIDTH:
            raise LocalProtocolError(f"{type(self).__name__} has {self.WIDTH // 8} octets, not {len(bits)}")
        self.bits: Final = bytes(bits)

    @classmethod
    def from_decimal(cls, value: Decimal) -> Self:
        """Encode ``value``, with the same exponent if the range allows.

        Raises:
            LocalProtocolError: the value does not fit exactly; round it first.
        """
        sign, digits, exponent = value.as_tuple()
        coefficient = int("".join(map(str, digits)) or "0")
        if isinstance(exponent, str):
            return cls._special(value, sign, exponent, coefficient)
        top = 3 * 2 ** (cls.EXPONENT - 2) - 1
        power = exponent + cls.BIAS
        if coefficient == 0:
            power = min(max(power, 0), top)
        while power < 0 and coefficient % 10 == 0:
            coefficient //= 10
            power += 1
        while len(str(coefficient)) > cls.DIGITS and coefficient % 10 == 0:
            coefficient //= 10
            power += 1
        if 0 <= power - top < cls.DIGITS:
            coefficient *= 10 ** (power - top)
            power = top
        if not 0 <= power <= top or coefficient >= 10**cls.DIGITS:
            raise LocalProtocolError(f"{value} does not fit {cls.__name__} exactly")
        short = cls.WIDTH - 1 - cls.EXPONENT
        if coefficient >> short:
            body = (3 << (cls.WIDTH - 3)) | (power << (short - 2)) | (coefficient & ((1 << (short - 2)) - 1))
        else:
            body = (power << short) | coefficient
        return cls._pack(sign, body)

    @classmethod
    def _special(cls, value: Decimal, sign: int, kind: str, payload: int) -> Self:
        if kind == "F":
            return cls._pack(sign, 0x78 << (cls.WIDTH - 8))
        if payload >= 10 ** (cls.DIGITS - 1):
            raise LocalProtocolError(f"the payload of {value} does not fit {cls.__name__}")
        return cls._pack(sign, ((0x7E if kind == "N" else 0x7C) << (cls.WIDTH - 8)) | payload)

    @classmethod
    def _pack(cls, sign: int, body: int) -> Self:
        return cls((sign << (cls.WIDTH - 1) | body).to_bytes(cls.WIDTH // 8, "big"))

    def to_decimal(self) -> Decimal:
        """Return the number; a coefficient out of range counts as 0 (IEEE 754, 3.5.2)."""
        number = int.from_bytes(self.bits, "big")
        sign = number >> (self.WIDTH - 1)
        short = self.WIDTH - 1 - self.EXPONENT
        head = (number >> (self.WIDTH - 8)) & 0x7F
        if head >> 2 == 0b11110:
            return Decimal("-Infinity" if sign else "Infinity")
        if head >> 2 == 0b11111:
            payload = number & ((1 << (short - 3)) - 1)
            if payload >= 10 ** (self.DIGITS - 1):
                payload = 0
            return Decimal(f"{'-' * sign}{'s' * (head >> 1 & 1)}NaN{payload or ''}")
        if head >> 5 == 0b11:
            power = (number >> (short - 2)) & ((1 << self.EXPONENT) - 1)
            coefficient = (0b100 << (short - 2)) | (number & ((1 << (short - 2)) - 1))
        else:
            power = (number >> short) & ((1 << self.EXPONENT) - 1)
            coefficient = number & ((1 << short) - 1)
        if coefficient >= 10**self.DIGITS:
            coefficient = 0
        return Decimal((sign, _digits(coefficient), power - self.BIAS))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.bits == other.bits

    def __hash__(self) -> int:
        return hash((type(self), self.bits))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(bytes.fromhex({self.bits.hex()!r}))"

    def __str__(self) -> str:
        return str(self.to_decimal())


def _digits(number: int) -> tuple[int, ...]:
    return tuple(map(int, str(number)))


class Decimal32(_BinaryInteger):
    """A decimal of 7 digits (1.6.13)."""

    __slots__ = ()
    WIDTH: ClassVar[int] = 32
    EXPONENT: ClassVar[int] = 8
    DIGITS: ClassVar[int] = 7
    BIAS: ClassVar[int] = 101


class Decimal64(_BinaryInteger):
    """A decimal of 16 digits (1.6.14)."""

    __slots__ = ()
    WIDTH: ClassVar[int] = 64
    EXPONENT: ClassVar[int] = 10
    DIGITS: ClassVar[int] = 16
    BIAS: ClassVar[int] = 398


class Decimal128(_BinaryInteger):
    """A decimal of 34 digits (1.6.15)."""

    __slots__ = ()
    WIDTH: ClassVar[int] = 128
    EXPONENT: ClassVar[int] = 14
    DIGITS: ClassVar[int] = 34
    BIAS: ClassVar[int] = 6176
