"""Converts messages to rows, and rows to Arrow batches.

A row is a list with an item for each section that a column needs; so a message that cannot be
decoded does not affect the others. A batch then makes its columns one section at a time, for all rows at once.

The messages of a queue are similar, and equal parts are decoded once: the sections up to the
annotations, if they equal those of the message before; and each other section by a cache from octets to
values, unless the cache turns out to be useless.

Sections: 3.2. Knows neither connections, files nor Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from trio_amqp10.amqp10.message.sections import (
    ANNOTATIONS,
    APPLICATION_PROPERTIES,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    PROPERTIES,
    only_body,
)
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.core.errors import RemoteProtocolError

from . import section_columns
from .arrow_arrays import Opaque, bodies, headers, maps, properties
from .options import LogOptions
from .property_columns import ARROW_TYPES, column_reader
from .schema import read_schema
from .source_columns import SOURCE_COLUMNS, partition_of, source_arrays, source_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .options import ReadOptions

    Row = list[Any]
    Reader = tuple[int, int, Callable[[bytes, Any], Any], dict[bytes, Any] | None]
    """Reads a section into a row: its place, the item, the function, and its cache."""

_MOST_CACHED: Final = 4096
"""The most sections in a cache."""
_USES: Final = 2
"""How often a cached section must be used, on average, for the cache to be kept."""


class ReceivedMessage(Protocol):
    """The part of a delivery that becomes columns."""

    @property
    def payload(self) -> bytes:
        """The octets of the message."""
        ...

    @property
    def message_format(self) -> int:
        """The message format; 0 if the payload consists of sections (2.8.11)."""
        ...

    @property
    def tag(self) -> bytes:
        """The delivery-tag."""
        ...


@dataclass
class Rows:
    """The rows of one batch, and their messages.

    Attributes:
        sections: the row of each message, a list of values of sections.
        came: the message of each row.
        moments: when each message came, in microseconds since 1970.
        errors: why the message of a row could not be decoded, by the number of the row.
        refused: messages without a row, because they could not be decoded, with the reasons.
    """

    sections: list[Row] = field(default_factory=list["Row"])
    came: list[ReceivedMessage] = field(default_factory=list[ReceivedMessage])
    moments: list[int] = field(default_factory=list[int])
    errors: dict[int, str] = field(default_factory=dict[int, str])
    refused: list[tuple[Any, RemoteProtocolError]] = field(
        default_factory=list["tuple[Any, RemoteProtocolError]"]
    )


_PLACES: Final = {
    "application_properties": APPLICATION_PROPERTIES,
    "message_annotations": ANNOTATIONS,
    "delivery_annotations": DELIVERY_ANNOTATIONS,
    "footer": FOOTER,
}
_DECLARED: Final = "propertyColumns"
"""The name of the item of a row for all property columns."""
_SOURCE: Final = "sourceColumns"
"""The name of the item of a row for all source columns."""


class RowMaker:
    """Makes the rows that the options of a reader ask for.

    Args:
        options: of a reader.
        address: the address of the messages, if the options name several.

    Attributes:
        schema: the schema of the batches.
    """

    def __init__(self, options: ReadOptions, *, address: str | None = None) -> None:
        self.schema: pa.Schema = read_schema(options)
        names = frozenset(self.schema.names)
        self._names = names
        self._on_error = options.on_decode_error
        self._address = address or options.address or ""
        self._has_properties = "properties" in names
        wanted: list[tuple[str, int, Callable[[bytes, Any], Any]]] = [
            *([("header", HEADER, section_columns.header)] if "header" in names else []),
            *[(name, place, _pairs_of(place)) for name, place in _PLACES.items() if name in names],
            *[
                (f"{name}_types", place, _types_of(place))
                for name, place in _PLACES.items()
                if f"{name}_types" in names
            ],
        ]
        self._declared = options.property_columns
        if self._declared:
            wanted.append((_DECLARED, APPLICATION_PROPERTIES, column_reader(self._declared)))
        self._source = [name for name in SOURCE_COLUMNS if options.source_columns and name in names]
        if self._source:
            wanted.append((_SOURCE, ANNOTATIONS, source_reader(self._source)))
            streams = options.super_streams if isinstance(options, LogOptions) else None
            self._partition = partition_of(self._address, streams or ())
        self._arrays = [name for name, _, _ in wanted]
        self._no_sections = (None,) * (1 + len(wanted))
        self._only_body = not (self._has_properties or wanted)
        self._readers: list[Reader] = [
            (place, item, read, {}) for item, (_, place, read) in enumerate(wanted, 2)
        ]
        self._behind = [each for each in self._readers if each[0] > ANNOTATIONS]
        self._blank: Row = [
            None,
            None,
            *[section_columns.NO_HEADER if name == "header" else None for name in self._arrays],
        ]
        self._alike = b"", self._blank
        self._tails: section_columns.Tails = {}
        self._gathered = self._cleared = 0

    def gather(self, rows: Rows, came: Iterable[ReceivedMessage], moment: int) -> None:
        """Add rows for messages that came at one moment.

        Raises:
            RemoteProtocolError: a message cannot be decoded, and ``onDecodeError`` is ``fail``.
        """
        sections, here = rows.sections, rows.came
        before = len(here)
        for each in came:
            payload = each.payload
            try:
                if each.message_format:
                    row: Row = [Opaque(payload), *self._no_sections]
                elif self._only_body and (text := only_body(payload)) is not None:
                    row = [text]
                else:
                    row = self._read(payload)
            except RemoteProtocolError as fault:
                if self._on_error == "fail":
                    raise
                if self._on_error == "reject":
                    rows.refused.append((each, fault))
                    continue
                rows.errors[len(here)] = str(fault)
                row = [Opaque(payload), *self._no_sections]
            sections.append(row)
            here.append(each)
        rows.moments += [moment] * (len(here) - before)
        self._gathered += len(here) - before
        if not self._only_body:
            self._limit_caches()

    def _read(self, payload: bytes) -> Row:
        """Decode a message: body, properties, and the sections of ``_arrays`` in order."""
        octets, alike = self._alike
        spans = section_columns.split_behind(payload, len(octets)) if payload.startswith(octets) else None
        readers = self._behind
        if spans is None:
            spans, readers, alike = section_columns.split(payload), self._readers, self._blank
        row = alike.copy()
        row[0] = section_columns.body(payload, spans)
        if self._has_properties:
            row[1] = section_columns.properties(payload, spans[PROPERTIES], self._tails)
        for place, item, read, cache in readers:
            span = spans[place]
            if span is None:
                continue
            if cache is None:
                row[item] = read(payload, span)
                continue
            octets = payload[span[0] : span[1]]
            if octets in cache:
                row[item] = cache[octets]
            else:
                row[item] = cache[octets] = read(payload, span)
        if readers is not self._behind:
            self._remember_beginning(payload, spans, row)
        return row

    def _remember_beginning(self, payload: bytes, spans: section_columns.Spans, row: Row) -> None:
        """Keep the sections up to the annotations; the next message may begin with them."""
        end = max([span[1] for span in spans[: ANNOTATIONS + 1] if span is not None], default=0)
        alike = self._blank.copy()
        for place, item, _, _ in self._readers:
            if place <= ANNOTATIONS:
                alike[item] = row[item]
        self._alike = payload[:end], alike

    def _limit_caches(self) -> None:
        """Clear caches that are full, and drop those that were hardly used."""
        if len(self._tails) > _MOST_CACHED:
            self._tails.clear()
        full = [
            place for place, _, _, cache in self._readers if cache is not None and len(cache) > _MOST_CACHED
        ]
        if full:
            useless = self._gathered - self._cleared < _USES * _MOST_CACHED
            self._cleared = self._gathered
            self._readers = [
                (place, item, read, None if place in full and useless else {})
                for place, item, read, _ in self._readers
            ]
            self._behind = [each for each in self._readers if each[0] > ANNOTATIONS]

    # -- columns ----------------------------------------------------------------------------

    def batch(self, rows: Rows, numbers: Iterable[int], *, peer: str = "") -> pa.RecordBatch:
        """Return the rows as one batch; ``numbers`` are the column ``seq``."""
        count = len(rows.sections)
        names = self._names
        made: dict[str, pa.Array] = bodies([row[0] for row in rows.sections], names)
        if "properties" in names:
            made["properties"] = properties([row[1] for row in rows.sections])
        for item, name in enumerate(self._arrays, 2):
            column = [row[item] for row in rows.sections]
            if name == _DECLARED:
                made |= self._property_columns(column)
                continue
            if name == _SOURCE:
                made |= source_arrays(self._source, column, self._partition)
                continue
            made[name] = headers(column) if name == "header" else maps(column)
        around: dict[str, Callable[[], Any]] = {
            "address": lambda: [self._address] * count,
            "seq": lambda: numbers,
            "received_at": lambda: rows.moments,
            "delivery_tag": lambda: [each.tag for each in rows.came],
            "message_format": lambda: [each.message_format for each in rows.came],
            "peer": lambda: [peer] * count,
            "raw": lambda: [each.payload for each in rows.came],
            "decode_error": lambda: map(rows.errors.get, range(count)),
        }
        arrays = [
            made[each.name] if each.name in made else pa.array(around[each.name](), each.type)
            for each in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _property_columns(self, rows: list[tuple[Any, ...] | None]) -> dict[str, pa.Array]:
        return {
            key: pa.array([None if row is None else row[place] for row in rows], ARROW_TYPES[kind])
            for place, (key, kind) in enumerate(self._declared)
        }


def _pairs_of(place: int) -> Callable[[bytes, Any], Any]:
    return lambda payload, span: section_columns.pairs(place, payload, span)


def _types_of(place: int) -> Callable[[bytes, Any], Any]:
    key_type = str if place == APPLICATION_PROPERTIES else Symbol
    return lambda payload, span: section_columns.types(place, payload, span, key_type)
