"""Values of field tables that keep their type letter (0-9-1, 4.2.5.5).

Each class is a subclass that equals its base, so programs can ignore it. A table that is read and written again
has the same octets because of these classes.
"""

from __future__ import annotations


class Int8(int):
    """Letter ``b``."""

    __slots__ = ()


class UInt8(int):
    """Letter ``B``."""

    __slots__ = ()


class Int16(int):
    """Letter ``s``; ``U`` in the strict set."""

    __slots__ = ()


class UInt16(int):
    """Letter ``u``."""

    __slots__ = ()


class UInt32(int):
    """Letter ``i``."""

    __slots__ = ()


class Int64(int):
    """Letter ``l``; ``L`` in the strict set."""

    __slots__ = ()


class Int64L(Int64):
    """A signed integer with the letter ``L``, in the set whose usual letter is ``l``."""

    __slots__ = ()


class UInt64(int):
    """Letter ``l`` of the strict set; the usual set has no unsigned 64-bit integers."""

    __slots__ = ()


class Float32(float):
    """Letter ``f``: 32 bits."""

    __slots__ = ()


class Timestamp(int):
    """Letter ``T``: seconds since 1970, for a time after the years of ``datetime``."""

    __slots__ = ()


class ShortString(str):
    """Letter ``s`` of the strict set: at most 255 octets."""

    __slots__ = ()


class LongString(bytes):
    """Letter ``S``, with octets that are not valid UTF-8."""

    __slots__ = ()
