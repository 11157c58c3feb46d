"""Messages to rows, rows to Arrow batches: what a reader does to each message.

A row is one tuple with an item for each section that a column needs; so a message that cannot be
decoded spoils no other. A batch then makes its columns a section at a time, for all rows at once.

Sections: 3.2. Knows no connection, no file and no Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from trio_amqp10._sections import (
    ANNOTATIONS,
    APPLICATION_PROPERTIES,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    PROPERTIES,
    Data,
    Sequence,
    Value,
    only_body,
)
from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.wire.encode import encode
from trio_amqp10.wire.values import Symbol

from . import parts
from .columns import HEADER as HEADER_TYPE
from .columns import PROPERTIES as PROPERTIES_TYPE
from .columns import read_schema
from .typed_json import to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Sequence as Several

    from .options import ReadOptions

    Row = tuple[Any, ...]

__all__ = ["Came", "RowMaker", "Rows"]

_MOST_MEMORIES: Final = 4096
"""Sections that are remembered, because many messages have the same."""


class Came(Protocol):
    """What a delivery has that becomes columns."""

    @property
    def payload(self) -> bytes:
        """The octets of the message."""
        ...

    @property
    def message_format(self) -> int:
        """Whether those are sections."""
        ...

    @property
    def tag(self) -> bytes:
        """The sender's name for the delivery."""
        ...


@dataclass
class Rows:
    """Rows of one batch, and what they came as.

    Attributes:
        sections: of each row, a tuple.
        came: the messages behind them.
        moments: when, in microseconds since 1970.
        keys: what tells one message from all others, if its sender has given it an id; empty unless asked for.
        errors: why a message could not be decoded, for those rows that could not.
        refused: messages that could not be decoded and are no rows, with the reasons.
    """

    sections: list[Row] = field(default_factory=list["Row"])
    came: list[Came] = field(default_factory=list[Came])
    moments: list[int] = field(default_factory=list[int])
    keys: list[str | None] = field(default_factory=list["str | None"])
    errors: dict[int, str] = field(default_factory=dict[int, str])
    refused: list[tuple[Any, RemoteProtocolError]] = field(
        default_factory=list["tuple[Any, RemoteProtocolError]"]
    )

    def only(self, places: list[int]) -> Rows:
        """The same without all other rows."""
        return Rows(
            [self.sections[place] for place in places],
            [self.came[place] for place in places],
            [self.moments[place] for place in places],
            [self.keys[place] for place in places],
            {new: self.errors[old] for new, old in enumerate(places) if old in self.errors},
            self.refused,
        )


class _Opaque(bytes):
    """A payload of whose sections nothing is known: of another format (2.8.11), or broken."""


_PLACES: Final = {
    "application_properties": APPLICATION_PROPERTIES,
    "message_annotations": ANNOTATIONS,
    "delivery_annotations": DELIVERY_ANNOTATIONS,
    "footer": FOOTER,
}
_NO_SECTIONS: Final = (None,) * 10


