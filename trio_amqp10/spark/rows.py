"""Messages to rows, rows to Arrow batches: what a reader does to each message.

A row is a tuple in the order of the schema; each column has a function that takes it from one
``Facts``. Rows are made one by one, so that a message that cannot be decoded spoils no other.

Sections: 3.2. Knows no connection, no file and no Spark.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.message import Data, Message, Sequence, Value
from trio_amqp10.wire.encode import encode
from trio_amqp10.wire.values import Symbol

from .columns import MAPS, read_schema
from .typed_json import map_to_text, map_types, to_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from .options import ReadOptions

    Getter = Callable[["Facts"], Any]
    Row = tuple[Any, ...]

__all__ = ["Facts", "RowMaker", "message_key"]

_MOST_MILLISECONDS: Final = 2**63 // 1000
"""Beyond, a moment cannot be told in microseconds."""


@dataclass(slots=True)
class Facts:
    """One message, and what is known of how it came."""

    message: Message
    payload: bytes
    tag: bytes = b""
    address: str = ""
    peer: str = ""
    received_at: int = 0
    """Microseconds since 1970."""
    seq: int = 0
    error: str | None = None


class RowMaker:
    """Makes rows as these options want them.

    Args:
        options: of a reader.

    Attributes:
        schema: of its batches.
    """

    def __init__(self, options: ReadOptions) -> None:
        self.schema: pa.Schema = read_schema(options)
        self._getters: list[Getter] = [_GETTERS[name] for name in self.schema.names]
        self._tolerant = options.on_decode_error == "deadletter-column"
        self._seq = self.schema.get_field_index("seq")

    def row(self, facts: Facts) -> Row:
        """The row of a message.

        Raises:
            RemoteProtocolError: it cannot be decoded; not where a column is there for that.
        """
        try:
            return tuple([get(facts) for get in self._getters])
        except RemoteProtocolError as fault:
            if not self._tolerant:
                raise
            facts.error = str(fault)
            return tuple(
                [
                    get(facts) if name in _SAFE else facts.payload if name in ("body", "raw") else None
                    for name, get in zip(self.schema.names, self._getters, strict=True)
                ]
            )

    def batch(self, rows: list[Row], first: int = 0) -> pa.RecordBatch:
        """Rows as one batch, numbered from ``first`` in the column ``seq``."""
        columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(self._getters)
        if self._seq >= 0:
            columns[self._seq] = range(first, first + len(rows))
        arrays = [pa.array(column, type=each.type) for column, each in zip(columns, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def message_key(message: Message) -> str | None:
    """What tells a message from all others, if its sender has given it an id; types matter (3.2.11)."""
    if message.message_format:
        return None
    text, kind = _id(message.message_id)
    return None if text is None else f"{kind}:{text}"


# Getters ------------------------------------------------------------------------------------------


def _body(facts: Facts) -> Any:
    message = facts.message
    if message.message_format:
        return facts.payload  # of its sections nothing is known (2.8.11)
    body = message.body
    if body.__class__ is bytes and _body_type(facts) == "data":
        return body
    sections = message.sections
    if not sections:
        return None
    if isinstance(sections[0], Data):
        return body
    return b"".join([encode(each.value if isinstance(each, Value) else _items(each)) for each in sections])


def _items(section: Any) -> list[Any]:
    items: list[Any] = section.lists[0]
    return items


def _body_type(facts: Facts) -> str | None:
    if facts.message.message_format:
        return None
    sections = facts.message.sections
    if not sections:
        return None
    first = sections[0]
    return "data" if isinstance(first, Data) else "sequence" if isinstance(first, Sequence) else "value"


def _body_text(facts: Facts) -> str | None:
    if facts.message.message_format:
        return None
    body = facts.message.body
    return str(body) if body.__class__ is str else None


def _body_json(facts: Facts) -> str | None:
    kind = _body_type(facts)
    return to_text(facts.message.body) if kind in ("value", "sequence") else None


_HEADER: Final = attrgetter("durable", "priority", "ttl", "first_acquirer", "delivery_count")
_PROPERTIES: Final = attrgetter(
    "message_id",
    "user_id",
    "to",
    "subject",
    "reply_to",
    "correlation_id",
    "content_type",
    "content_encoding",
    "absolute_expiry_time",
    "creation_time",
    "group_id",
    "group_sequence",
    "reply_to_group_id",
)
_NOTHING: Final = (None,) * 13


def _header(facts: Facts) -> Any:
    return None if facts.message.message_format else _HEADER(facts.message)


def _properties(facts: Facts) -> Any:
    if facts.message.message_format:
        return None
    fields = _PROPERTIES(facts.message)
    if fields == _NOTHING:
        return None
    given, user, to, subject, reply_to, correlated, kind, coding, expiry, created, group, sequence, answer = (
        fields
    )
    return (
        *_id(given),
        user,
        to,
        subject,
        reply_to,
        *_id(correlated),
        kind,
        coding,
        _microseconds(expiry),
        _microseconds(created),
        group,
        sequence,
        answer,
    )


def _id(value: Any) -> tuple[str | None, str | None]:
    """A message-id as text, and which of its four types it is (3.2.11)."""
    if value is None:
        return None, None
    if isinstance(value, str):
        return str(value), "string"
    if isinstance(value, int):
        return str(value), "ulong"
    if isinstance(value, uuid.UUID):
        return str(value), "uuid"
    return value.hex(), "binary"


def _microseconds(moment: Any) -> int | None:
    if moment is None or not -_MOST_MILLISECONDS < moment < _MOST_MILLISECONDS:
        return None
    return int(moment) * 1000


def _map(name: str) -> Getter:
    attribute = attrgetter("annotations" if name == "message_annotations" else name)

    def get(facts: Facts) -> Any:
        values = None if facts.message.message_format else attribute(facts.message)
        return map_to_text(values) if values else None

    return get


def _types(name: str) -> Getter:
    attribute = attrgetter("annotations" if name == "message_annotations" else name)
    key_type = str if name == "application_properties" else Symbol

    def get(facts: Facts) -> Any:
        values = None if facts.message.message_format else attribute(facts.message)
        return map_types(values, key_type) if values else None

    return get


_GETTERS: Final[dict[str, Getter]] = {
    "body": _body,
    "body_type": _body_type,
    "body_text": _body_text,
    "body_json": _body_json,
    "header": _header,
    "properties": _properties,
    **{name: _map(name) for name in MAPS},
    **{f"{name}_types": _types(name) for name in MAPS},
    "address": attrgetter("address"),
    "seq": attrgetter("seq"),
    "received_at": attrgetter("received_at"),
    "delivery_tag": attrgetter("tag"),
    "message_format": attrgetter("message.message_format"),
    "peer": attrgetter("peer"),
    "raw": attrgetter("payload"),
    "decode_error": attrgetter("error"),
}
_SAFE: Final = frozenset(
    {"address", "seq", "received_at", "delivery_tag", "message_format", "peer", "raw", "decode_error"}
)
"""Columns that are there however broken the message is."""
