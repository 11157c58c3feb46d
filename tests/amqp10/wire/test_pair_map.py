"""Maps with keys that Python cannot tell apart, or cannot hash (1.6.23)."""

from __future__ import annotations

import copy
import datetime
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import codec as naive
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.amqp10.spec.transport import Open
from trio_amqp10.amqp10.wire.composite import plan_of
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.pair_map import PairMap, copied, simplest
from trio_amqp10.amqp10.wire.values import Array, Described, Symbol, Timestamp, UInt
from trio_amqp10.core.errors import LocalProtocolError

NAN = float("nan")


def both() -> PairMap[Any, Any]:
    return PairMap([(Symbol("k"), 1), ("k", 2), (True, 3), (UInt(1), 4), ([1], 5)])


# -- reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value"),
    [(Symbol("k"), 1), ("k", 2), (True, 3), (UInt(1), 4), ([1], 5), (1, 3), (1.0, 3), ((1,), 5)],
)
def test_pair_map_finds_the_key_of_that_type_or_else_the_first_equal_one(key: Any, value: int) -> None:
    pairs = both()
    assert pairs[key] == value
    assert key in pairs
    assert pairs.get(key) == value


@pytest.mark.parametrize("key", ["x", 2, object(), [2], NAN, 2**70])
def test_pair_map_has_no_other_key(key: Any) -> None:
    pairs = both()
    assert key not in pairs
    with pytest.raises(KeyError):
        pairs[key]


def test_pair_map_shows_all_pairs_in_their_order() -> None:
    pairs = both()
    assert len(pairs) == 5
    assert [*map(type, pairs)] == [Symbol, str, bool, UInt, list]
    assert [*pairs.values()] == [1, 2, 3, 4, 5]
    assert [value for _, value in pairs.items()] == [1, 2, 3, 4, 5]
    assert repr(PairMap({"a": 1})) == "PairMap([('a', 1)])"


def test_pair_map_finds_a_nan_as_a_dict_does() -> None:
    pairs = PairMap([(NAN, 1), (float("nan"), 2)])
    assert pairs[NAN] == 1
    assert [*pairs.values()] == [1, 2]
    other = float("nan")
    assert other not in pairs


# -- changing -----------------------------------------------------------------------------------


def test_pair_map_changes_the_pair_that_reading_finds() -> None:
    pairs = both()
    pairs["k"] = "string"
    pairs[Symbol("k")] = "symbol"
    pairs[1.0] = "first"
    pairs["new"] = "added"
    assert [*pairs.values()] == ["symbol", "string", "first", 4, 5, "added"]
    assert [*map(type, pairs)][:3] == [Symbol, str, bool]


def test_pair_map_loses_the_pair_that_reading_finds() -> None:
    pairs = both()
    del pairs["k"]
    assert pairs.pop([1]) == 5
    assert pairs == PairMap([(Symbol("k"), 1), (True, 3), (UInt(1), 4)])
    pairs.clear()
    assert not pairs


def test_pair_map_refuses_an_identical_key() -> None:
    with pytest.raises(LocalProtocolError, match="'k' appears twice"):
        PairMap([("k", 1), (Symbol("k"), 1), ("k", 2)])
    pairs = both()
    assert not pairs.add("k", 9)
    assert pairs == both()


# -- as a value ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        (PairMap([*both().items()][::-1]), True),
        (PairMap([*both().items(), ("x", 1)]), False),
        (PairMap([(1, 3), *[*both().items()][:2], *[*both().items()][3:]]), False),
        ({"k": 2}, False),
        ([], False),
    ],
)
def test_pair_map_equals_the_same_pairs_by_the_types_of_their_keys(other: Any, equal: bool) -> None:
    assert (both() == other) is equal
    assert (other == both()) is equal


def test_pair_map_equals_a_dict_whose_keys_have_the_same_types() -> None:
    moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert PairMap({"a": 1, 2: 3}) == {2: 3, "a": 1}
    assert PairMap({"a": 1}) != {Symbol("a"): 1}
    assert PairMap({moment: 1}) != {moment: 1, Timestamp(0): 2}  # one key when they are sent


