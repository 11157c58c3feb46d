"""Annotations are added to those of a message, and each key keeps its type (3.2.3, 3.2.10)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.server.annotations import merged
from trio_amqp10.amqp10.wire.pair_map import PairMap
from trio_amqp10.amqp10.wire.values import Symbol, ULong

keys = st.text("abc", max_size=2).map(Symbol) | st.integers(0, 3).map(ULong)
noted = st.dictionaries(keys, st.integers(), max_size=4)


@given(noted, noted)
def test_what_is_added_goes_before_what_was_there(
    there: dict[Symbol | ULong, int], more: dict[Symbol | ULong, int]
) -> None:
    assert merged(there, more) == {**there, **more}


def test_keys_that_no_dict_can_hold_are_passed_on() -> None:
    there: PairMap[object, object] = PairMap()
    there.add([1], "list")
    there.add(Symbol("x"), "old")
    found = merged(there, {"x": "new", "y": "more"})
    assert isinstance(found, PairMap)
    assert [(key.__class__, key, value) for key, value in found.items()] == [
        (Symbol, "x", "new"),
        (Symbol, "y", "more"),
        (list, [1], "list"),
    ]


def test_boolean_key_is_not_taken_for_the_integer_that_equals_it() -> None:
    found = merged({True: "flag"}, {ULong(1): "number"})
    assert [(key.__class__, value) for key, value in found.items()] == [(ULong, "number"), (bool, "flag")]
