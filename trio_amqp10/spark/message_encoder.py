"""Converts Arrow batches to messages: the rows of a sink.

The reverse of ``rows``. A section is made for all rows at once, straight from the columns;
only unusual values are converted row by row. A sink accepts the rows of a source unchanged.
The columns that describe a delivery (``seq``, ``received_at``, ``delivery_tag``, ``peer``) are not sent,
nor are first-acquirer and delivery-count of the header, which describe a former delivery (3.2.1). Fields of
header and properties may also be top-level columns, which take precedence over the structs.

Sections: 3.2. Knows neither connections nor Spark.
"""

from __future__ import annotations

import hashlib
import uuid
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from trio_amqp10.amqp10.message import Message, Sequence, Value, encode_message
from trio_amqp10.amqp10.message.fields import (
    HEADER_CHECKS,
    HEADER_FIELDS,
    PROPERTY_CHECKS,
    PROPERTY_FIELDS,
    checked_fields,
)
from trio_amqp10.amqp10.message.section_writers import SECTION_WRITERS, write_body
from trio_amqp10.amqp10.message.sections import (
    ANNOTATIONS,
    APPLICATION_PROPERTIES,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    PROPERTIES,
)
from trio_amqp10.amqp10.wire import codes
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.values import Byte, Float, Int, Short, Symbol, Timestamp, ULong
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

from .property_columns import merged
from .schema import SINK_TYPES
from .typed_json import UnfitError, map_from_text

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from .options import SinkOptions

    Columns = dict[str, list[Any]]

_INSTANT: Final = pa.int64()
"""The type for reading times: a datetime could not be after the year 9999."""
_DUPLICATE: Final = "_AMQ_DUPL_ID"
"""The application property by which Artemis detects duplicates."""


class OutgoingBatch(NamedTuple):
    """The messages of a batch.

    Attributes:
        addresses: the address of each message.
        messages: the messages.
        rows: the batch; None if rows that are not accepted need not be kept.
        numbers: the row of each message; empty if all rows are messages.
        unfit: the other rows, each with the reason why it cannot be a message.
    """

    addresses: list[str]
    messages: list[Message]
    rows: pa.RecordBatch | None = None
    numbers: tuple[int, ...] = ()
    unfit: tuple[tuple[int, str], ...] = ()


def encode_batch(
    batch: pa.RecordBatch, options: SinkOptions, *, name: str | None = None, first: int = 0
) -> OutgoingBatch:
    """Return a message for each row.

    If ``onReject`` is not ``fail``, rows that cannot be messages are left out.

    Args:
        batch: the rows.
        options: of the sink.
        name: of the task. A row without a message-id gets one of this name and the number of the row, or, if the
            name is None, a digest of its content.
        first: the number of the first row.

    Raises:
        UnfitError: a row cannot be a message; the text has its number and the reason.
    """
    try:
        addresses, messages = _encode(batch, options, name, first)
        return OutgoingBatch(addresses, messages, batch)
    except (LocalProtocolError, RemoteProtocolError, ValueError):
        found = _encode_each(batch, options, name, first)
        if not found.unfit:
            raise
        return found


def _encode_each(batch: pa.RecordBatch, options: SinkOptions, name: str | None, first: int) -> OutgoingBatch:
    """Do as ``encode_batch`` row by row."""
    addresses: list[str] = []
    messages: list[Message] = []
    numbers: list[int] = []
    unfit: list[tuple[int, str]] = []
    for number in range(batch.num_rows):
        try:
            address, message = _encode(batch.slice(number, 1), options, name, first + number)
        except (LocalProtocolError, RemoteProtocolError, ValueError) as wrong:
            reason = f"row {number} of this batch cannot be a message: {wrong}"
            if options.on_reject == "fail":
                raise UnfitError(reason) from wrong
            unfit.append((number, reason))
        else:
            addresses += address
            messages += message
            numbers.append(number)
    return OutgoingBatch(addresses, messages, batch, tuple(numbers), tuple(unfit))


