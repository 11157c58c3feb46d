"""The AMQP type of each Spark type in each place of a message, as the manual shows it."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from trio_amqp10.amqp10.message.sections import ANNOTATIONS, APPLICATION_PROPERTIES
from trio_amqp10.amqp10.wire.values import Byte, Int
from trio_amqp10.spark.options import OptionError

from .sink_types import PAGE, TYPES, nulls, sent, written


def test_tables_of_the_page_are_what_is_sent() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page), "run python -m tests.spark.sink_types"


def test_nulls_are_left_out_but_in_a_body_and_in_a_map() -> None:
    assert nulls() == {
        "body": None,
        "body as data": b"",
        "map": None,
        "value": {"k": None},
        "declared": None,
        "field": None,
        "struct": None,
    }


@pytest.mark.parametrize(
    "name", [name for name, kind in TYPES.items() if name.startswith(("date", "decimal", "time_"))]
)
@pytest.mark.parametrize("column", ["application_properties", "message_annotations", "footer"])
def test_map_with_values_that_no_message_has_is_refused_by_its_name(name: str, column: str) -> None:
    pairs = pa.array([[("k", TYPES[name].value)]], pa.map_(pa.string(), TYPES[name].arrow))
    with pytest.raises(
        OptionError, match=rf"column '{column}' is map<string, {re.escape(str(TYPES[name].arrow))}.*cast"
    ):
        sent({column: pairs}, ANNOTATIONS)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("footer", pa.map_(pa.int32(), pa.string())),
        ("application_properties", pa.map_(pa.string(), pa.list_(pa.string()))),
        ("message_annotations", pa.map_(pa.string(), pa.list_(pa.date32()))),
        ("message_annotations", pa.map_(pa.string(), pa.struct([("a", pa.date32())]))),
        ("message_annotations", pa.map_(pa.string(), pa.map_(pa.int32(), pa.string()))),
        ("footer_types", pa.map_(pa.string(), pa.int32())),
    ],
)
def test_keys_and_nested_values_of_maps_are_checked_too(column: str, kind: pa.DataType) -> None:
    with pytest.raises(OptionError, match=f"column '{column}'"):
        sent({column: pa.array([None], kind)}, ANNOTATIONS)


def test_nested_values_have_their_types_and_nulls() -> None:
    inner = pa.struct([("n", pa.int8()), ("text", pa.string()), ("m", pa.map_(pa.string(), pa.int32()))])
    value = [{"n": 1, "text": None, "m": [("k", 2)]}, None]
    found = sent(
        {"message_annotations": pa.array([[("a", value)]], pa.map_(pa.string(), pa.list_(inner)))},
        ANNOTATIONS,
    )
    assert found == {"a": [{"n": Byte(1), "text": None, "m": {"k": Int(2)}}, None]}
    assert [type(each) for each in (found["a"][0]["n"], found["a"][0]["m"]["k"])] == [Byte, Int]


def test_string_in_a_column_of_binary_is_its_utf8() -> None:
    found = sent({"x": pa.array(["\u00e9"])}, APPLICATION_PROPERTIES, propertyColumns="x binary")
    assert found == {"x": b"\xc3\xa9"}
