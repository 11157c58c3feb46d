"""Rows of a sink become messages; an error names the row that cannot."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trio_amqp10 as amqp
from trio_amqp10.amqp10.wire.values import UInt
from trio_amqp10.spark.message_encoder import encode_batch
from trio_amqp10.spark.options import SinkOptions
from trio_amqp10.spark.typed_json import UnfitError

PEER = {"url": "amqp://h", "address": "q"}
FIELDS = {
    "message_id": st.text(max_size=5),
    "to": st.text(max_size=5),
    "subject": st.text(max_size=5),
    "group_id": st.text(max_size=5),
    "group_sequence": st.integers(0, 2**31 - 1),
    "durable": st.booleans(),
    "priority": st.integers(0, 9),
    "ttl": st.integers(0, 2**31 - 1),
}
TYPES = {"group_sequence": pa.int64(), "durable": pa.bool_(), "priority": pa.int32(), "ttl": pa.int64()}


def sink(**given: str) -> SinkOptions:
    return SinkOptions.parse(
        PEER | {"dedup.id": "none"} | {name.replace("_", "."): value for name, value in given.items()}
    )


def batch_of(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


@given(
    st.lists(
        st.tuples(st.binary(max_size=9), st.fixed_dictionaries({}, optional=FIELDS)), min_size=1, max_size=4
    )
)
def test_row_is_the_message_with_its_fields_and_body(rows: list[tuple[bytes, dict[str, Any]]]) -> None:
    columns = {
        name: pa.array([fields.get(name) for _, fields in rows], TYPES.get(name, pa.string()))
        for name in FIELDS
    }
    batch = batch_of(body=pa.array([body for body, _ in rows], pa.binary()), **columns)
    found = encode_batch(batch, sink())
    assert found.addresses == ["q"] * len(rows)
    assert [each.to_payload() for each in found.messages] == [
        amqp.Message(body, **fields).to_payload() for body, fields in rows
    ]


def test_row_that_cannot_be_a_message_is_named_with_the_reason() -> None:
    batch = batch_of(body=[b"a", b"b", b"c"], message_id=["1", "x", "3"], message_id_type=["ulong"] * 3)
    with pytest.raises(UnfitError, match=r"row 1 of this batch .*'x'"):
        encode_batch(batch, sink())


def test_field_in_a_column_of_its_own_takes_precedence_over_the_struct() -> None:
    kind = pa.struct([("subject", pa.string()), ("to", pa.string())])
    inside = pa.array([{"subject": "inside", "to": "there"}] * 2, kind)
    batch = batch_of(body=[b""] * 2, properties=inside, subject=["alone", None])
    assert [(each.subject, each.to) for each in encode_batch(batch, sink()).messages] == [
        ("alone", "there"),
        ("inside", "there"),
    ]


def test_map_of_any_size_is_encoded_with_its_types() -> None:
    kind = pa.map_(pa.string(), pa.string())
    many = [(f"key-{number}", str(number)) for number in range(200)]
    batch = batch_of(
        body=[b"", b""],
        application_properties=pa.array([[("n", "1")], many], kind),
        application_properties_types=pa.array([[("n", "uint")], None], kind),
    )
    small, large = encode_batch(batch, sink()).messages
    assert small.to_payload() == amqp.Message(b"", application_properties={"n": UInt(1)}).to_payload()
    assert large.application_properties == dict(many)


@pytest.mark.parametrize(
    ("columns", "column"),
    [
        ({"application_properties_types": pa.array([[("n", "uint")]], pa.map_(pa.string(), pa.string()))}, "application_properties"),
        ({"message_id": ["tea"], "message_id_type": ["ulong"]}, "message_id"),
        ({"priority": [300]}, "priority"),
        ({"body_type": ["value"]}, "body"),
        ({"raw": [b"\x00"], "message_format": [0]}, "raw"),
        ({"address": [None]}, "address"),
    ],
)  # fmt: skip
def test_error_of_a_row_names_row_and_column(columns: dict[str, Any], column: str) -> None:
    maps = pa.array([[("n", "tea")]], pa.map_(pa.string(), pa.string()))
    given = {"body": [b"\xff"], "application_properties": maps} | columns
    one = pa.RecordBatch.from_pydict(given)
    options = {"url": "amqp://h"} if column == "address" else PEER
    with pytest.raises(UnfitError, match=f"row 0 of this batch cannot be a message: .*{column}"):
        encode_batch(one, SinkOptions.parse(options))


def test_rows_that_cannot_be_messages_are_left_out_where_that_is_wanted() -> None:
    batch = batch_of(body=[b"a", b"b", b"c"], priority=[1, 300, 2])
    found = encode_batch(batch, sink(onReject="drop", dedup_id="deterministic"), name="task", first=7)
    assert [message.body for message in found.messages] == [b"a", b"c"]
    assert [message.message_id for message in found.messages] == ["task-7", "task-9"]
    assert found.numbers == (0, 2)
    assert [number for number, _ in found.unfit] == [1]
    assert "row 1 of this batch" in found.unfit[0][1]


def test_generated_id_is_the_name_of_the_task_and_the_number_of_the_row() -> None:
    batch = batch_of(body=[b"a", b"b"])
    found = encode_batch(batch, SinkOptions.parse(PEER), name="task", first=7).messages
    assert [each.message_id for each in found] == ["task-7", "task-8"]
