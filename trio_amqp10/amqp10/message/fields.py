"""The fields of header and properties: names, checks, attributes (3.2.1, 3.2.4).

A check returns the value in the form that the writers and the attributes expect. Knows no octets.
"""

# The attributes below are part of Message, though not inside it.
# pyright: reportPrivateUsage=false
# ruff: noqa: SLF001

from __future__ import annotations

import datetime
import uuid
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, overload

from trio_amqp10.amqp10.wire.bounded_memo import BoundedMemo
from trio_amqp10.amqp10.wire.pair_map import copied
from trio_amqp10.amqp10.wire.values import Symbol, Timestamp, UInt, ULong
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.peer_rules import ANNOTATION_KEYS

from .sections import Mark, plain_octets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping

    from .message import Message

Got = TypeVar("Got")
Given = TypeVar("Given")

HEADER_FIELDS: Final = ("durable", "priority", "ttl", "first_acquirer", "delivery_count")
PROPERTY_FIELDS: Final = (
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


def _checked_bool(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise LocalProtocolError(f"{name} is True or False, not {value!r}")
    return value


def _checked_octet(name: str, value: Any) -> int:
    return _in_range(name, value, 255)


def checked_uint(name: str, value: Any) -> int:
    return _in_range(name, value, UInt.MAX)


def _in_range(name: str, value: Any, maximum: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= maximum:
        raise LocalProtocolError(f"{name} is an int of 0 to {maximum}, not {value!r}")
    return value


def checked_id(name: str, value: Any) -> Any:
    """Check an id; a plain int becomes a ulong, the only integer type of ids (3.2.11)."""
    if value.__class__ is int and 0 <= value <= ULong.MAX:
        return int.__new__(ULong, value)  # the range is checked above
    if isinstance(value, int) and not isinstance(value, bool):
        return ULong(_in_range(name, value, ULong.MAX))
    if not isinstance(value, (str, bytes, uuid.UUID)) or isinstance(value, Symbol):
        raise LocalProtocolError(f"{name} is a str, bytes, uuid.UUID or int, not {value!r}")
    return value


def checked_bytes(name: str, value: Any) -> bytes:
    octets = plain_octets(value)
    if not isinstance(octets, bytes):
        raise LocalProtocolError(f"{name} is bytes, not {value!r}")
    return octets


def checked_str(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise LocalProtocolError(f"{name} is a str, not {value!r}")
    return str(value)


def checked_symbol(name: str, value: Any) -> Symbol:
    return _SYMBOLS[value] if value.__class__ is str else Symbol(checked_str(name, value))


_SYMBOLS: Final = BoundedMemo[str, Symbol](Symbol)


def checked_time(name: str, value: Any) -> Timestamp:
    if isinstance(value, datetime.datetime):
        return Timestamp.from_datetime(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return Timestamp(value)
    raise LocalProtocolError(f"{name} is milliseconds since 1970 or an aware datetime, not {value!r}")


HEADER_CHECKS: Final[tuple[Callable[[str, Any], Any], ...]] = (
    _checked_bool,
    _checked_octet,
    checked_uint,
    _checked_bool,
    checked_uint,
)
PROPERTY_CHECKS: Final[tuple[Callable[[str, Any], Any], ...]] = (
    checked_id,
    checked_bytes,
    checked_str,
    checked_str,
    checked_str,
    checked_id,
    checked_symbol,
    checked_symbol,
    checked_time,
    checked_time,
    checked_str,
    checked_uint,
    checked_str,
)


def checked_fields(
    names: tuple[str, ...], checks: tuple[Callable[[str, Any], Any], ...], fields: list[Any]
) -> list[Any]:
    """Check the fields of a section, in place, and return them; None stays None.

    Raises:
        LocalProtocolError: a field has a wrong type or is out of range.
    """
    for index, value in enumerate(fields):
        if value is not None:
            fields[index] = checks[index](names[index], value)
    return fields


# Attributes -----------------------------------------------------------------------------------------


if TYPE_CHECKING:

    class _Property:
        def __init__(self, fget: Callable[[Any], Any], fset: Callable[[Any, Any], None]) -> None: ...

else:
    _Property = property


class Field(_Property, Generic[Got, Given]):
    """An attribute of ``Message`` that is one field of the header or the properties.

    At run time it is a ``property``, because Python calls the getter of a property faster than a ``__get__``
    of our own.
    """

    def __init__(self, place: int, name: str, default: Any = None) -> None:
        header = name in HEADER_FIELDS
        names = HEADER_FIELDS if header else PROPERTY_FIELDS
        index = names.index(name)
        check = (HEADER_CHECKS if header else PROPERTY_CHECKS)[index]
        self.place: Final = place
        self.name: str = name
        self.index: Final = index
        self.default: Any = default

        def value_of(message: Message) -> Any:
            fields = message._sections[place]
            if fields.__class__ is not list:  # the section is absent, or was not decoded yet
                fields = message._load(place)
                if fields is None:
                    return default
            value = fields[index]
            return default if value is None else value

        def replace(message: Message, value: Any) -> None:
            checked = None if value is None else check(name, value)
            fields: list[Any] = message._load(place) or [None] * len(names)
            fields[index] = checked
            message._replace(place, fields)

        otherwise = f", {default!r} by default" if default is not None else "; None if absent"
        where = "header (3.2.1)" if header else "properties (3.2.4)"
        value_of.__doc__ = f"The field {name.replace('_', '-')} of the {where}{otherwise}."
        super().__init__(value_of, replace)

    if TYPE_CHECKING:

        @overload
        def __get__(self, message: None, owner: type) -> Self: ...
        @overload
        def __get__(self, message: Message, owner: type) -> Got: ...
        def __get__(self, message: Message | None, owner: type) -> Any: ...
        def __set__(self, message: Message, value: Given) -> None: ...


class MapField:
    """An attribute of ``Message`` that is a whole section with a map."""

    __slots__ = ("place",)

    def __init__(self, place: int) -> None:
        self.place: Final = place

    @overload
    def __get__(self, message: None, owner: type) -> Self: ...
    @overload
    def __get__(self, message: Message, owner: type) -> MutableMapping[Any, Any]: ...
    def __get__(self, message: Message | None, owner: type) -> Any:
        if message is None:
            return self
        value = message._load(self.place)
        if value is None:
            empty: dict[Any, Any] = {}
            value = message._sections[self.place] = empty
        message._lent |= 1 << self.place
        return value

    def __set__(self, message: Message, value: Mapping[Any, Any] | None) -> None:
        message._replace(self.place, copied(value))


def is_known_annotation(key: object) -> bool:
    """Whether a key of an annotation may be ignored: all others are reserved (3.2.10)."""
    return isinstance(key, Symbol) and key.startswith("x-opt-")


class AnnotationsField(MapField):
    """A section of annotations; unknown keys are counted when it is decoded."""

    __slots__ = ()

    @overload
    def __get__(self, message: None, owner: type) -> Self: ...
    @overload
    def __get__(self, message: Message, owner: type) -> MutableMapping[Any, Any]: ...
    def __get__(self, message: Message | None, owner: type) -> Any:
        if message is not None and message._sections[self.place] is Mark.UNREAD:
            value = message._load(self.place)
            tolerances = message._tolerances
            if value and tolerances is not None and not all(map(is_known_annotation, value)):
                tolerances.note(ANNOTATION_KEYS)
        return super().__get__(message, owner)
