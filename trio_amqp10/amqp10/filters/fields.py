"""Identifiers: find the field of a message that a name means, and read it.

JMS has the headers (JMS 3.5), the names of Qpid's brokers (``amqp.subject``, ``amqp.annotation.x-opt-y``)
and, as filtex, a section with a field (filtex 6.4.4.4: ``properties.subject``). Every other name is a key of
the application properties. Only the section of the field is decoded. Knows no operators.
"""

# A filter reads sections by private methods: a section that is read by the public properties must be compared when the
# message is written again.
# pyright: reportPrivateUsage=false
# ruff: noqa: SLF001

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.message.fields import HEADER_FIELDS, PROPERTY_FIELDS
from trio_amqp10.amqp10.wire.values import (
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

from .errors import FilterError, excerpt
from .syntax import Dialect, Identifier, Section

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.message.fields import Field, MapField

# Names to places --------------------------------------------------------------------------------------

_SECTIONS: Final[dict[str, Section]] = {
    "header": "header",
    "delivery_annotations": "delivery_annotations",
    "message_annotations": "message_annotations",
    "properties": "properties",
    "application_properties": "application_properties",
    "footer": "footer",
}
_SHORT: Final[dict[str, Section]] = {name[0]: section for name, section in _SECTIONS.items()}
"""For filtex only, because a name of JMS may begin with such a letter and a dot."""
_FIELDS: Final = {"header": HEADER_FIELDS, "properties": PROPERTY_FIELDS}

_QPID_NAMES: Final = {"delivery_mode": "JMSDeliveryMode", "redelivered": "JMSRedelivered"}
"""Names after ``amqp.`` that are computed, and are not fields of a section."""
_QPID_ANNOTATION: Final = "annotation."


def resolve(name: str, dialect: Dialect, position: int | None = None) -> Identifier:
    """Return the field that a name means.

    Raises:
        FilterError: the name has the form of a field, and there is no such field.
    """
    if dialect == "jms":
        if name in _JMS_READERS:
            return Identifier("jms", name)
        if name.startswith("JMS") and not name.startswith(("JMSX", "JMS_")):
            raise FilterError(f"JMS has no header {excerpt(name)}", position)
    head, dot, rest = name.partition(".")
    if dot:
        if dialect == "jms" and head == "amqp":
            return _qpid(rest, position)
        section = _SECTIONS.get(head.replace("-", "_"))
        if section is None and dialect == "sql":
            section = _SHORT.get(head)
            if section is None:
                raise FilterError(f"a message has no section {excerpt(head)}", position)
        if section is not None:
            return Identifier(section, _field_name(section, rest, position))
    return Identifier("application_properties", name)


def _qpid(name: str, position: int | None) -> Identifier:
    if name.startswith(_QPID_ANNOTATION):
        return Identifier("message_annotations", name.removeprefix(_QPID_ANNOTATION))
    field = name.replace("-", "_")
    if field in _QPID_NAMES:
        return Identifier("jms", _QPID_NAMES[field])
    if field in HEADER_FIELDS:
        return Identifier("header", field)
    return Identifier("properties", _field_name("properties", field, position))


def _field_name(section: Section, name: str, position: int | None) -> str:
    """Return the name with ``_``, as in filtex; the standard has ``-``."""
    fields = _FIELDS.get(section)
    if fields is None:
        return name
    field = name.replace("-", "_")
    if field not in fields:
        raise FilterError(f"{section} has no field {excerpt(name)}", position)
    return field


# Places to values -------------------------------------------------------------------------------------


class _Other:
    """A value of a type that expressions do not have: not null, and equal to nothing."""

    __slots__ = ()


OTHER: Final = _Other()

_PLAIN: Final[frozenset[type]] = frozenset(
    {
        type(None),
        *(bool, int, float, str, bytes),
        *(UByte, UShort, UInt, ULong, Byte, Short, Int, Timestamp, Float, Symbol, Char),
    }
)
_DECIMALS: Final = (Decimal32, Decimal64, Decimal128)


def plain(value: Any) -> Any:
    """Return a value as expressions use it.

    It is None, a bool, a number, a str, bytes, or ``OTHER``. A uuid becomes its text, and a decimal the
    nearest float.
    """
    if value.__class__ in _PLAIN or isinstance(value, (str, int, float, bytes)):
        return value
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, _DECIMALS):
        number = value.to_decimal()
        return float("nan") if number.is_nan() else float(number)
    return OTHER


