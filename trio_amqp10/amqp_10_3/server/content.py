"""Conversion of messages of 10.3 to and from the stored form of AMQP 0-9-1.

The class basic has the same fourteen properties as 0-9-1. A message of the class file or stream is converted to the class basic
when it arrives, and back when a consumer of its class gets it. Properties that both classes have keep their names; ``filename``
becomes a header of that name; all others are dropped. A file is stored as persistent: its class is for reliable transfer (C
1101), and has no property for this.

Field tables of 10.3 have five types: values of other protocols become a number, a text or octets, or are dropped.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from trio_amqp10.amqp091.server.outlets import NOTHING
from trio_amqp10.amqp091.wire.content import BasicProperties, Properties
from trio_amqp10.amqp091.wire.content import Content as Carried
from trio_amqp10.amqp091.wire.fields import FIVE
from trio_amqp10.amqp091.wire.typed_values import LongString, Timestamp
from trio_amqp10.amqp_10_3.wire.properties import FileProperties

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp091.server.native_message import Published

P = TypeVar("P", bound=Properties)

_FILENAME: Final = "filename"
_ALTERNATE: Final = "alternate_exchange"
_PERSISTENT: Final = 2


def to_basic(properties: Properties) -> BasicProperties:
    """Convert the properties of any class to the class basic."""
    common = {name: getattr(properties, name) for _, name, _ in properties.rows if hasattr(_BASIC, name)}
    if isinstance(properties, FileProperties):
        common["delivery_mode"] = _PERSISTENT
        if properties.filename is not None:
            common["headers"] = {**(properties.headers or {}), _FILENAME: properties.filename}
    return BasicProperties(**common)


def from_basic(properties: BasicProperties, wanted: type[P]) -> P:
    """Convert properties of the class basic to another class.

    Values that tables of 10.3 cannot contain are dropped.
    """
    headers = None if properties.headers is None else narrowed(properties.headers)
    common: dict[str, Any] = {
        name: getattr(properties, name) for _, name, _ in wanted.rows if hasattr(_BASIC, name)
    }
    common["headers"] = headers
    if wanted is FileProperties and headers is not None and isinstance(headers.get(_FILENAME), str):
        common[_FILENAME] = headers.pop(_FILENAME)
        common["headers"] = headers or None
    return wanted(**common)


def carried(published: Published) -> Carried:
    """Convert a message to a content of the class basic.

    The encoded properties are reused if 10.3 knows the types of all headers.
    """
    headers = published.headers
    if not headers or all(map(_is_known, headers.items())):
        return Carried(NOTHING, published.body, published.raw)
    return Carried(from_basic(published.properties, BasicProperties), published.body)


def narrowed(table: Mapping[str, Any]) -> dict[str, Any]:
    """Restrict a field table to the types and names of 10.3.

    Bools become 0 or 1; integers beyond 32 bits and floats become text; octets are kept; arrays, void values and decimals that
    do not fit are dropped. A hyphen in a name becomes an underscore; fields with other invalid names are dropped.
    """
    found: dict[str, Any] = {}
    for name, value in table.items():
        known = name if is_name(name) else name.replace("-", "_")
        narrow = _narrowed(value) if is_name(known) else None
        if narrow is not None:
            found.setdefault(known, narrow)
    return found


def is_name(name: str) -> bool:
    """Whether a field of a table of 10.3 can have this name."""
    return FIVE.names is None or FIVE.names.fullmatch(name) is not None


def with_hyphens(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Convert names of arguments to those of 0-9-1, such as ``x-max-length``.

    Names in tables of 10.3 have no hyphens, so clients write ``x_max_length``.
    """
    return {
        name.replace("_", "-") if name.startswith("x_") or name == _ALTERNATE else name: value
        for name, value in arguments.items()
    }


def _narrowed(value: Any) -> Any:
    if isinstance(value, (str, datetime, Timestamp, Decimal, LongString)):
        return value
    if isinstance(value, int):
        return int(value) if -(1 << 31) <= value < 1 << 31 else str(int(value))
    if isinstance(value, float):
        return str(float(value))
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    return narrowed(cast("dict[str, Any]", value)) if isinstance(value, dict) else None


def _is_known(item: tuple[str, Any]) -> bool:
    """Whether a field has a valid name and type, so that its octets can be reused."""
    name, value = item
    if not is_name(name):
        return False
    if isinstance(value, dict):
        return all(map(_is_known, cast("dict[str, Any]", value).items()))
    return type(value) in _KNOWN


_KNOWN: Final = frozenset({int, str, LongString, datetime, Timestamp, Decimal})
"""The Python types of the letters I, S, T and D; nested tables are checked inside."""

_BASIC: Final = BasicProperties()
