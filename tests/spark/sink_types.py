"""The types that a sink sends, as the tables of ``docs/how-to/spark.rst``.

``python -m tests.spark.sink_types`` encodes a value of each Spark type in each place of a message, and writes the tables. A test
compares them with the page.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from trio_amqp10.amqp10.message.sections import (
    ANNOTATIONS,
    APPLICATION_PROPERTIES,
    BODY,
    FOOTER,
    HEADER,
    PROPERTIES,
    read_section,
    scan,
)
from trio_amqp10.amqp10.wire.values import TYPE_NAMES
from trio_amqp10.spark.message_encoder import encode_batch
from trio_amqp10.spark.option_values import COLUMN_TYPES
from trio_amqp10.spark.options import OptionError, SinkOptions
from trio_amqp10.spark.schema import check_sink

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE: Final = Path(__file__).parents[2] / "docs/how-to/spark.rst"
BEGIN: Final = (
    "..\n   The tables to the next comment are written by ``python -m tests.spark.sink_types``.\n\n"
)
END: Final = "..\n   The tables end here.\n"
REFUSED: Final = "refused"


class SparkType(NamedTuple):
    """A type of Spark.

    Attributes:
        arrow: its Arrow type.
        value: a value; one that most types of property columns accept.
    """

    arrow: pa.DataType
    value: Any


_INT: Final = pa.int32()
_NOON: Final = datetime.datetime(2026, 1, 2, 12)  # noqa: DTZ001 - of a type without a zone
TYPES: Final = {
    "boolean": SparkType(pa.bool_(), True),
    "tinyint": SparkType(pa.int8(), 1),
    "smallint": SparkType(pa.int16(), 1),
    "int": SparkType(_INT, 1),
    "bigint": SparkType(pa.int64(), 1),
    "float": SparkType(pa.float32(), 0.5),
    "double": SparkType(pa.float64(), 0.5),
    "string, char, varchar": SparkType(pa.string(), "9f1fbb0c-4a4c-4b6f-8f0a-4d0f0a3c8a11"),
    "binary": SparkType(pa.binary(), b"tea"),
    "timestamp": SparkType(pa.timestamp("us", "UTC"), _NOON.replace(tzinfo=datetime.UTC)),
    "timestamp_ntz": SparkType(pa.timestamp("us"), _NOON),
    "date": SparkType(pa.date32(), _NOON.date()),
    "time": SparkType(pa.time64("ns"), _NOON.time()),
    "decimal": SparkType(pa.decimal128(10, 2), Decimal("1.50")),
    "interval": SparkType(pa.duration("us"), datetime.timedelta(1)),
    "array<int>": SparkType(pa.list_(_INT), [1]),
    "struct<a: int>": SparkType(pa.struct([("a", _INT)]), {"a": 1}),
    "map<string, int>": SparkType(pa.map_(pa.string(), _INT), [("a", 1)]),
    "variant": SparkType(pa.struct([("value", pa.binary()), pa.field("metadata", pa.binary(), metadata={"variant": "true"})]), {"value": b"", "metadata": b""}),
    "void": SparkType(pa.null(), None),
}  # fmt: skip
FIELDS: Final = {
    "header": (HEADER, ("durable", "priority", "ttl")),
    "properties": (
        PROPERTIES,
        (
            *("message_id", "user_id", "to", "subject", "reply_to", "correlation_id", "content_type"),
            *("content_encoding", "absolute_expiry_time", "creation_time", "group_id", "group_sequence"),
            "reply_to_group_id",
        ),
    ),
}
MAPS: Final = {
    "application_properties": APPLICATION_PROPERTIES,
    "message_annotations": ANNOTATIONS,
    "footer": FOOTER,
}


def sent(columns: dict[str, pa.Array], place: int, **given: str) -> Any:
    """Return a section of the message of one row, decoded; None if the message does not have it.

    Raises:
        OptionError: the columns are refused.
    """
    batch = pa.RecordBatch.from_pydict({"body": pa.array(["text"])} | columns)
    options = SinkOptions.parse({"url": "amqp://h", "address": "q", "dedup.id": "none"} | given)
    check_sink(
        batch.schema, ignore_unknown=False, has_address=True, property_columns=options.property_columns
    )
    payload = encode_batch(batch, options).messages[0].to_payload()
    span = scan(payload)[place]
    return None if span is None else read_section(place, payload, span)


def name_of(value: Any) -> str:
    """Return the name of the AMQP type of a value."""
    return "null" if value is None else TYPE_NAMES[value.__class__]


def in_body(kind: SparkType) -> str:
    """Return the section and the type of a body."""
    try:
        body = sent({"body": pa.array([kind.value], kind.arrow)}, BODY)
    except OptionError:
        return REFUSED
    return "data" if isinstance(body, bytes) else f"amqp-value, {name_of(getattr(body, 'value', body))}"


def in_map(name: str, kind: SparkType) -> str:
    """Return the type of a value in a map column."""
    pairs = pa.array([[("k", kind.value)]], pa.map_(pa.string(), kind.arrow))
    try:
        return name_of(sent({name: pairs}, MAPS[name])["k"])
    except OptionError:
        return REFUSED


def in_field(section: str, field: str, kind: SparkType) -> str:
    """Return the type of a field in its own column, which is that in the struct too."""
    place, names = FIELDS[section]
    found: list[str] = []
    column = pa.array([kind.value], kind.arrow)
    for columns in ({field: column}, {section: pa.StructArray.from_arrays([column], [field])}):
        try:
            values = sent(columns, place)
        except OptionError:
            found.append(REFUSED)
        else:
            value = None if values is None else values[names.index(field)]
            found.append("not set" if value is None else name_of(value))
    assert len({*found}) == 1, f"{field}: its column and the struct differ: {found}"
    return found[0]


def declared(kind: SparkType) -> list[str]:
    """Return the types of ``propertyColumns`` that accept a column of this type."""
    accepted: list[str] = []
    for each in COLUMN_TYPES:
        try:
            found = sent(
                {"x": pa.array([kind.value], kind.arrow)}, APPLICATION_PROPERTIES, propertyColumns=f"x {each}"
            )
        except OptionError:
            continue
        assert kind.value is None or name_of(found["x"]) == each
        accepted.append(each)
    return accepted  # fmt: skip


_NUMBERS: Final = ["byte", "short", "int", "long", "ubyte", "ushort", "uint", "ulong", "float", "double"]


def _words(names: list[str]) -> str:
    if len(names) == len(COLUMN_TYPES):
        return "any"
    if names == _NUMBERS:
        return "any type of numbers"
    return ", ".join(names) or REFUSED


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    head, *body = rows
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (head, *body):
        lines += [f"   {'*' if place == 0 else ' '} - {cell}" for place, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def tables() -> str:
    """Return both tables as reStructuredText."""
    of_values = [
        ("Spark type", "``body``", "a value in ``application_properties``", "a value in annotations and footer",
         "types of ``propertyColumns``"),
    ]  # fmt: skip
    for name, kind in TYPES.items():
        annotation = in_map("message_annotations", kind)
        assert annotation == in_map("footer", kind)
        of_values.append(
            (
                f"``{name}``",
                in_body(kind),
                in_map("application_properties", kind),
                annotation,
                _words(declared(kind)),
            )
        )
    by_cell: dict[tuple[str, str], list[str]] = {}
    for section, (_, fields) in FIELDS.items():
        for field in fields:
            found = {name: in_field(section, field, kind) for name, kind in TYPES.items() if name != "void"}
            accepted = [name for name, cell in found.items() if cell != REFUSED]
            kinds = {found[name] for name in accepted}
            assert len(kinds) == 1
            assert in_field(section, field, TYPES["void"]) == "not set"
            by_cell.setdefault((", ".join(accepted), *kinds), []).append(field)
    of_fields = [("fields", "Spark types", "AMQP type")]
    for (accepted, kind), fields in by_cell.items():
        of_fields.append((", ".join(f"``{each}``" for each in fields), accepted, kind))
    return f"{_table(of_values)}\n{_table(of_fields)}\n"


def written(page: str) -> str:
    """Return the page with the present tables."""
    before, found, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert found
    assert end
    return before + BEGIN + tables() + END + after


def nulls() -> dict[str, Any]:
    """Return what is sent for a null in each place."""
    maps = pa.map_(pa.string(), pa.string())
    body = sent({"body": pa.array([None], pa.string())}, BODY)
    return {
        "body": getattr(body, "value", body),
        "body as data": sent({"body": pa.array([None], pa.binary())}, BODY, bodyType="data"),
        "map": sent({"application_properties": pa.array([None], maps)}, APPLICATION_PROPERTIES),
        "value": sent({"application_properties": pa.array([[("k", None)]], maps)}, APPLICATION_PROPERTIES),
        "declared": sent({"x": pa.array([None], pa.string())}, APPLICATION_PROPERTIES, propertyColumns="x string"),
        "field": sent({"subject": pa.array([None], pa.string())}, PROPERTIES),
        "struct": sent({"properties": pa.array([None], pa.struct([("to", pa.string())]))}, PROPERTIES),
    }  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