def reader(identifier: Identifier) -> Callable[[Message], Any]:
    """Return a function that reads the value of an identifier from a message.

    It returns the value as ``plain`` does, and None if there is none. It raises ``RemoteProtocolError`` for a
    message whose section is malformed.
    """
    section, name = identifier.section, identifier.name
    if section == "jms":
        return _JMS_READERS[name]
    if section in _FIELDS:
        return _field_reader(name)
    return _key_reader(_PLACES[section], name)


_PLACES: Final = {
    section: cast("MapField", getattr(Message, attribute)).place
    for section, attribute in (
        ("delivery_annotations", "delivery_annotations"),
        ("message_annotations", "annotations"),
        ("application_properties", "application_properties"),
        ("footer", "footer"),
    )
}


def _key_reader(place: int, key: str) -> Callable[[Message], Any]:
    def read(message: Message) -> Any:
        values = message._load(place)
        if values is None:
            return None
        value = values.get(key)
        return value if value.__class__ in _PLAIN else plain(value)

    return read


def _field_reader(name: str) -> Callable[[Message], Any]:
    field: Field[Any, Any] = getattr(Message, name)
    place, index, default = field.place, field.index, field.default

    def read(message: Message) -> Any:
        fields = message._load(place)
        value = None if fields is None else fields[index]
        return default if value is None else plain(value)

    return read


# The headers of JMS -----------------------------------------------------------------------------------

_durable: Final = _field_reader("durable")
_delivery_count: Final = _field_reader("delivery_count")
_expiry: Final = _field_reader("absolute_expiry_time")
_user_id: Final = _field_reader("user_id")


def _read_delivery_mode(message: Message) -> str:
    return "PERSISTENT" if _durable(message) else "NON_PERSISTENT"


def _read_redelivered(message: Message) -> bool:
    return bool(_delivery_count(message))


def _read_jms_delivery_count(message: Message) -> int:
    return int(_delivery_count(message)) + 1  # JMS counts the present delivery too


def _read_expiration(message: Message) -> Any:
    return _expiry(message) or 0  # 0: the message never expires (JMS)


def _read_user(message: Message) -> str | None:
    user = _user_id(message)
    return None if user is None else user.decode("utf-8", "replace")


def _id_reader(name: str) -> Callable[[Message], Any]:
    """Return a function that reads an id as a text (AMQP JMS mapping 3.2.1).

    Ids of JMS are texts, so an id of another type gets a prefix that names its type.
    """
    field: Field[Any, Any] = getattr(Message, name)

    def read(message: Message) -> str | None:
        fields = message._load(field.place)
        value = None if fields is None else fields[field.index]
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bytes):
            return f"ID:AMQP_BINARY:{value.hex().upper()}"
        return f"ID:AMQP_UUID:{value}" if isinstance(value, uuid.UUID) else f"ID:AMQP_ULONG:{value}"

    return read


_JMS_READERS: Final[dict[str, Callable[[Message], Any]]] = {
    "JMSMessageID": _id_reader("message_id"),
    "JMSCorrelationID": _id_reader("correlation_id"),
    "JMSDeliveryMode": _read_delivery_mode,
    "JMSPriority": _field_reader("priority"),
    "JMSTimestamp": _field_reader("creation_time"),
    "JMSExpiration": _read_expiration,
    "JMSRedelivered": _read_redelivered,
    "JMSType": _field_reader("subject"),
    "JMSDestination": _field_reader("to"),
    "JMSReplyTo": _field_reader("reply_to"),
    "JMSXGroupID": _field_reader("group_id"),
    "JMSXGroupSeq": _field_reader("group_sequence"),
    "JMSXUserID": _read_user,
    "JMSXDeliveryCount": _read_jms_delivery_count,
}
