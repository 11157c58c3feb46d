"""Random objects come back as they went; random values raise the declared error or nothing."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass, field
from decimal import Decimal  # noqa: TC003 - annotations are read at run time
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amqp10.wire.strategies import modest_values, texts
from tests.scaled import scaled
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire import fields  # noqa: TC001 - as above
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import Described, Symbol, Timestamp, UByte, ULong
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.typed import REST, Key, Registry

TYPES = Registry()


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(NamedTuple):
    x: int
    y: float = 0.0


@TYPES.composite("test:leaf:list", 0x1_0000_0001)
@dataclass
class Leaf:
    small: fields.ubyte
    big: fields.ulong = 7
    name: str | None = None
    colour: Colour = Colour.RED
    limit: int | None = 5
    flag: bool = False


@TYPES.composite("test:node:map", 0x1_0000_0002, encoding="map", keys="symbol")
@dataclass
class Node:
    key: Annotated[fields.symbol, Key("the-key")]
    leaves: list[Leaf]
    next: Node | Leaf | None = None
    point: Point | None = None
    mode: Literal["a", "b", 1] = "a"
    others: Annotated[dict[str, Any], REST] = field(default_factory=dict)


@dataclass
class Bare:
    when: datetime.datetime
    ids: set[UUID]
    amount: Decimal
    octets: bytes
    table: dict[fields.ulong, tuple[int, str]]
    either: Node | Leaf | list[str] | int | str | None = None
    single: fields.float_ = 0.0


integers = st.integers(-(2**63), 2**64 - 1)
symbols = st.text(st.characters(max_codepoint=127), max_size=8)
leaves = st.builds(
    Leaf,
    st.integers(0, 255),
    st.integers(0, 2**64 - 1),
    st.none() | texts,
    st.sampled_from(Colour),
    st.none() | integers,
    st.booleans(),
)
keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
points = st.builds(Point, integers, st.floats(allow_nan=False))
nodes = st.recursive(
    st.builds(
        Node,
        symbols,
        st.lists(leaves, max_size=2),
        st.none() | leaves,
        st.none() | points,
        st.sampled_from(["a", "b", 1]),
        st.dictionaries(keys, integers | leaves, max_size=2),
    ),
    lambda inner: st.builds(Node, symbols, st.just([]), inner),
    max_leaves=3,
)
moments = st.datetimes(timezones=st.just(datetime.UTC)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
bares = st.builds(
    Bare,
    moments,
    st.sets(st.uuids(), max_size=3),
    st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-(10**9), max_value=10**9),
    st.binary(max_size=8),
    st.dictionaries(st.integers(0, 2**64 - 1), st.tuples(integers, texts), max_size=3),
    st.none() | nodes | leaves | st.lists(texts, max_size=2) | integers | texts,
    st.floats(width=32, allow_nan=False),
)


@settings(max_examples=scaled(150))
@given(leaves | nodes | bares | points)
def test_object_comes_back_from_its_value_and_from_its_octets(obj: Any) -> None:
    value = TYPES.to_value(obj)
    assert TYPES.from_value(type(obj), value) == obj
    octets = encode(value)
    assert TYPES.from_value(type(obj), decode(octets)[0]) == obj
    message = Message.from_payload(TYPES.message(obj).to_payload())
    assert TYPES.read(message, type(obj)) == obj
    if type(obj) in TYPES:
        assert encode(obj) == octets
        assert TYPES.read(message) == obj


DESCRIPTORS = st.sampled_from(
    [ULong(0x1_0000_0001), ULong(0x1_0000_0002), Symbol("test:leaf:list"), Symbol("test:node:map")]
)
NAMES = st.sampled_from(["the-key", "leaves", "next", "point", "mode", "when", "ids", "table", "either"])


def close(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Values that look like ours from outside."""
    lists = st.lists(values, max_size=6)
    maps = st.dictionaries(NAMES, values, max_size=6)
    return st.builds(Described, DESCRIPTORS, lists | maps) | lists | maps


PLAIN = st.sampled_from(
    [None, True, 5, ULong(5), UByte(5), 1.5, "a", Symbol("b"), b"x", Timestamp(2**60), UUID(int=1)]
)
hostile = close(st.recursive(PLAIN, close, max_leaves=5)) | modest_values
ANNOTATIONS = (Leaf, Node, Bare, Point, Node | Leaf | int | None, list[Node | str], dict[str, Leaf], object)


@settings(max_examples=scaled(300))
@given(hostile, st.sampled_from(ANNOTATIONS))
def test_value_of_any_kind_is_the_peers_fault_or_an_object_that_can_be_sent(
    value: Any, annotation: Any
) -> None:
    try:
        found = TYPES.from_value(annotation, value)
    except RemoteProtocolError as error:
        fault = error
    else:
        TYPES.to_value(found, annotation)
        return
    assert (fault.condition, fault.scope) == ("amqp:invalid-field", "link")


@given(leaves, st.data())
def test_octets_that_were_changed_are_the_peers_fault_or_an_object(leaf: Leaf, data: Any) -> None:
    octets = bytearray(encode(leaf))
    octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = TYPES.from_value(Leaf | None, decode(bytes(octets))[0])
    except RemoteProtocolError:
        return
    assert TYPES.from_value(Leaf | None, TYPES.to_value(found)) == found
