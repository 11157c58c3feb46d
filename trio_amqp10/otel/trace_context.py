"""Trace context in messages ("Trace Context: AMQP protocol", W3C draft).

Who makes a message writes ``traceparent`` and ``tracestate`` to its application-properties, which nobody on the way
may change (3.2); who passes it on may write to its message-annotations, and so these are read first. The draft has
``traceparent`` in octets, and everybody writes a string all the same: it is written as a string here and read in
either form, and under the name that older clients of Azure give it.

Knows messages; knows no spans.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.propagators.textmap import Getter, Setter

from trio_amqp10.errors import RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.message import Message

__all__ = ["GETTER", "SETTER", "extract_carrier", "with_carrier"]

_PARENT: Final = "traceparent"
_OLD_AZURE: Final = "Diagnostic-Id"
_OCTETS: Final = 29
"""Of a ``traceparent`` in its binary form: a version, and three fields behind their numbers."""


class _Getter(Getter[dict[str, str]]):
    def get(self, carrier: dict[str, str], key: str) -> list[str] | None:
        value = carrier.get(key)
        return None if value is None else [value]

    def keys(self, carrier: dict[str, str]) -> list[str]:
        return list(carrier)


class _Setter(Setter[dict[str, str]]):
    def set(self, carrier: dict[str, str], key: str, value: str) -> None:
        carrier[key] = value


SETTER: Final = _Setter()
"""Writes what ``with_carrier`` takes, for a propagator."""

GETTER: Final = _Getter()
"""Reads what ``extract_carrier`` gives, for a propagator."""


def extract_carrier(message: Message) -> dict[str, str]:
    """What a propagator may find in the message; nothing where it cannot be decoded."""
    if message.message_format:
        return {}
    try:
        made, annotated = message.application_properties, message.annotations
    except RemoteProtocolError:  # who reads the message will hear of that
        return {}
    fields = _texts(made)
    if _PARENT not in fields and _OLD_AZURE in fields:
        fields[_PARENT] = fields[_OLD_AZURE]
    added = _texts(annotated)
    if _PARENT in added:
        fields.pop("tracestate", None)  # it went with the other parent
        fields |= added
    return fields


def _texts(section: Mapping[Any, Any]) -> dict[str, str]:
    fields = {str(key): str(value) for key, value in section.items() if isinstance(value, str)}
    parent = section.get(_PARENT)
    if isinstance(parent, bytes) and (text := _text(parent)) is not None:
        fields[_PARENT] = text
    return fields


def _text(octets: bytes) -> str | None:
    """A ``traceparent`` of octets as a string; None where it is none."""
    if len(octets) != _OCTETS or (octets[0], octets[1], octets[18], octets[27]) != (0, 0, 1, 2):
        return None
    return f"00-{octets[2:18].hex()}-{octets[19:27].hex()}-{octets[28]:02x}"


def with_carrier(message: Message, fields: Mapping[str, str]) -> Message:
    """A message of its own, with these among its application-properties.

    Raises:
        LocalProtocolError: the message cannot be encoded.
    """
    made = copy(message)
    made.application_properties = {**made.application_properties, **fields}
    return made
