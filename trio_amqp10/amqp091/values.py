"""Values of field tables that remember the letter with which they came (0-9-1, 4.2.5.5).

Each is a subclass that equals its base, so programs need not know them; a table that was read and is written again has
the same octets because of them. Knows no octet.
"""

from __future__ import annotations

__all__ = [
    "Float32",
    "Int8",
    "Int16",
    "Int64",
    "Int64L",
    "LongString",
    "ShortString",
    "Timestamp",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
]


class Int8(int):
    """DeadLetter ``b``."""

    __slots__ = ()


class UInt8(int):
    """DeadLetter ``B``."""

    __slots__ = ()


class Int16(int):
    """DeadLetter ``s``; ``U`` in the strict set."""

    __slots__ = ()


class UInt16(int):
    """DeadLetter ``u``."""

    __slots__ = ()


class UInt32(int):
    """DeadLetter ``i``."""

    __slots__ = ()


class Int64(int):
    """DeadLetter ``l``; ``L`` in the strict set."""

    __slots__ = ()


class Int64L(Int64):
    """A signed integer that came with the letter ``L``, where ``l`` is the usual one."""

    __slots__ = ()


class UInt64(int):
    """DeadLetter ``l`` of the strict set; the other set has no unsigned integers of 64 bits."""

    __slots__ = ()


class Float32(float):
    """DeadLetter ``f``: 32 bits."""

    __slots__ = ()


class Timestamp(int):
    """DeadLetter ``T``: seconds since 1970 that are beyond the years that ``datetime`` has."""

    __slots__ = ()


class ShortString(str):
    """DeadLetter ``s`` of the strict set: at most 255 octets."""

    __slots__ = ()


class LongString(bytes):
    """DeadLetter ``S``, where the octets are no UTF-8; other octets are written with the letter ``x``."""

    __slots__ = ()