def _encode(
    batch: pa.RecordBatch, options: SinkOptions, name: str | None, first: int
) -> tuple[list[str], list[Message]]:
    """Return the addresses and the messages of all rows."""
    columns = _columns(batch, options)
    count = batch.num_rows
    addresses = [options.address] * count if options.address else columns.get("address", [None] * count)
    if not all(addresses):
        raise UnfitError("column 'address' is null, and there is no option 'address'")
    formats = columns.get("message_format", [])
    if "raw" not in columns and not any(formats):
        identified = _with_ids(columns, count, options, name, first)
        return addresses, [Message.from_payload(each) for each in _payloads(identified, count, options)]
    messages: list[Message] = []
    raws = columns.get("raw")
    for number in range(count):
        message_format = (formats[number] or 0) if formats else 0
        if raws is not None and raws[number] is not None:
            with _column("raw"):
                messages.append(_replayed(bytes(raws[number]), message_format))
            continue
        row = {key: column[number : number + 1] for key, column in columns.items()}
        if message_format:
            payload = bytes(row.get("body", [None])[0] or b"")
        else:
            # Rows of an archive (with ``raw``) are sent unchanged.
            row_columns = row if raws is not None else _with_ids(row, 1, options, name, first + number)
            payload = _payloads(row_columns, 1, options)[0]
        messages.append(Message.from_payload(payload, message_format))
    return addresses, messages


def _columns(batch: pa.RecordBatch, options: SinkOptions) -> Columns:
    """Return the columns as lists, by name.

    A field of a struct is called ``.field``. Property columns are merged into ``application_properties``.
    """
    columns: Columns = {}
    declared = options.property_columns
    own = [key for key, _ in declared]
    for place, name in enumerate(batch.schema.names):
        column = batch.column(place)
        if name in own:
            continue
        if name in ("header", "properties") and pa.types.is_struct(column.type):
            for each, child in zip(column.type, column.flatten(), strict=True):
                columns[f".{each.name}"] = _plain(child).to_pylist()
        elif name in _PLACES and pa.types.is_map(column.type):
            columns[name] = _typed_maps(column)
        elif name in SINK_TYPES:
            columns[name] = _plain(column).to_pylist()
    payload = columns.pop("payload", None)
    if payload is not None and not columns.keys() & {"body", "value", "body_text", "raw"}:
        columns["body"] = payload  # only if no other column has the body with its type
    if declared:
        values = [_plain(batch.column(batch.schema.names.index(key))).to_pylist() for key in own]
        name, nothing = "application_properties", [None] * batch.num_rows
        maps, types = columns.get(name, nothing), columns.get(f"{name}_types", nothing)
        columns[name], columns[f"{name}_types"] = merged(declared, values, maps, types)
    return columns


