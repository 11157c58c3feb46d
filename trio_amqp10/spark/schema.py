"""The columns of a message in Spark, and their Arrow types (3.2).

Spark converts the schema to its own and back, and refuses batches with a different one; the types
here survive that unchanged. Timestamps are microseconds in UTC.

Knows no messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from .options import OptionError
from .property_columns import ARROW_TYPES
from .source_columns import SOURCE_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .options import ReadOptions

_TIME: Final = pa.timestamp("us", tz="UTC")
_MAP: Final = pa.map_(pa.string(), pa.string())

HEADER: Final = pa.struct(
    [
        ("durable", pa.bool_()),
        ("priority", pa.int32()),
        ("ttl", pa.int64()),
        ("first_acquirer", pa.bool_()),
        ("delivery_count", pa.int64()),
    ]
)
PROPERTIES: Final = pa.struct(
    [
        ("message_id", pa.string()),
        ("message_id_type", pa.string()),
        ("user_id", pa.binary()),
        ("to", pa.string()),
        ("subject", pa.string()),
        ("reply_to", pa.string()),
        ("correlation_id", pa.string()),
        ("correlation_id_type", pa.string()),
        ("content_type", pa.string()),
        ("content_encoding", pa.string()),
        ("absolute_expiry_time", _TIME),
        ("creation_time", _TIME),
        ("group_id", pa.string()),
        ("group_sequence", pa.int64()),
        ("reply_to_group_id", pa.string()),
    ]
)
MAPS: Final = ("application_properties", "message_annotations", "delivery_annotations", "footer")

_BODY: Final = {"body": pa.binary(), "body_type": pa.string(), "body_text": pa.string()}
_BY_NAME: Final = {"payload": pa.binary()}
"""Columns with the data of others, which exist only if ``columns`` names them."""
_AROUND: Final = {
    "address": pa.string(),
    "seq": pa.int64(),
    "received_at": _TIME,
    "delivery_tag": pa.binary(),
    "message_format": pa.int64(),
    "peer": pa.string(),
}


def read_schema(options: ReadOptions) -> pa.Schema:
    """Return the columns that the options ask for, in order.

    Raises:
        OptionError: option ``columns`` names a column that does not exist.
    """
    columns: dict[str, pa.DataType] = dict(_BODY)
    if options.body_json:
        columns["body_json"] = pa.string()
    columns |= {"header": HEADER, "properties": PROPERTIES}
    if options.maps:
        for name in MAPS:
            columns[name] = _MAP
            if options.property_types:
                columns[f"{name}_types"] = _MAP
    columns |= _AROUND
    if options.source_columns:
        columns |= SOURCE_COLUMNS
    if options.include_raw:
        columns["raw"] = pa.binary()
    if options.on_decode_error == "deadletter-column":
        columns["decode_error"] = pa.string()
    declared = {key: ARROW_TYPES[kind] for key, kind in options.property_columns}
    _check_keys(declared, SOURCE_COLUMNS if options.source_columns else ())
    chosen = options.columns
    if chosen is not None:
        columns |= _BY_NAME | declared
        unknown = [name for name in chosen if name not in columns]
        if unknown:
            raise OptionError(
                f"option 'columns': no column {unknown[0]!r} with these options; there are {', '.join(columns)}"
            )
        columns = {name: columns[name] for name in chosen}
    columns |= declared
    return pa.schema(list(columns.items()))


def _check_keys(keys: Iterable[str], more: Iterable[str] = ()) -> None:
    """Raise an error if a key is the name of another column (Spark ignores case)."""
    taken = [key for key in keys if key.lower() in SINK_TYPES or key.lower() in more]
    if taken:
        raise OptionError(
            f"option 'propertyColumns': {taken[0]!r} is a column already; the property is in column 'application_properties'"
        )


# The columns of a sink -----------------------------------------------------------------------------

_KINDS: Final = {
    "text": "a string",
    "octets": "binary or a string",
    "truth": "a boolean",
    "number": "a whole number",
    "real": "a number",
    "time": "a timestamp with a zone: a sink does not know that of the session, so cast timestamp_ntz to timestamp",
    "properties map": "a map with string keys, and with values that are booleans, numbers (no decimals), strings, binary or timestamps "
    "with a zone: cast the others to one of these",
    "annotations map": "a map with string keys, and with values that are booleans, numbers (no decimals), strings, binary, timestamps "
    "with a zone, or arrays, structs and maps of these: cast the others to one of these",
    "types map": "a map with string keys and string values",
    "struct": "a struct",
}
_FIELDS: Final = {
    "message_id": "text",
    "message_id_type": "text",
    "user_id": "octets",
    "to": "text",
    "subject": "text",
    "reply_to": "text",
    "correlation_id": "text",
    "correlation_id_type": "text",
    "content_type": "text",
    "content_encoding": "text",
    "absolute_expiry_time": "time",
    "creation_time": "time",
    "group_id": "text",
    "group_sequence": "number",
    "reply_to_group_id": "text",
}
_HEADER_FIELDS: Final = {
    "durable": "truth",
    "priority": "number",
    "ttl": "number",
    "first_acquirer": "truth",
    "delivery_count": "number",
}
SINK_TYPES: Final = {
    "body": "octets",
    "value": "octets",
    "payload": "octets",
    "body_type": "text",
    "body_text": "text",
    "body_json": "text",
    "header": "struct",
    "properties": "struct",
    **_FIELDS,
    **{name: kind for name, kind in _HEADER_FIELDS.items() if name in ("durable", "priority", "ttl")},
    **dict.fromkeys(MAPS, "annotations map"),
    "application_properties": "properties map",
    **{f"{name}_types": "types map" for name in MAPS},
    "address": "text",
    "seq": "number",
    "received_at": "time",
    "delivery_tag": "octets",
    "message_format": "number",
    "peer": "text",
    "raw": "octets",
    "decode_error": "text",
}
"""The columns that a sink accepts, and the kind of values of each.

