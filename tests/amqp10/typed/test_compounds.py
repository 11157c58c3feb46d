"""Annotations of what holds other values, and values of any type."""

from __future__ import annotations

import collections
import datetime
import enum
import uuid
from collections import abc
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.amqp10.wire.fields import Multiple, symbol, uint, ulong
from trio_amqp10.amqp10.wire.pair_map import PairMap
from trio_amqp10.amqp10.wire.values import (
    Array,
    Decimal128,
    Described,
    Symbol,
    Timestamp,
    UInt,
    ULong,
    ZeroWidthArray,
)
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.typed import Registry

TYPES = Registry()


@TYPES.composite("test:point:list", 0x1_0000_0001)
@dataclass
class Point:
    x: int
    y: int


@dataclass
class Bare:
    a: int


class Colour(enum.Enum):
    RED = "red"


class Own:
    """Encodes itself."""

    def __init__(self, octet: int) -> None:
        self.octet = octet

    def __amqp_encode__(self, out: bytearray) -> None:
        if self.octet > 1:
            raise LocalProtocolError("too much")
        out.append(0x41 + self.octet)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, (list, tuple)):
        return one.__class__ is other.__class__ and len(one) == len(other) and all(map(same, one, other))
    return one.__class__ is other.__class__ and bool(one == other)


@pytest.mark.parametrize(
    ("annotation", "obj", "value"),
    [
        (list[ulong], [1, 2], [ULong(1), ULong(2)]),
        (list, [1, "a"], [1, "a"]),
        (abc.Sequence[int], [1], [1]),
        (tuple[ulong, ...], (1, 2), [ULong(1), ULong(2)]),
        (tuple[int, str], (1, "a"), [1, "a"]),
        (tuple[()], (), []),
        (tuple, (1, "a"), [1, "a"]),
        (set[int], {1}, [1]),
        (frozenset[int], frozenset({1}), [1]),
        (abc.Set[int], frozenset({1}), [1]),
        (collections.deque[int], collections.deque([1]), [1]),
        (dict[symbol, ulong], {"a": 1}, {Symbol("a"): ULong(1)}),
        (dict, {"a": 1}, {"a": 1}),
        (abc.Mapping[str, list[int]], {"a": [1]}, {"a": [1]}),
        (collections.OrderedDict[str, int], collections.OrderedDict(a=1), {"a": 1}),
        (list[Point], [Point(1, 2)], [Described(0x1_0000_0001, [1, 2])]),
        (Array[ulong], Array([1, 2], "ulong"), Array([ULong(1), ULong(2)], "ulong")),
        (Multiple[symbol], (), None),
        (Multiple[symbol], ("a",), Symbol("a")),
        (Multiple[symbol], ("a", "b"), Array([Symbol("a"), Symbol("b")], "symbol")),
    ],
)
def test_annotation_is_carried_with_all_that_it_holds_and_comes_back(
    annotation: Any, obj: Any, value: Any
) -> None:
    assert same(TYPES.to_value(obj, annotation), value)
    assert same(TYPES.from_value(annotation, value), obj)


@pytest.mark.parametrize(
    ("annotation", "obj", "value"),
    [
        (list[int], (1, 2), [1, 2]),
        (list[int], {"a": 1}.values(), [1]),
        (tuple[int, str], [1, "a"], [1, "a"]),
        (set[int], [1], [1]),
        (Array[ulong], [1], Array([ULong(1)], "ulong")),
        (Multiple[symbol], None, None),
        (Multiple[symbol], ["a"], Symbol("a")),
    ],
)
def test_other_collection_is_sent_as_well(annotation: Any, obj: Any, value: Any) -> None:
    assert same(TYPES.to_value(obj, annotation), value)


