"""Sections of all rows as Arrow arrays: each row as if it were alone, and null where there is nothing."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import trio_amqp10 as amqp
from tests.amqp10.wire import strategies as wire
from trio_amqp10.amqp10.message.sections import Data, Sequence, Value
from trio_amqp10.spark.arrow_arrays import Opaque, bodies, headers, maps, properties
from trio_amqp10.spark.schema import HEADER, PROPERTIES
from trio_amqp10.spark.section_columns import NO_PROPERTIES

ALL = frozenset({"body", "payload", "body_type", "body_text", "body_json"})
BODIES = st.one_of(
    st.none(),
    st.binary(max_size=9),
    st.text(max_size=9),
    wire.values.map(Value),
    st.lists(st.binary(max_size=3), max_size=3).map(lambda chunks: Data(*chunks)),
    st.lists(st.lists(wire.values, max_size=2), min_size=1, max_size=2).map(lambda lists: Sequence(*lists)),
)


def rows_of(columns: dict[str, pa.Array]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.RecordBatch.from_pydict(columns).to_pylist()
    return rows


@given(st.lists(BODIES, min_size=1, max_size=5))
def test_body_of_a_row_is_the_same_beside_any_others(said: list[Any]) -> None:
    assert rows_of(bodies(said, ALL)) == [rows_of(bodies([each], ALL))[0] for each in said]


def test_bodies_say_what_they_are_as_octets_text_and_json() -> None:
    said = [b"x", "text", Value({"n": 1}), Sequence([1, "a"], [2]), Opaque(b"\0"), None]
    found = rows_of(bodies(said, ALL))
    assert [row["body_type"] for row in found] == ["data", "value", "value", "sequence", None, None]
    assert [row["body_text"] for row in found] == [None, "text", None, None, None, None]
    assert [row["body_json"] for row in found] == [None, '"text"', '{"n":1}', '[1,"a",2]', None, None]
    assert [row["payload"] for row in found] == [b"x", b"text", b'{"n":1}', b'[1,"a",2]', b"\0", None]
    assert [row["body"] for row in found[:1] + found[4:]] == [b"x", b"\0", None]
    assert amqp.Message.from_payload(b"\0\x53\x77" + found[2]["body"]).body == {"n": 1}


def test_columns_of_bodies_are_those_that_are_asked_for() -> None:
    assert set(bodies([b"x"], frozenset({"payload", "seq"}))) == {"payload"}


def test_properties_are_null_where_a_row_has_no_such_section() -> None:
    one: list[Any] = list(NO_PROPERTIES)
    one[[each.name for each in PROPERTIES].index("subject")] = "tea"
    found = properties([None, tuple(one)])
    assert found.type == PROPERTIES
    nothing, something = found.to_pylist()
    assert nothing is None
    assert {name: value for name, value in something.items() if value is not None} == {"subject": "tea"}
    assert properties([]).to_pylist() == []


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.none(), st.booleans(), st.integers(0, 3))))
def test_headers_are_the_same_whether_they_are_all_alike_or_not(rows: list[Any]) -> None:
    names = [each.name for each in HEADER]
    assert headers(rows).type == HEADER
    assert headers(rows).to_pylist() == [dict(zip(names, row, strict=True)) for row in rows]


def test_maps_are_null_where_a_row_has_none() -> None:
    assert maps([None, None]).to_pylist() == [None, None]
    assert maps([None, [("a", "1")], []]).to_pylist() == [None, [("a", "1")], []]
