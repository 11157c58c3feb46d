"""The filters that compare fields with required values.

``amqp:properties-filter`` and ``amqp:application-properties-filter`` are defined in the OASIS draft "AMQP
Filter Expressions", 4. The value is a map of the fields and their required values. A text with the prefix
``&p:`` matches values that begin with the rest, ``&s:`` values that end with it, and ``&&`` at the beginning
is one ``&``. Knows no expressions.
"""

# A filter reads sections by private methods: a section that is read by the public properties must be compared when the
# message is written again.
# pyright: reportPrivateUsage=false
# ruff: noqa: SLF001

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.message.fields import PROPERTY_CHECKS, PROPERTY_FIELDS
from trio_amqp10.core.errors import LocalProtocolError

from .errors import FilterError, excerpt
from .fields import OTHER, plain

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_FIELDS: Final = 64
"""The fields that a filter may compare (filtex 7.1 requires some limit)."""

_PROPERTIES: Final = Message.subject.place
_APPLICATION_PROPERTIES: Final = Message.application_properties.place


def properties_filter(value: Any) -> Callable[[Message], bool]:
    """Return a test for messages with the properties in the map (filtex 4.2.4).

    A null matches all messages.

    Raises:
        FilterError: not a map of such fields, or empty, or too large.
    """
    tests: list[tuple[int, Callable[[Any], bool]]] = []
    for name, reference in _entries(value).items():
        field = name.replace("-", "_")
        if field not in PROPERTY_FIELDS:
            raise FilterError(f"properties has no field {excerpt(name)}")
        index = PROPERTY_FIELDS.index(field)
        if reference is None:
            continue
        try:
            checked = PROPERTY_CHECKS[index](name, reference)
        except LocalProtocolError as error:
            raise FilterError(f"a properties filter: {error}") from None
        tests.append((index, _test(name, checked)))

    def has_properties(message: Message) -> bool:
        fields = message._load(_PROPERTIES)
        if fields is None:
            return not tests
        return all(test(fields[index]) for index, test in tests)

    return has_properties


def application_properties_filter(value: Any) -> Callable[[Message], bool]:
    """Return a test for messages with these application properties (filtex 4.2.5).

    A null requires only that the property exists.

    Raises:
        FilterError: not a map of strings to simple values, or empty, or too large.
    """
    tests = [(key, _test(key, reference)) for key, reference in _entries(value).items()]

    def has_application_properties(message: Message) -> bool:
        values = message._load(_APPLICATION_PROPERTIES)
        if values is None:
            return False
        return all(key in values and test(values[key]) for key, test in tests)

    return has_application_properties


def _entries(value: Any) -> dict[str, Any]:
    if value.__class__ is not dict:
        raise FilterError(f"a filter of properties must be a map, not {excerpt(value)}")
    entries: dict[Any, Any] = value
    if not 0 < len(entries) <= MAX_FIELDS:
        raise FilterError(f"a filter of {len(entries)} properties: expected 1 to {MAX_FIELDS}")
    for key in entries:
        if not isinstance(key, str):
            raise FilterError(f"the name of a property must be a string, not {excerpt(key)}")
    return entries


def _test(name: str, reference: Any) -> Callable[[Any], bool]:
    """Return a test of one value; all types of numbers are equal (filtex 4.1.1)."""
    if reference is None:
        return lambda _: True
    if isinstance(reference, uuid.UUID):
        return lambda value: isinstance(value, uuid.UUID) and value == reference
    expected = plain(reference)
    if expected is OTHER:
        raise FilterError(f"{name} of a filter must be a simple value, not {excerpt(reference)}")
    if isinstance(expected, str):
        return _text_test(name, expected)
    if isinstance(expected, bytes):
        return lambda value: isinstance(value, bytes) and value == expected
    if isinstance(expected, bool):
        return lambda value: value is expected
    return lambda value: not isinstance(value, bool) and plain(value) == expected


def _text_test(name: str, text: str) -> Callable[[Any], bool]:
    if text.startswith("&p:"):
        return lambda value: isinstance(value, str) and value.startswith(text[3:])
    if text.startswith("&s:"):
        return lambda value: isinstance(value, str) and value.endswith(text[3:])
    if text.startswith("&&"):
        text = text[1:]
    elif text.startswith("&"):
        raise FilterError(f"{name} of a filter is {excerpt(text)}: expected p:, s: or another & after &")
    return lambda value: isinstance(value, str) and value == text