def _plain(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", tz=kind.tz)).cast(_INSTANT)
    return column


def _typed_maps(column: pa.Array) -> list[Any]:
    """Return the pairs of a map column, each value as the AMQP type of its own."""
    rows: list[Any] = column.to_pylist()
    make = _maker(column.type.item_type)
    if make is None:
        return rows
    return [None if row is None else [(key, make(value)) for key, value in row] for row in rows]


_MAKERS: Final[dict[pa.DataType, Callable[[Any], Any]]] = {
    pa.int8(): Byte,
    pa.int16(): Short,
    pa.int32(): Int,
    pa.float32(): Float,
}
"""The AMQP types of Arrow types that are not those of plain Python values."""


def _maker(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """Return what converts a value of an Arrow type to an AMQP value.

    None if nothing must be converted.
    """
    if pa.types.is_list(kind):
        item = _maker(kind.value_type) or _unchanged
        return _but_null(lambda values: [*map(item, values)])
    if pa.types.is_map(kind):
        value_of = _maker(kind.item_type) or _unchanged
        return _but_null(lambda pairs: {key: value_of(value) for key, value in pairs})
    if pa.types.is_struct(kind):
        makers = {each.name: _maker(each.type) or _unchanged for each in kind}
        return _but_null(lambda fields: {key: makers[key](value) for key, value in fields.items()})
    make = _MAKERS.get(kind)
    return None if make is None else _but_null(make)


def _but_null(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else make(value)


def _unchanged(value: Any) -> Any:
    return value


def _field(columns: Columns, name: str) -> list[Any] | None:
    """Return a field of header or properties, from its column or from the struct."""
    alone, inside = columns.get(name), columns.get(f".{name}")
    if alone is None or inside is None:
        return inside if alone is None else alone
    return [other if one is None else one for one, other in zip(alone, inside, strict=True)]


def _with_ids(columns: Columns, count: int, options: SinkOptions, name: str | None, first: int) -> Columns:
    """Return the columns with a message-id in each row, the same one in each attempt."""
    if options.dedup_id == "none":
        return columns
    ids = _field(columns, "message_id") or [None] * count
    if None in ids:
        if name is None:
            made = [hashlib.sha256(each).hexdigest() for each in _payloads(columns, count, options)]
        else:
            made = [f"{name}-{number}" for number in range(first, first + count)]
        kinds = _field(columns, "message_id_type") or ["string"] * count
        columns = {
            **columns,
            "message_id_type": [
                "string" if one is None else kind for one, kind in zip(ids, kinds, strict=True)
            ],
        }
        ids = [new if one is None else one for one, new in zip(ids, made, strict=True)]
        columns["message_id"] = ids
    if options.dedup_id == "artemis":
        pairs = columns.get("application_properties") or [None] * count
        columns = {
            **columns,
            "application_properties": [
                [*[pair for pair in has or () if pair[0] != _DUPLICATE], (_DUPLICATE, one)]
                for has, one in zip(pairs, ids, strict=True)
            ],
        }
    return columns


@contextmanager
def _column(name: str) -> Generator[None]:
    """Name the column in the error of a value that does not fit."""
    try:
        yield
    except (LocalProtocolError, RemoteProtocolError, ValueError) as wrong:
        raise UnfitError(f"column {name!r}: {wrong}") from wrong


# Sections of all rows -----------------------------------------------------------------------------


def _payloads(columns: Columns, count: int, options: SinkOptions) -> list[bytes]:
    sections = [
        _headers(columns, count, options),
        _maps(columns, "delivery_annotations"),
        _maps(columns, "message_annotations"),
        _properties(columns, count),
        _maps(columns, "application_properties"),
        _bodies(columns, count, options),
        _maps(columns, "footer"),
    ]
    present = [section for section in sections if section is not None]
    return present[0] if len(present) == 1 else list(map(b"".join, zip(*present, strict=True)))


def _headers(columns: Columns, count: int, options: SinkOptions) -> list[bytes] | None:
    durable, priority, ttl = [_field(columns, name) for name in ("durable", "priority", "ttl")]
    lasting = None if options.ttl is None else round(options.ttl * 1000)
    if durable is None and priority is None and ttl is None:
        octets = _header(options.durable, None, lasting)
        return [octets] * count if octets else None
    nothing = [None] * count
    return [
        _header(options.durable if kept is None else kept, rank, lasting if life is None else life)
        for kept, rank, life in zip(durable or nothing, priority or nothing, ttl or nothing, strict=True)
    ]


@lru_cache(1024)
def _header(durable: bool | None, priority: int | None, ttl: int | None) -> bytes:
    """Return the header section; fields with default values are left out."""
    out = bytearray()
    fields = checked_fields(HEADER_FIELDS, HEADER_CHECKS, [durable, priority, ttl, None, None])
    SECTION_WRITERS[HEADER](out, fields)
    return bytes(out)


_TEXTS: Final = frozenset({"to", "subject", "reply_to", "group_id", "reply_to_group_id"})
"""The fields that accept any string."""


def _properties(columns: Columns, count: int) -> list[bytes] | None:
    fields: list[list[Any]] = []
    last = 0
    for index, name in enumerate(PROPERTY_FIELDS):
        column = _field(columns, name)
        if column is None or column.count(None) == count:
            fields.append([None] * count)
            continue
        last = index + 1
        if name in ("message_id", "correlation_id"):
            kinds = _field(columns, f"{name}_type")
            if kinds is not None and {*kinds} != {"string"}:
                with _column(name):
                    column = [
                        None if one is None else _id(one, kind or "string")
                        for one, kind in zip(column, kinds, strict=True)
                    ]
        elif name in ("absolute_expiry_time", "creation_time"):
            with _column(name):
                column = [None if one is None else Timestamp(one // 1000) for one in column]
        elif name not in _TEXTS:
            column = [one.encode() if name == "user_id" and isinstance(one, str) else one for one in column]
            check = PROPERTY_CHECKS[index]
            column = [None if one is None else check(name, one) for one in column]
        fields.append(column)
    if not last:
        return None
    write = SECTION_WRITERS[PROPERTIES]
    made: list[bytes] = []
    for row in zip(*fields[:last], strict=True):
        out = bytearray()
        write(out, row)
        made.append(bytes(out))
    return made


_PLACES: Final = {
    "delivery_annotations": DELIVERY_ANNOTATIONS,
    "message_annotations": ANNOTATIONS,
    "application_properties": APPLICATION_PROPERTIES,
    "footer": FOOTER,
}


def _maps(columns: Columns, name: str) -> list[bytes] | None:
    rows = columns.get(name)
    if rows is None or not any(rows):
        return None
    place = _PLACES[name]
    types = columns.get(f"{name}_types") or [None] * len(rows)
    with _column(name):
        return [
            _map(place, pairs, row_types) if pairs else b""
            for pairs, row_types in zip(rows, types, strict=True)
        ]


def _map(place: int, pairs: list[tuple[str, Any]], types: list[tuple[str, str]] | None) -> bytes:
    if types:
        named = dict(types)
        entries = [_entry(place, key, value, named.get(key)) for key, value in pairs]
    else:
        entries = [_entry(place, key, value, None) for key, value in pairs]
    octets = b"".join(entries)
    size, count = len(octets) + 1, 2 * len(entries)
    if size < 256 and count < 256:
        return b"%b%c%c%c%b" % (_PREFIXES[place], codes.MAP8, size, count, octets)
    head = bytes((codes.MAP32,)) + (size + 3).to_bytes(4, "big") + count.to_bytes(4, "big")
    return _PREFIXES[place] + head + octets


def _entry(place: int, key: str, value: Any, type_name: str | None) -> bytes:
    """Return the encoded entry of a map."""
    try:
        return _usual_entry(place, key, value, type_name)
    except TypeError:  # an unhashable value, e.g. a list, cannot be cached
        return _usual_entry.__wrapped__(place, key, value, type_name)


@lru_cache(16384, typed=True)  # true, 1 and 1.0 are different values
def _usual_entry(place: int, key: str, value: Any, type_name: str | None) -> bytes:
    key_type = str if place == APPLICATION_PROPERTIES else Symbol
    out = bytearray()
    types = None if type_name is None else [(key, type_name)]
    SECTION_WRITERS[place](out, map_from_text([(key, value)], types, key_type))
    return bytes(out[6:] if out[3] == codes.MAP8 else out[12:])


_PREFIXES: Final = {
    DELIVERY_ANNOTATIONS: b"\x00\x53\x71",
    ANNOTATIONS: b"\x00\x53\x72",
    APPLICATION_PROPERTIES: b"\x00\x53\x74",
    FOOTER: b"\x00\x53\x78",
}


def _bodies(columns: Columns, count: int, options: SinkOptions) -> list[bytes]:
    bodies = columns.get("body", columns.get("value"))
    kinds = columns.get("body_type")
    if bodies is not None and kinds is None and options.body_type == "auto" and None not in bodies:
        return [encode_message(each) for each in bodies]
    nothing: list[Any] = [None] * count
    texts = columns.get("body_text", nothing)
    made: list[bytes] = []
    with _column("body"):
        for body, kind, text in zip(bodies or nothing, kinds or nothing, texts, strict=True):
            if kind == "data" and body.__class__ is bytes:
                made.append(encode_message(body))
            else:
                out = bytearray()
                write_body(out, _body(body, kind, text, options))
                made.append(bytes(out))
    return made


# Conversion row by row ----------------------------------------------------------------------------


def _body(body: Any, kind: str | None, text: str | None, options: SinkOptions) -> Any:
    if body is None:
        return Value(text) if text is not None or (kind or options.body_type) != "data" else b""
    if kind is None:
        kind = options.body_type
        if kind == "value" or (kind == "auto" and isinstance(body, str)):
            return Value(body)
        kind = "data"
    octets: bytes = body.encode() if isinstance(body, str) else body
    if kind == "data":
        return octets
    if isinstance(body, str):
        return Value(body)
    values = list(_values(octets))
    if kind == "value" and len(values) == 1:
        return Value(values[0])
    if kind == "sequence" and all(isinstance(each, list) for each in values):
        return Sequence(*values)
    raise UnfitError(f"a body with body_type {kind!r} cannot hold {octets[:20]!r}")


def _values(octets: bytes) -> Iterator[Any]:
    position = 0
    while position < len(octets):
        value, position = decode(octets, position)
        yield value


def _id(text: str, kind: str) -> Any:
    if kind == "string":
        return text
    if kind == "ulong":
        return ULong(int(text))
    if kind == "uuid":
        return uuid.UUID(text)
    if kind == "binary":
        return bytes.fromhex(text)
    raise UnfitError(f"an id is a string, ulong, uuid or binary, not {kind!r}")


def _replayed(payload: bytes, message_format: int) -> Message:
    """Return an archived message, without the fields of its former transfer.

    These are delivery-count, first-acquirer (3.2.1) and delivery-annotations (3.2.2).
    """
    message = Message.from_payload(payload, message_format)
    if not message_format:
        if message.delivery_count:
            message.delivery_count = None
        if message.first_acquirer:
            message.first_acquirer = None
        if message.delivery_annotations:
            message.delivery_annotations = None
    return message
