"""Messages of 10.3 and the form of AMQP 0-9-1 in which the container has them.

The class basic has the same fourteen properties as 0-9-1. A message of the class file or stream is turned into one of the class
basic where it comes in, and back where it goes out by a consumer of that class: properties that both classes have keep their
names, and ``filename`` is a header of that name. What the other class does not have is left out. A file is persistent: its class
is for reliable transfer (C 1101), and has no property that says so.

Field tables of 10.3 have five letters: values of other protocols become a number, a text or octets, or are left out.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from trio_amqp10.amqp091.content import BasicProperties, Properties
from trio_amqp10.amqp091.content import Content as Carried
from trio_amqp10.amqp091.fields import FIVE
from trio_amqp10.amqp091.values import LongString, Timestamp
from trio_amqp10.amqp_10_3.properties import FileProperties
from trio_amqp10.container.protocols.amqp091.outlets import NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.container.protocols.amqp091.native_message import Published

__all__ = ["carried", "from_basic", "narrowed", "to_basic", "with_hyphens"]

P = TypeVar("P", bound=Properties)

_FILENAME: Final = "filename"
_ALTERNATE: Final = "alternate_exchange"
_PERSISTENT: Final = 2


def to_basic(properties: Properties) -> BasicProperties:
    """The properties of a message of any class as those of the class basic."""
    common = {name: getattr(properties, name) for _, name, _ in properties.rows if hasattr(_BASIC, name)}
    if isinstance(properties, FileProperties):
        common["delivery_mode"] = _PERSISTENT
        if properties.filename is not None:
            common["headers"] = {**(properties.headers or {}), _FILENAME: properties.filename}
    return BasicProperties(**common)


def from_basic(properties: BasicProperties, wanted: type[P]) -> P:
    """The properties of the class basic as those of another class; what tables of 10.3 cannot have is left out."""
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
    """A message as a content of the class basic: its octets as they came, if 10.3 knows all that its headers have."""
    headers = published.headers
    if not headers or all(map(_is_known, headers.items())):
        return Carried(NOTHING, published.body, published.raw)
    return Carried(from_basic(published.properties, BasicProperties), published.body)


def narrowed(table: Mapping[str, Any]) -> dict[str, Any]:
    """A field table with the letters and the names that 10.3 has.

    Bools are 0 or 1; integers beyond 32 bits and floats are texts; octets stay octets; arrays, void values and decimals that do
    not fit are left out. A hyphen in a name is an underscore; other names that 10.3 does not take are left out.
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
    """Arguments as 0-9-1 calls them: tables of 10.3 have no hyphens, so that a client says ``x_max_length``."""
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
    """Whether a field came with a letter and a name of 10.3, so that its octets can be sent as they are."""
    name, value = item
    if not is_name(name):
        return False
    if isinstance(value, dict):
        return all(map(_is_known, cast("dict[str, Any]", value).items()))
    return type(value) in _KNOWN


_KNOWN: Final = frozenset({int, str, LongString, datetime, Timestamp, Decimal})
"""The types of values that the letters I, S, T and D read as; a table is looked into."""

_BASIC: Final = BasicProperties()
