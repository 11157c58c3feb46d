"""Random AMQP values of every type, and an equality that minds the type."""

from __future__ import annotations

import struct
import uuid
from typing import Any

from hypothesis import strategies as st

from trio_amqp10.amqp10.wire import codes
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.pair_map import PairMap, simplest
from trio_amqp10.amqp10.wire.values import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
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


def integers(cls: type[Any]) -> st.SearchStrategy[Any]:
    """Of the whole range, and often near the limits of the short encodings."""
    near = [
        number
        for number in (cls.MIN, -129, -128, -1, 0, 127, 128, 255, 256, cls.MAX)
        if cls.MIN <= number <= cls.MAX
    ]
    return (st.sampled_from(near) | st.integers(cls.MIN, cls.MAX)).map(cls)


characters = st.characters(exclude_categories=["Cs"])
texts = st.text(characters, max_size=8) | st.sampled_from(["", "x" * 255, "x" * 256, "é" * 128])
symbols = st.text(st.characters(max_codepoint=127), max_size=8).map(Symbol)
doubles = st.binary(min_size=8, max_size=8).map(lambda octets: struct.unpack(">d", octets)[0]) | st.floats()

SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "ubyte": integers(UByte),
    "ushort": integers(UShort),
    "uint": integers(UInt),
    "ulong": integers(ULong),
    "byte": integers(Byte),
    "short": integers(Short),
    "int": integers(Int),
    "long": st.sampled_from([-(2**63), -129, -128, 0, 127, 128, 2**63 - 1])
    | st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32).map(Float),
    "double": doubles,
    "decimal32": st.binary(min_size=4, max_size=4).map(Decimal32),
    "decimal64": st.binary(min_size=8, max_size=8).map(Decimal64),
    "decimal128": st.binary(min_size=16, max_size=16).map(Decimal128),
    "char": characters.map(Char),
    "timestamp": integers(Timestamp),
    "uuid": st.binary(min_size=16, max_size=16).map(lambda octets: uuid.UUID(bytes=octets)),
    "binary": st.binary(max_size=8) | st.sampled_from([bytes(255), bytes(256)]),
    "string": texts,
    "symbol": symbols,
}

scalars = st.none() | st.one_of(list(SCALARS.values()))
descriptors = symbols | integers(ULong)


PEERS = st.sampled_from(
    [
        *(kind(1) for kind in (bool, int, float, Float, UInt, ULong, Int, UByte, Timestamp)),
        *(kind("k") for kind in (str, Symbol, Char)),
        *(0.0, -0.0, float("nan"), [], [1], [True], {}, {"k": 1}, {Symbol("k"): 1}),
        *(Array([Byte(1)], "byte"), Described("d", 1), Described("d", True), Described("d", [])),
    ]
)
"""Keys of a map that no dict can hold beside each other, or at all."""


def distinct(pairs: list[tuple[Any, Any]]) -> Any:
    """A map of these pairs, the last of identical keys; no filter, for hypothesis would spell out what it drew from."""
    return simplest({encode(key): (key, value) for key, value in pairs}.values())


def containers(values: st.SearchStrategy[Any], longest_chain: int, most: int) -> st.SearchStrategy[Any]:
    """What holds values: elements described up to ``longest_chain`` times, up to ``most`` without octets."""
    lists = st.lists(values, max_size=4)
    maps = st.lists(st.tuples(scalars | PEERS, values), max_size=4).map(distinct)
    chains = st.lists(descriptors, max_size=longest_chain)
    arrays = st.sampled_from(sorted(SCALARS)).flatmap(
        lambda name: st.builds(Array, st.lists(SCALARS[name], max_size=4), st.just(name), chains)
    )
    nested = st.one_of(
        st.builds(Array, st.lists(lists, max_size=3), st.just("list"), chains),
        st.builds(Array, st.lists(maps, max_size=3), st.just("map"), chains),
        st.builds(Array, st.lists(arrays, max_size=3), st.just("array"), chains),
    )
    opaque = st.builds(
        ZeroWidthArray, st.sampled_from(sorted(codes.ZERO_WIDTH)), st.integers(0, most), chains
    )
    return st.one_of(lists, maps, arrays, nested, opaque, st.builds(Described, descriptors, values))


values = st.recursive(scalars, lambda inner: containers(inner, 2, 2**32 - 1), max_leaves=8)

modest_values = st.recursive(scalars, lambda inner: containers(inner, 1, 9), max_leaves=8)
"""For a codec that makes every element of an array, and reads one descriptor of them."""


def same(one: Any, other: Any) -> bool:
    """Equal in value and wire type all the way down, with NaN equal to the NaN of the same bits."""
    if one.__class__ is not other.__class__:
        return False
    if isinstance(one, float):
        return struct.pack(">d", one) == struct.pack(">d", other)
    if isinstance(one, Array) and (one.type != other.type or not same(one.descriptors, other.descriptors)):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, (dict, PairMap)):
        return same(list(one.items()), list(other.items()))
    if isinstance(one, Described):
        return same(one.descriptor, other.descriptor) and same(one.value, other.value)
    if isinstance(one, ZeroWidthArray):
        return (one.code, one.count) == (other.code, other.count) and same(one.descriptors, other.descriptors)
    return bool(one == other)