@pytest.mark.parametrize(
    ("annotation", "value", "obj"),
    [
        (list[int], Array([UInt(1)], "uint"), [1]),
        (list[int], ZeroWidthArray(0x40, 0), []),
        (list[Point], Array([[1, 2], [3, 4]], "list", [ULong(0x1_0000_0001)]), [Point(1, 2), Point(3, 4)]),
        (Multiple[symbol], ZeroWidthArray(0x40, 0), ()),
    ],
)
def test_list_is_read_from_an_array(annotation: Any, value: Any, obj: Any) -> None:
    assert same(TYPES.from_value(annotation, value), obj)


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (list[int], "abc", "value: expected a list of an integer, got string 'abc'"),
        (list[int], [1, "x"], "value[1]: expected an integer, got string 'x'"),
        (list[list[int]], [[], [1, None]], "value[1][1]: expected an integer, got null"),
        (
            list[bool],
            ZeroWidthArray(0x41, 9),
            "value: expected a list of boolean, got an array without octets",
        ),
        (set[Any], [[]], "value: an item of this set cannot be hashed"),
        (tuple[int, str], [1], "value: expected a list of 2 elements, got 1"),
        (tuple[int, str], [1, 2], "value[1]: expected string, got long 2"),
        (dict[str, int], [], "value: expected a map, got a list"),
        (dict[str, int], {"a": "x"}, "value['a']: expected an integer, got string 'x'"),
        (dict[str, int], {Symbol("a"): "x"}, "value['a']: expected an integer, got string 'x'"),
        (dict[str, int], {1: 1}, "value[1]: expected string, got long 1"),
        (dict[datetime.timedelta, int], {1: 1, 2: 2}, "value: two keys of this map become one"),
        (dict[list[int], int], {(1,): 1}, "value[(1,)]: expected a list"),
        (dict[list[int], int], PairMap([([1], 1)]), "cannot be hashed: read it as a PairMap"),
        (dict[Any, int], PairMap([(1, 1), (True, 2)]), "become one in a dict, or cannot be hashed"),
        (PairMap[uint, int], [], "value: expected a map, got a list"),
        (PairMap[datetime.timedelta, int], {1: 1, 2: "x"}, "value[2]: expected an integer"),
        (str, PairMap([(1, 1), (True, 2)]), "value: expected string, got a map"),
        (Array[ulong], [ULong(1)], "value: expected an array of ulong, got a list"),
        (Array[ulong], Array([ULong(1)], "ulong", ["a"]), "value: expected an array of ulong, got an array"),
        (Array[ulong], Array([UInt(1)], "uint"), "value[0]: expected ulong, got uint 1"),
        (Multiple[symbol], 1, "value: expected symbol, got long 1"),
        (Multiple[symbol], Array(["a"], "string"), "value[0]: expected symbol, got string 'a'"),
    ],
)
def test_value_that_does_not_fit_is_refused_with_its_path(annotation: Any, value: Any, text: str) -> None:
    types = Registry(TYPES)
    types.adapt(datetime.timedelta, int, lambda _: 0, lambda _: datetime.timedelta(0))
    with pytest.raises(RemoteProtocolError) as caught:
        types.from_value(annotation, value)
    assert text in caught.value.description


EVERY = PairMap([(Symbol("k"), 1), ("k", 2), (UInt(1), 3), (True, 4), ([1], 5)])


@pytest.mark.parametrize(
    "annotation", [PairMap[Any, int], Mapping[Any, int], MutableMapping[Any, Any], PairMap, Any]
)
def test_map_with_keys_that_no_dict_can_hold_is_read_and_sent_whole(annotation: Any) -> None:
    read = TYPES.from_value(annotation, EVERY)
    assert read.__class__ is PairMap
    assert read == EVERY
    assert TYPES.to_value(read, annotation) == EVERY
    assert TYPES.from_value(list[annotation], [EVERY, {"a": 1}]) == [EVERY, {"a": 1}]


def test_pair_map_is_read_where_it_is_asked_for_and_a_dict_elsewhere() -> None:
    assert TYPES.from_value(PairMap[str, int], {"a": 1}).__class__ is PairMap
    for annotation in (dict[str, int], Mapping[str, int], Any):
        assert TYPES.from_value(annotation, {"a": 1}).__class__ is dict
    assert TYPES.from_value(PairMap[Any, int] | int, EVERY) == EVERY
    assert TYPES.from_value(PairMap[Any, int] | int, 5) == 5


def test_map_whose_keys_become_lists_is_sent() -> None:
    value = TYPES.to_value({(1,): 1}, dict[tuple[int, ...], int])
    assert value == PairMap([([1], 1)])
    assert TYPES.from_value(PairMap[tuple[int, ...], int], value) == PairMap([((1,), 1)])


def test_object_whose_keys_become_identical_is_refused() -> None:
    types = Registry(TYPES)
    types.adapt(datetime.timedelta, int, lambda _: 0, lambda _: datetime.timedelta(0))
    pairs = {datetime.timedelta(1): 1, datetime.timedelta(2): 2}
    with pytest.raises(LocalProtocolError, match="two keys of this map become one"):
        types.to_value(pairs, dict[datetime.timedelta, int])