Fields of header and properties may be top-level columns.
"""


def _is(kind: str, what: pa.DataType) -> bool:
    types = pa.types
    if types.is_null(what):
        return True  # a column of nulls, as lit(None) makes it
    if kind.endswith(" map"):
        return bool(types.is_map(what)) and _is("text", what.key_type) and _is_value(kind, what.item_type)
    texts = types.is_string(what) or types.is_large_string(what)
    return bool(
        {
            "text": texts,
            "octets": texts or types.is_binary(what) or types.is_large_binary(what),
            "truth": types.is_boolean(what),
            "number": types.is_integer(what),
            "real": types.is_integer(what) or types.is_floating(what),
            "time": types.is_timestamp(what) and what.tz is not None,
            "struct": types.is_struct(what),
        }[kind]
    )


def _is_value(kind: str, what: pa.DataType) -> bool:
    """Whether values of a map of this kind may be of an Arrow type."""
    if kind == "types map":
        return _is("text", what)
    if any(_is(each, what) for each in ("octets", "truth", "real", "time")):
        return True
    if kind == "properties map":
        return False  # 3.2.5: only simple types
    if pa.types.is_list(what):
        return _is_value(kind, what.value_type)
    if pa.types.is_struct(what):
        variant = any(b"variant" in (each.metadata or {}) for each in what)  # which only Spark can decode
        return not variant and all(_is_value(kind, each.type) for each in what)
    return _is(kind, what)


_BY_TYPE: Final = {
    "boolean": "truth",
    "float": "real",
    "double": "real",
    "string": "text",
    "symbol": "text",
    "uuid": "text",
    "binary": "octets",
    "timestamp": "time",
}
"""The kind of values of a property column; other types hold whole numbers."""


def check_sink(
    schema: pa.Schema,
    *,
    ignore_unknown: bool,
    has_address: bool,
    property_columns: Iterable[tuple[str, str]] = (),
) -> None:
    """Check that rows of a schema can be messages.

    Raises:
        OptionError: a column is unknown or has a wrong type, or there is none for the body or the address.
    """
    declared = {key: _BY_TYPE.get(kind, "number") for key, kind in property_columns}
    _check_keys(declared)
    missing = [key for key in declared if key not in schema.names]
    if missing:
        raise OptionError(
            f"option 'propertyColumns': there is no column {missing[0]!r}; there are {', '.join(schema.names)}"
        )
    for each in schema:
        kind = declared.get(each.name) or SINK_TYPES.get(each.name)
        if kind is None and SOURCE_COLUMNS.get(each.name) == each.type:
            continue  # a row of a source, which keeps its annotations in a map
        if kind is None:
            if not ignore_unknown:
                raise OptionError(
                    f"no part of a message is called {each.name!r}: rename the column, drop it, or set option "
                    f"'ignoreUnknownColumns'; known are {', '.join(SINK_TYPES)}"
                )
        elif not _is(kind, each.type):
            raise OptionError(f"column {each.name!r} is {each.type}, and must be {_KINDS[kind]}")
        elif pa.types.is_struct(each.type):
            _check_struct(each.name, each.type, _FIELDS if each.name == "properties" else _HEADER_FIELDS)
    names = set(schema.names)
    _check_whole(names, has_address=has_address)


def _check_struct(name: str, struct: Iterable[pa.Field], known: dict[str, str]) -> None:
    for each in struct:
        kind = known.get(each.name)
        if kind is None:
            raise OptionError(f"column {name!r} has no field {each.name!r}; it has {', '.join(known)}")
        if not _is(kind, each.type):
            raise OptionError(f"field {each.name!r} of {name!r} is {each.type}, and must be {_KINDS[kind]}")


def _check_whole(names: set[str], *, has_address: bool) -> None:
    if not names & {"body", "value", "payload", "body_text", "raw"}:
        raise OptionError("a message needs a column 'body', 'value', 'payload', 'body_text' or 'raw'")
    if {"body", "value"} <= names:
        raise OptionError("columns 'body' and 'value' are both for the body: keep one")
    if not has_address and "address" not in names:
        raise OptionError(
            "the address of the messages is missing: set option 'address', or add a column 'address'"
        )
