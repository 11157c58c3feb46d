"""Columns of messages: those that options ask for, and those that a sink takes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from trio_amqp10.spark.options import OptionError, QueueOptions
from trio_amqp10.spark.schema import HEADER, MAPS, PROPERTIES, SINK_TYPES, check_sink, read_schema


def columns(**given: str) -> list[str]:
    return list(
        read_schema(QueueOptions.parse({"url": "amqp://h", "address": "q", "spool": "/s"} | given)).names
    )


def test_options_add_and_leave_out_columns() -> None:
    usual = set(columns())
    assert {"body", "body_type", "body_text", "header", "properties", *MAPS, "seq", "address"} <= usual
    assert set(columns(bodyJson="true")) - usual == {"body_json"}
    assert set(columns(includeRaw="true")) - usual == {"raw"}
    assert set(columns(propertyTypes="true")) - usual == {f"{name}_types" for name in MAPS}
    assert set(columns(onDecodeError="deadletter-column")) - usual == {"decode_error"}
    assert usual - set(columns(maps="false")) == set(MAPS)


def test_chosen_columns_come_in_their_order_and_property_columns_behind_them() -> None:
    assert columns(columns="seq,payload,body") == ["seq", "payload", "body"]
    assert columns(columns="seq", propertyColumns="n int") == ["seq", "n"]
    assert columns(columns="n,seq", propertyColumns="n int") == ["n", "seq"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"columns": "seq,raw"}, "no column 'raw'"),
        ({"propertyColumns": "Subject string"}, "'Subject' is a column already"),
    ],
)
def test_columns_that_there_are_not_are_refused(given: dict[str, str], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        columns(**given)


def test_sink_takes_what_a_source_gives() -> None:
    given = {
        "bodyJson": "true",
        "includeRaw": "true",
        "propertyTypes": "true",
        "onDecodeError": "deadletter-column",
    }
    options = QueueOptions.parse({"url": "amqp://h", "address": "q", "spool": "/s"} | given)
    schema = read_schema(options)
    assert set(schema.names) <= set(SINK_TYPES)
    check_sink(schema, ignore_unknown=False, has_address=False)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"body": pa.int64()}, "'body' is int64, and must be binary or a string"),
        ({"body": pa.binary(), "colour": pa.string()}, "no part of a message is called 'colour'"),
        ({"body": pa.binary(), "value": pa.binary()}, "keep one"),
        ({"subject": pa.string()}, "a message needs a column"),
        ({"body": pa.binary(), "header": pa.struct([("odd", pa.bool_())])}, "'header' has no field 'odd'"),
        (
            {"body": pa.binary(), "properties": pa.struct([("subject", pa.int32())])},
            "'subject' of 'properties' is int32, and must be a string",
        ),
        ({"body": pa.binary(), "footer": pa.string()}, "must be a map"),
        (
            {"body": pa.binary(), "creation_time": pa.timestamp("us")},
            r"'creation_time' is timestamp\[us\], and must be a timestamp with a zone: .* cast timestamp_ntz to timestamp",
        ),
    ],
)
def test_columns_that_cannot_be_a_message_are_refused_by_name(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        check_sink(pa.schema(list(fields.items())), ignore_unknown=False, has_address=True)


def test_sink_needs_an_address_and_its_property_columns() -> None:
    schema = pa.schema([("body", pa.binary()), ("odd", pa.int64())])
    check_sink(schema, ignore_unknown=True, has_address=True)
    check_sink(schema, ignore_unknown=False, has_address=True, property_columns=[("odd", "long")])
    with pytest.raises(OptionError, match="the address of the messages is missing"):
        check_sink(schema, ignore_unknown=True, has_address=False)
    with pytest.raises(OptionError, match="'odd' is int64, and must be a string"):
        check_sink(schema, ignore_unknown=True, has_address=True, property_columns=[("odd", "string")])
    with pytest.raises(OptionError, match="no column 'n'"):
        check_sink(schema, ignore_unknown=True, has_address=True, property_columns=[("n", "int")])


def test_structs_have_the_fields_of_the_standard() -> None:
    assert [each.name for each in HEADER] == [
        "durable",
        "priority",
        "ttl",
        "first_acquirer",
        "delivery_count",
    ]
    assert len(PROPERTIES) == 15  # thirteen fields, and the types of two ids
