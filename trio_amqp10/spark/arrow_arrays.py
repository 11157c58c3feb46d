"""Arrays: a section of all rows as columns (3.2).

Knows what ``section_columns`` makes of sections; neither octets nor options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from trio_amqp10.message.sections import Data, Sequence, Value
from trio_amqp10.wire.encode import encode

from .schema import HEADER, PROPERTIES
from .section_columns import NO_PROPERTIES
from .typed_json import to_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Sequence as Several

__all__ = ["Opaque", "bodies", "headers", "maps", "properties"]


class Opaque(bytes):
    """A payload of whose sections nothing is known: of another format (2.8.11), or broken."""


_TEXT: Final = pa.string()
_KINDS: Final[dict[type, str | None]] = {
    bytes: "data",
    Data: "data",
    Sequence: "sequence",
    Opaque: None,
    type(None): None,
}


def bodies(bodies: list[Any], names: frozenset[str]) -> dict[str, pa.Array]:
    """The columns that a body makes, those of them that are among ``names``."""
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
    """What a body says, whatever its section: octets as they are, text as UTF-8, all else as JSON."""
    if isinstance(body, Data):
        return b"".join(body.chunks)
    value = body.value if isinstance(body, Value) else body
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    said = _json(body)
    return None if said is None else said.encode()


def _json(body: Any) -> str | None:
    if _KINDS.get(body.__class__, "value") not in ("value", "sequence"):
        return None
    if isinstance(body, Sequence):
        return to_text([item for items in body.lists for item in items])
    return to_text(body.value if isinstance(body, Value) else body)


_PROPERTIES: Final = list(PROPERTIES)
"""The fields of the struct."""


def properties(rows: list[Any]) -> pa.Array:
    """The struct; None for a row without the section."""
    count = len(rows)
    said = [NO_PROPERTIES if row is None else row for row in rows]
    columns: Iterable[Several[Any]] = zip(*said, strict=True) if said else [()] * len(_PROPERTIES)
    arrays = [
        pa.nulls(count, each.type) if column.count(None) == count else pa.array(column, each.type)
        for each, column in zip(_PROPERTIES, columns, strict=True)
    ]
    mask = pa.array([row is None for row in rows], pa.bool_()) if None in rows else None
    return pa.StructArray.from_arrays(arrays, fields=_PROPERTIES, mask=mask)


def headers(rows: list[Any]) -> pa.Array:
    """The struct, of tuples; as a rule all rows have the same."""
    if rows and rows.count(rows[0]) == len(rows):
        return pa.repeat(pa.array(rows[:1], HEADER)[0], len(rows))
    return pa.array(rows, HEADER)


_MAP: Final = pa.map_(_TEXT, _TEXT)


def maps(rows: list[Any]) -> pa.Array:
    """Maps, of pairs; None for a row without any."""
    if rows.count(None) == len(rows):
        return pa.nulls(len(rows), _MAP)
    return pa.array(rows, _MAP)
