"""Turns one section of all rows into Arrow arrays (3.2).

Knows the values that ``section_columns`` reads; neither octets nor options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from trio_amqp10.amqp10.message.sections import Data, Sequence, Value
from trio_amqp10.amqp10.wire.encode import encode

from .schema import HEADER, PROPERTIES
from .section_columns import NO_PROPERTIES
from .typed_json import to_json_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Sequence as Several


class Opaque(bytes):
    """A payload without known sections: of another format (2.8.11), or damaged."""


_TEXT: Final = pa.string()
_KINDS: Final[dict[type, str | None]] = {
    bytes: "data",
    Data: "data",
    Sequence: "sequence",
    Opaque: None,
    type(None): None,
}


def bodies(bodies: list[Any], names: frozenset[str]) -> dict[str, pa.Array]:
    """Return the columns of the bodies, as far as ``names`` has them."""
    count = len(bodies)
    made: dict[str, pa.Array] = {}
    classes = set(map(type, bodies))
    simple = classes <= {bytes}
    if "body" in names:
        made["body"] = pa.array(bodies if simple else map(_octets, bodies), pa.binary())
    if "payload" in names:
        made["payload"] = pa.array(bodies if simple else map(_content, bodies), pa.binary())
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


def _content(body: Any) -> bytes | None:
    """Return a body as octets: binary unchanged, text as UTF-8, other values as JSON."""
    if isinstance(body, Data):
        return b"".join(body.chunks)
    value = body.value if isinstance(body, Value) else body
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    written = _json(body)
    return None if written is None else written.encode()


def _json(body: Any) -> str | None:
    if _KINDS.get(body.__class__, "value") not in ("value", "sequence"):
        return None
    if isinstance(body, Sequence):
        return to_json_text([item for items in body.lists for item in items])
    return to_json_text(body.value if isinstance(body, Value) else body)


_PROPERTIES: Final = list(PROPERTIES)
"""The fields of the struct ``properties``."""


def properties(rows: list[Any]) -> pa.Array:
    """Return the struct column ``properties``; null for a row without the section."""
    count = len(rows)
    filled = [NO_PROPERTIES if row is None else row for row in rows]
    columns: Iterable[Several[Any]] = zip(*filled, strict=True) if filled else [()] * len(_PROPERTIES)
    arrays = [
        pa.nulls(count, each.type) if column.count(None) == count else pa.array(column, each.type)
        for each, column in zip(_PROPERTIES, columns, strict=True)
    ]
    mask = pa.array([row is None for row in rows], pa.bool_()) if None in rows else None
    return pa.StructArray.from_arrays(arrays, fields=_PROPERTIES, mask=mask)


def headers(rows: list[Any]) -> pa.Array:
    """Return the struct column ``header`` from one tuple for each row."""
    if rows and rows.count(rows[0]) == len(rows):  # usually: all messages have the same header
        return pa.repeat(pa.array(rows[:1], HEADER)[0], len(rows))
    return pa.array(rows, HEADER)


_MAP: Final = pa.map_(_TEXT, _TEXT)


def maps(rows: list[Any]) -> pa.Array:
    """Return a map column from lists of pairs; null for a row with None."""
    if rows.count(None) == len(rows):
        return pa.nulls(len(rows), _MAP)
    return pa.array(rows, _MAP)
