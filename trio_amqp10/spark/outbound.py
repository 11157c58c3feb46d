"""Arrow batches to messages: what a sink does to each row.

The reverse of ``rows``: what a source has read, a sink takes as it is. Columns that only tell how a
message came (``seq``, ``received_at``, ``delivery_tag``, ``peer``) are not sent, nor are the two fields of
a header that belong to one journey, first-acquirer and delivery-count. Fields of header and properties
may also stand alone, as columns of their own, and then go before those in the structs.

Sections: 3.2. Knows no connection and no Spark.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.message import Message, Sequence, Value
from trio_amqp10.wire.decode import decode
from trio_amqp10.wire.values import Symbol, Timestamp

from .columns import MAPS, SINK_TYPES
from .typed_json import UnfitError, map_from_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .options import SinkOptions

__all__ = ["Outbound", "messages"]

_INSTANT: Final = pa.int64()
"""Moments are read as microseconds: a datetime ends with the year 9999, and AMQP does not."""
_ALONE: Final = (
    "message_id",
    "message_id_type",
    "user_id",
    "to",
    "subject",
    "reply_to",
    "correlation_id",
    "correlation_id_type",
    "content_type",
    "content_encoding",
    "absolute_expiry_time",
    "creation_time",
    "group_id",
    "group_sequence",
    "reply_to_group_id",
    "durable",
    "priority",
    "ttl",
)
_ATTRIBUTES: Final = {name: "annotations" if name == "message_annotations" else name for name in MAPS}


class Outbound(NamedTuple):
    """A message, and where it goes."""

    address: str
    message: Message


def messages(batch: pa.RecordBatch, options: SinkOptions) -> Iterator[Outbound]:
    """A message for each row.

    Raises:
        UnfitError: a row cannot be a message; says which, and why.
    """
    columns = {
        name: _plain(batch.column(place)).to_pylist()
        for place, name in enumerate(batch.schema.names)
        if name in SINK_TYPES
    }
    names = tuple(columns)
    for number, values in enumerate(zip(*columns.values(), strict=True)):
        row = dict(zip(names, values, strict=True))
        try:
            yield Outbound(_address(row, options), _message(row, options))
        except (LocalProtocolError, RemoteProtocolError, ValueError) as wrong:
            raise UnfitError(f"row {number} of this batch cannot be a message: {wrong}") from wrong


def _plain(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", tz=kind.tz)).cast(_INSTANT)
    if pa.types.is_struct(kind) and any(pa.types.is_timestamp(each.type) for each in kind):
        fields = [(each.name, _INSTANT if pa.types.is_timestamp(each.type) else each.type) for each in kind]
        return column.cast(pa.struct(fields))
    return column


def _address(row: dict[str, Any], options: SinkOptions) -> str:
    address = options.address or row.get("address")
    if not address:
        raise UnfitError("column 'address' is null, and there is no option 'address'")
    return str(address)


def _message(row: dict[str, Any], options: SinkOptions) -> Message:
    raw = row.get("raw")
    message_format = row.get("message_format") or 0
    if raw is not None:
        return _replayed(bytes(raw), message_format)
    if message_format:
        return Message.from_payload(bytes(row.get("body") or b""), message_format)
    header: dict[str, Any] = row.get("header") or {}
    properties: dict[str, Any] = row.get("properties") or {}
    fields: dict[str, Any] = {
        **properties,
        **header,
        **{name: row[name] for name in _ALONE if row.get(name) is not None},
    }
    said: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    for name in ("message_id", "correlation_id"):
        kind = said.pop(f"{name}_type", "string")
        if name in said:
            said[name] = _id(said[name], kind)
    for name in ("absolute_expiry_time", "creation_time"):
        if name in said:
            said[name] = _milliseconds(said[name])
    if isinstance(said.get("user_id"), str):
        said["user_id"] = said["user_id"].encode()
    said.pop("first_acquirer", None)
    said.pop("delivery_count", None)
    return Message(_body(row, options), **_header(said, options), **_maps(row))


def _header(said: dict[str, Any], options: SinkOptions) -> dict[str, Any]:
    """With the options' word where the row has none; what is the default anyway is not sent."""
    if options.durable is not None:
        said.setdefault("durable", options.durable)
    if options.ttl is not None:
        said.setdefault("ttl", round(options.ttl * 1000))
    if said.get("durable") is False:
        del said["durable"]
    if said.get("priority") == 4:
        del said["priority"]
    return said


def _replayed(payload: bytes, message_format: int) -> Message:
    """As it was archived, without what belongs to the journey that it was taken from (3.2.1, 3.2.2)."""
    message = Message.from_payload(payload, message_format)
    if not message_format:
        if message.delivery_count:
            message.delivery_count = None
        if message.first_acquirer:
            message.first_acquirer = None
        if message.delivery_annotations:
            message.delivery_annotations = None
    return message


def _body(row: dict[str, Any], options: SinkOptions) -> Any:
    body = row.get("body")
    if body is None:
        body = row.get("value")
    kind = row.get("body_type")
    if body is None:
        text = row.get("body_text")
        return Value(text) if text is not None or kind != "data" else b""
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
    raise UnfitError(f"a body of body_type {kind!r} does not hold that: {octets[:20]!r}")


def _values(octets: bytes) -> Iterator[Any]:
    position = 0
    while position < len(octets):
        value, position = decode(octets, position)
        yield value


def _id(text: str, kind: str) -> Any:
    if kind == "string":
        return text
    if kind == "ulong":
        return int(text)
    if kind == "uuid":
        return uuid.UUID(text)
    if kind == "binary":
        return bytes.fromhex(text)
    raise UnfitError(f"an id is a string, ulong, uuid or binary, not {kind!r}")


def _milliseconds(microseconds: int) -> Timestamp:
    return Timestamp(microseconds // 1000)


def _maps(row: dict[str, Any]) -> dict[str, Any]:
    maps: dict[str, Any] = {}
    for name, attribute in _ATTRIBUTES.items():
        pairs = row.get(name)
        if pairs:
            key_type = str if name == "application_properties" else Symbol
            maps[attribute] = map_from_text(pairs, row.get(f"{name}_types"), key_type)
    return maps