class RowMaker:
    """Makes rows as these options want them.

    Args:
        options: of a reader.
        keyed: whether to find out what tells each message from all others.
        address: where they come from, if the options name several.

    Attributes:
        schema: of its batches.
    """

    def __init__(self, options: ReadOptions, *, keyed: bool = False, address: str | None = None) -> None:
        self.schema: pa.Schema = read_schema(options)
        names = frozenset(self.schema.names)
        self._names = names
        self._keyed = keyed
        self._on_error = options.on_decode_error
        self._address = address or options.address or ""
        self._has_properties = keyed or "properties" in names
        self._readers: list[tuple[int, Callable[[bytes, Any], Any]]] = [
            *([(HEADER, parts.header)] if "header" in names else []),
            *[(place, _pairs_of(place)) for name, place in _PLACES.items() if name in names],
            *[(place, _types_of(place)) for name, place in _PLACES.items() if f"{name}_types" in names],
        ]
        self._arrays: list[str] = [
            *(["header"] if "header" in names else []),
            *[name for name in _PLACES if name in names],
            *[f"{name}_types" for name in _PLACES if f"{name}_types" in names],
        ]
        self._only_body = not (self._has_properties or self._readers)
        self._memories: list[dict[bytes, Any]] = [{} for _ in self._readers]

    def gather(self, rows: Rows, came: Iterable[Came], moment: int) -> None:
        """Add messages that came at one moment.

        Raises:
            RemoteProtocolError: one cannot be decoded, and that is to be an error.
        """
        sections, here = rows.sections, rows.came
        before = len(here)
        for each in came:
            payload = each.payload
            try:
                if each.message_format:
                    row: Row = (_Opaque(payload), *_NO_SECTIONS)
                elif self._only_body and (text := only_body(payload)) is not None:
                    row = (text,)
                else:
                    row = self._read(payload)
            except RemoteProtocolError as fault:
                if self._on_error == "fail":
                    raise
                if self._on_error == "reject":
                    rows.refused.append((each, fault))
                    continue
                rows.errors[len(here)] = str(fault)
                row = (_Opaque(payload), *_NO_SECTIONS)
            sections.append(row)
            here.append(each)
        rows.moments += [moment] * (len(here) - before)
        if self._keyed:
            rows.keys += [_key(row[1]) for row in sections[before:]]

    def _read(self, payload: bytes) -> Row:
        """Body, properties, and what else is wanted, in the order of ``_arrays``."""
        spans = parts.split(payload)
        row = [
            parts.body(payload, spans),
            parts.properties(payload, spans[PROPERTIES]) if self._has_properties else None,
        ]
        for (place, read), memory in zip(self._readers, self._memories, strict=True):
            span = spans[place]
            if span is None:
                row.append(parts.NO_HEADER if place == HEADER else None)
                continue
            octets = payload[span[0] : span[1]]
            if octets in memory:
                row.append(memory[octets])
                continue
            found = read(payload, span)
            if len(memory) >= _MOST_MEMORIES:
                memory.clear()
            memory[octets] = found
            row.append(found)
        return tuple(row)

    # -- columns ----------------------------------------------------------------------------

    def batch(self, rows: Rows, numbers: Iterable[int], *, peer: str = "") -> pa.RecordBatch:
        """Rows as one batch; their numbers are the column ``seq``."""
        count = len(rows.sections)
        names = self._names
        made: dict[str, pa.Array] = _bodies([row[0] for row in rows.sections], names)
        if "properties" in names:
            made["properties"] = _properties([row[1] for row in rows.sections])
        for place, name in enumerate(self._arrays, 2):
            column = [row[place] for row in rows.sections]
            made[name] = pa.array(column, HEADER_TYPE) if name == "header" else _map(column)
        around: dict[str, Callable[[], Iterable[Any]]] = {
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


def _pairs_of(place: int) -> Callable[[bytes, Any], Any]:
    return lambda payload, span: parts.pairs(place, payload, span)


def _types_of(place: int) -> Callable[[bytes, Any], Any]:
    key_type = str if place == APPLICATION_PROPERTIES else Symbol
    return lambda payload, span: parts.types(place, payload, span, key_type)


def _key(properties: Any) -> str | None:
    return None if properties is None or properties[0] is None else f"{properties[1]}:{properties[0]}"


# A section of all rows ----------------------------------------------------------------------------

_TEXT: Final = pa.string()
_KINDS: Final[dict[type, str | None]] = {
    bytes: "data",
    Data: "data",
    Sequence: "sequence",
    _Opaque: None,
    type(None): None,
}


def _bodies(bodies: list[Any], names: frozenset[str]) -> dict[str, pa.Array]:
    count = len(bodies)
    made: dict[str, pa.Array] = {}
    classes = set(map(type, bodies))
    simple = classes <= {bytes}
    if "body" in names:
        made["body"] = pa.array(bodies if simple else map(_octets, bodies), pa.binary())
    if "body_type" in names:
        kinds = ["data"] * count if simple else [_KINDS.get(each.__class__, "value") for each in bodies]
        made["body_type"] = pa.array(kinds, _TEXT)
    if "body_text" in names:
        made["body_text"] = (
            pa.array([each if each.__class__ is str else None for each in bodies], _TEXT)
            if str in classes
            else pa.nulls(count, _TEXT)
        )
    if "body_json" in names:
        made["body_json"] = pa.nulls(count, _TEXT) if simple else pa.array(map(_json, bodies), _TEXT)
    return made


def _octets(body: Any) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    if isinstance(body, Data):
        return b"".join(body.chunks)
    if isinstance(body, Sequence):
        return b"".join([encode(items) for items in body.lists])
    return encode(body.value if isinstance(body, Value) else body)


def _json(body: Any) -> str | None:
    if _KINDS.get(body.__class__, "value") not in ("value", "sequence"):
        return None
    if isinstance(body, Sequence):
        return to_text([item for items in body.lists for item in items])
    return to_text(body.value if isinstance(body, Value) else body)


_PROPERTIES: Final = list(PROPERTIES_TYPE)
"""The fields of the struct."""


def _properties(rows: list[Any]) -> pa.Array:
    count = len(rows)
    said = [parts.NO_PROPERTIES if row is None else row for row in rows]
    columns: Iterable[Several[Any]] = zip(*said, strict=True) if said else [()] * 15
    arrays = [
        pa.nulls(count, each.type) if column.count(None) == count else pa.array(column, each.type)
        for each, column in zip(_PROPERTIES, columns, strict=True)
    ]
    return pa.StructArray.from_arrays(
        arrays, fields=_PROPERTIES, mask=pa.array([row is None for row in rows], pa.bool_())
    )


_MAP: Final = pa.map_(_TEXT, _TEXT)


def _map(rows: list[Any]) -> pa.Array:
    if rows.count(None) == len(rows):
        return pa.nulls(len(rows), _MAP)
    return pa.array(rows, _MAP)
