"""Property columns: application-properties with types, in and out."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trio_amqp10 as amqp
from tests.amqp10.wire import strategies as wire
from trio_amqp10.spark.message_encoder import encode_batch
from trio_amqp10.spark.option_values import COLUMN_TYPES
from trio_amqp10.spark.options import OptionError, QueueOptions, SinkOptions
from trio_amqp10.spark.property_columns import KINDS
from trio_amqp10.spark.schema import check_sink, read_schema
from trio_amqp10.spark.typed_json import UnfitError

from .test_rows import PEER, batch_of

ID = uuid.UUID(int=7)


def sink(declared: str, **given: str) -> SinkOptions:
    return SinkOptions.parse(PEER | {"dedup.id": "none", "propertyColumns": declared} | given)


def read(declared: str, **properties: Any) -> dict[str, Any]:
    payload = amqp.Message(b"x", application_properties=properties).to_payload()
    row: dict[str, Any] = batch_of([payload], columns="body", propertyColumns=declared).to_pylist()[0]
    assert row.pop("body") == b"x"
    return row


def test_types_of_the_option_are_those_of_the_columns() -> None:
    assert set(COLUMN_TYPES) == KINDS


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        ("boolean", True, True),
        ("boolean", 1, None),
        ("byte", amqp.UInt(127), 127),
        ("byte", amqp.UInt(128), None),
        ("tinyint", -128, -128),
        ("short", -(2**15), -(2**15)),
        ("int", amqp.ULong(5), 5),
        ("int", "5", None),
        ("int", True, None),
        ("int", amqp.Timestamp(5), None),
        ("bigint", amqp.ULong(2**63), None),
        ("ulong", amqp.ULong(2**63 - 1), 2**63 - 1),
        ("uint", -1, None),
        ("ubyte", 255, 255),
        ("ushort", 2**16, None),
        ("float", 0.5, 0.5),
        ("double", 3, 3.0),
        ("double", True, None),
        ("double", amqp.Timestamp(3), None),
        ("double", "3", None),
        ("string", "tea", "tea"),
        ("string", amqp.Symbol("tea"), "tea"),
        ("string", 5, "5"),
        ("symbol", amqp.Symbol("tea"), "tea"),
        ("uuid", ID, str(ID)),
        ("uuid", str(ID), None),
        ("binary", b"tea", b"tea"),
        ("binary", "tea", None),
        ("timestamp", amqp.Timestamp(1500), datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, datetime.UTC)),
        ("timestamp", amqp.Timestamp(2**62), None),
        ("timestamp", 1500, None),
        ("timestamp", None, None),
    ],
)
def test_column_takes_what_it_has_room_for(kind: str, value: Any, found: Any) -> None:
    assert read(f"n {kind}", n=value) == {"n": found}


def test_decimal_is_a_number() -> None:
    assert read("n double", n=amqp.Decimal64.from_decimal(Decimal("2.5"))) == {"n": 2.5}


def test_property_that_is_not_there_is_null() -> None:
    assert read("n int, kind string", other=1) == {"n": None, "kind": None}
    assert batch_of([b"\x00\x53\x75\xa0\x01x"], propertyColumns="n int").column("n").to_pylist() == [None]
    assert batch_of([b"??"], 9, propertyColumns="n int").column("n").to_pylist() == [None]


def test_columns_stand_where_they_are_named_or_last() -> None:
    options = {**PEER, "spool": "/s", "propertyColumns": "n int, `a key` string"}
    schema = read_schema(QueueOptions.parse(options | {"columns": "n,body"}))
    assert schema.names == ["n", "body", "a key"]
    assert read_schema(QueueOptions.parse(options)).names[-2:] == ["n", "a key"]


values = {
    "boolean": st.booleans(),
    "byte": st.integers(-(2**7), 2**7 - 1).map(amqp.Byte),
    "short": st.integers(-(2**15), 2**15 - 1).map(amqp.Short),
    "int": st.integers(-(2**31), 2**31 - 1).map(amqp.Int),
    "long": st.integers(-(2**63), 2**63 - 1),
    "ubyte": st.integers(0, 2**8 - 1).map(amqp.UByte),
    "ushort": st.integers(0, 2**16 - 1).map(amqp.UShort),
    "uint": st.integers(0, 2**32 - 1).map(amqp.UInt),
    "ulong": st.integers(0, 2**63 - 1).map(amqp.ULong),
    "float": st.floats(width=32, allow_nan=False).map(amqp.Float),
    "double": st.floats(allow_nan=False),
    "string": wire.texts,
    "symbol": st.text(st.characters(max_codepoint=127), max_size=5).map(amqp.Symbol),
    "uuid": st.uuids(),
    "binary": st.binary(max_size=9),
    "timestamp": st.integers(-(10**12), 10**12).map(amqp.Timestamp),
}


@given(st.fixed_dictionaries({}, optional=values))
def test_properties_go_out_with_the_types_that_they_came_with(properties: dict[str, Any]) -> None:
    declared = ", ".join(f"`{kind}_` {kind}" for kind in values)
    said = {f"{kind}_": value for kind, value in properties.items()}
    payload = amqp.Message(b"x", application_properties=said).to_payload()
    batch = batch_of([payload], columns="body", propertyColumns=declared)
    (message,) = encode_batch(batch, sink(declared)).messages
    assert message.body == b"x"
    assert {**message.application_properties} == said
    assert {key: type(value) for key, value in message.application_properties.items()} == {
        key: type(value) for key, value in said.items()
    }


def test_column_goes_before_the_map_and_a_null_does_not() -> None:
    kind = pa.map_(pa.string(), pa.string())
    batch = pa.RecordBatch.from_pydict(
        {
            "body": [b"1", b"2"],
            "n": [5, None],
            "application_properties": pa.array([[("n", "1"), ("m", "2")], [("n", "1")]], kind),
            "application_properties_types": pa.array([[("n", "long"), ("m", "short")], None], kind),
        }
    )
    one, two = encode_batch(batch, sink("n ubyte")).messages
    assert {**one.application_properties} == {"m": amqp.Short(2), "n": amqp.UByte(5)}
    assert type(one.application_properties["n"]) is amqp.UByte
    assert type(one.application_properties["m"]) is amqp.Short
    assert {**two.application_properties} == {"n": "1"}


@pytest.mark.parametrize(
    ("declared", "value"), [("n ubyte", 256), ("n uuid", "tea"), ("n symbol", "t\u00e9")]
)
def test_value_that_cannot_be_of_its_type_is_refused(declared: str, value: Any) -> None:
    batch = pa.RecordBatch.from_pydict({"body": [b"1"], "n": [value]})
    with pytest.raises(UnfitError, match="row 0 of this batch cannot be a message: column 'n' cannot be"):
        encode_batch(batch, sink(declared))


@pytest.mark.parametrize("text", ["n", "n int,", "n decimal", "n int, N long", "`n int", "n int string", ""])
def test_declaration_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match=r"option 'propertyColumns'.*as in 'n int"):
        sink(text)


def test_name_of_a_column_that_there_is_cannot_be_declared() -> None:
    with pytest.raises(OptionError, match="'Body' is a column already"):
        read_schema(QueueOptions.parse({**PEER, "spool": "/s", "propertyColumns": "Body int"}))


@pytest.mark.parametrize(
    ("declared", "column", "message"),
    [
        ("m int", pa.array([1]), "there is no column 'm'"),
        ("n int", pa.array(["1"]), "'n' is string, and must be a whole number"),
        ("n double", pa.array(["1"]), "must be a number"),
        ("n timestamp", pa.array([1]), "must be a timestamp"),
    ],
)
def test_sink_checks_property_columns(declared: str, column: pa.Array, message: str) -> None:
    schema = pa.schema([("body", pa.binary()), ("n", column.type)])
    with pytest.raises(OptionError, match=message):
        check_sink(
            schema, ignore_unknown=False, has_address=True, property_columns=sink(declared).property_columns
        )


def test_sink_takes_property_columns() -> None:
    schema = pa.schema([("body", pa.binary()), ("n", pa.float64())])
    check_sink(schema, ignore_unknown=False, has_address=True, property_columns=(("n", "float"),))