@pytest.mark.parametrize(
    ("annotation", "obj", "text"),
    [
        (list[int], "abc", "value: expected a list of an integer, got str 'abc'"),
        (list[int], 5, "value: expected a list of an integer, got int 5"),
        (list[int], [1, "x"], "value[1]: expected int, got str 'x'"),
        (tuple[int, str], (1,), "value: expected a list of 2 elements, got 1"),
        (tuple[int, str], {1}, "value: expected a list of 2 elements, got set {1}"),
        (tuple[int, str], (1, 2), "value[1]: expected str, got int 2"),
        (dict[str, int], [], "value: expected a map, got list []"),
        (dict[str, int], {"a": "x"}, "value['a']: expected int, got str 'x'"),
        (Array[ulong], {1}, "value: expected an array of ulong, got set {1}"),
        (Array[ulong], [1, -1], "value[1]: expected ulong"),
        (Multiple[symbol], "ab", "value: expected zero or more of symbol, got str 'ab'"),
        (Multiple[symbol], ["a", 1], "value[1]: expected symbol, got int 1"),
    ],
)
def test_object_that_does_not_fit_is_refused_with_its_path(annotation: Any, obj: Any, text: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        TYPES.to_value(obj, annotation)
    assert text in str(caught.value)


@pytest.mark.parametrize("annotation", [Array, Array[list[int]], Array[int | str], Multiple[object]])
def test_array_of_no_single_type_is_a_type_error(annotation: Any) -> None:
    with pytest.raises(TypeError, match=r"elements of an array|type of its elements"):
        TYPES.from_value(annotation, None)


# Any -----------------------------------------------------------------------------------------------

ID = uuid.UUID(int=7)
MOMENT = datetime.datetime(2024, 5, 6, tzinfo=datetime.UTC)
POINT = Described(0x1_0000_0001, [1, 2])


@pytest.mark.parametrize(
    ("obj", "value"),
    [
        (None, None),
        (True, True),
        (5, 5),
        ("a", "a"),
        (b"a", b"a"),
        (bytearray(b"a"), b"a"),
        (1.5, 1.5),
        (ID, ID),
        (UInt(5), UInt(5)),
        (Symbol("a"), Symbol("a")),
        (MOMENT, Timestamp.from_datetime(MOMENT)),
        (Decimal(2), Decimal128.from_decimal(Decimal(2))),
        (Colour.RED, "red"),
        ((1, Point(1, 2)), [1, POINT]),
        ({1}, [1]),
        ({"a": Point(1, 2)}, {"a": POINT}),
        (collections.OrderedDict(a=[Bare(1)]), {"a": [{"a": 1}]}),
        (collections.UserDict({"a": 1}), {"a": 1}),
        (Described("a", Point(1, 2)), Described("a", POINT)),
        (Array([1], "ubyte"), Array([1], "ubyte")),
        (ZeroWidthArray(0x40, 9), ZeroWidthArray(0x40, 9)),
        (Own(0), True),
        (Error(condition="a"), Described(0x1D, [Symbol("a")])),
    ],
)
def test_object_of_no_annotation_is_sent_as_what_it_is(obj: Any, value: Any) -> None:
    sent = TYPES.to_value(obj)
    assert sent.__class__ is value.__class__
    assert sent == value


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (object(), "value: AMQP has no type for a builtins.object"),
        ([1, object], "value[1]: AMQP has no type for a builtins.type"),
        ({"a": {"b": 2**70}}, "value['a']['b']: AMQP has no type for the integer"),
        ("\ud800", "expected text without lone surrogates"),
        (Own(2), "too much"),
        (MOMENT.replace(tzinfo=None), "has no time zone"),
    ],
)
def test_object_that_amqp_does_not_know_is_refused_with_its_path(obj: Any, text: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        TYPES.to_value(obj)
    assert text in str(caught.value)


@pytest.mark.parametrize("annotation", [object, Any])
def test_value_of_any_type_has_known_types_as_objects(annotation: Any) -> None:
    value = {"a": [POINT, Described("test:point:list", [1, 2])], "b": Described("other", POINT), "c": UInt(5)}
    found = TYPES.from_value(annotation, value)
    assert found == {"a": [Point(1, 2)] * 2, "b": Described("other", Point(1, 2)), "c": UInt(5)}
    assert found["c"].__class__ is UInt


def test_reserved_descriptor_is_kept_as_it_came_when_any_type_may_stand() -> None:
    value = Described(None, 5)
    assert TYPES.from_value(object, value) == value


def test_object_nested_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(LocalProtocolError, match="too deeply nested objects"):
        TYPES.to_value(endless)
    with pytest.raises(RemoteProtocolError, match="nested too deeply"):
        TYPES.from_value(object, endless)