def test_pair_map_is_not_hashed() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(both())


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each)), copied]
)
def test_pair_map_that_is_copied_is_another(duplicate: Any) -> None:
    pairs = both()
    other = duplicate(pairs)
    assert other == pairs
    assert encode(other) == encode(pairs)
    other["k"] = 9
    assert pairs == both()


def test_map_is_the_simplest_that_holds_its_pairs() -> None:
    for pairs in ([], [("a", 1)], [(NAN, 1), (float("nan"), 1)]):
        assert simplest(pairs).__class__ is dict
    for pairs in ([(1, 1), (True, 1)], [([], 1)]):
        assert simplest(pairs).__class__ is PairMap
    assert copied(None) == {}
    assert copied({"a": 1}) == {"a": 1}


def test_pair_map_with_a_key_that_cannot_be_sent_is_refused_when_it_is_sent() -> None:
    pairs = PairMap([(object, 1)])
    assert pairs[object] == 1
    with pytest.raises(LocalProtocolError, match="no type"):
        encode(pairs)


def test_map_of_symbols_goes_out_as_it_came_when_its_keys_are_something_else() -> None:
    pairs: Any = PairMap([(Symbol("k"), 1), ("k", 2)])
    for composite in (Open(container_id="x", properties=pairs), Source(dynamic_node_properties=pairs)):
        plan = plan_of(type(composite))
        octets = bytearray()
        plan.encode(octets, composite, 32)
        assert encode(pairs) in octets


# -- laws ---------------------------------------------------------------------------------------

KEYS = st.recursive(
    st.sampled_from(
        [
            naive.null,
            *[naive.Typed("boolean", each) for each in (True, False)],
            *[
                naive.Typed(name, number)
                for name in ("ubyte", "ushort", "uint", "ulong", "byte", "short", "int", "long", "timestamp")
                for number in (0, 1)
            ],
            *[naive.Typed(name, number) for name in ("float", "double") for number in (0.0, 1.0)],
            *[naive.Typed(name, text) for name in ("string", "symbol", "char") for text in ("k", "l")],
            *[naive.Typed("binary", octets) for octets in (b"k", b"l")],
            naive.Typed("decimal32", bytes(4)),
        ]
    ),
    lambda keys: st.one_of(
        st.lists(keys, max_size=2).map(lambda items: naive.listing(*items)),
        st.lists(st.tuples(keys, keys), max_size=3, unique_by=lambda pair: naive.encode(pair[0])).map(
            lambda items: naive.mapping(*items)
        ),
        keys.map(lambda key: naive.described(naive.Typed("symbol", "d"), key)),
    ),
    max_leaves=4,
)


@given(st.lists(st.tuples(KEYS, KEYS), max_size=6, unique_by=lambda pair: naive.encode(pair[0])))
@settings(deadline=None)
def test_map_with_any_keys_comes_back_octet_for_octet(items: list[tuple[naive.Typed, naive.Typed]]) -> None:
    octets = naive.encode(naive.mapping(*items))
    value, end = decode(octets)
    assert end == len(octets)
    assert len(value) == len(items)
    assert encode(value) == octets
    for (key, item), mine in zip(items, value.items(), strict=True):
        assert encode(mine[0]) == naive.encode(key)
        assert encode(mine[1]) == naive.encode(item)
        assert encode(value[mine[0]]) == naive.encode(item)
    assert value == decode(octets)[0]


def test_cost_of_a_map_with_equal_keys_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[Any] = []

    def counting(value: Any) -> bytes:
        encoded.append(value)
        return encode(value)

    monkeypatch.setattr("trio_amqp10.amqp10.wire.pair_map.encode", counting)
    items = [(kind(number), number) for number in range(1000) for kind in (int, UInt)]
    value, _ = decode(naive.encode(naive.mapping(*[(_typed(key), naive.null) for key, _ in items])))
    assert len(value) == 2000
    assert len(encoded) == 2000


def _typed(key: int) -> naive.Typed:
    return naive.Typed("uint" if isinstance(key, UInt) else "long", int(key))


def test_array_of_maps_holds_those_with_equal_keys() -> None:
    array = Array([both(), {"a": 1}], "map")
    assert decode(encode(array))[0] == array
    described = Described("d", both())
    assert decode(encode(described))[0] == described
