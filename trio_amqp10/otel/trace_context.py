"""Trace context in messages ("Trace Context: AMQP protocol", W3C draft).

The producer of a message writes ``traceparent`` and ``tracestate`` to its application-properties, which no intermediary
may change (3.2). An intermediary may write them to the message-annotations, so these take precedence. In the draft
``traceparent`` consists of octets, but all implementations write a string: so this module writes a string, and reads
both forms, and the name that older clients of Azure use.

Knows messages; knows no spans.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.propagators.textmap import Getter, Setter

from trio_amqp10.core.errors import RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp10.message import Message

_PARENT: Final = "traceparent"
_OLD_AZURE: Final = "Diagnostic-Id"
_OCTETS: Final = 29
"""Octets of a binary ``traceparent``: a version and three numbered fields."""


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
"""Writes fields for ``with_carrier``, for a propagator."""

GETTER: Final = _Getter()
"""Reads fields of ``extract_carrier``, for a propagator."""


def extract_carrier(message: Message) -> dict[str, str]:
    """Return the fields that a propagator may read; empty if they cannot be decoded."""
    if message.message_format:
        return {}
    try:
        made, annotated = message.application_properties, message.annotations
    except RemoteProtocolError:  # code that reads the message will get the error
        return {}
    fields = _texts(made)
    if _PARENT not in fields and _OLD_AZURE in fields:
        fields[_PARENT] = fields[_OLD_AZURE]
    added = _texts(annotated)
    if _PARENT in added:
        fields.pop("tracestate", None)  # it belongs to the other traceparent
        fields |= added
    return fields


def _texts(section: Mapping[Any, Any]) -> dict[str, str]:
    fields = {str(key): str(value) for key, value in section.items() if isinstance(value, str)}
    parent = section.get(_PARENT)
    if isinstance(parent, bytes) and (text := _text(parent)) is not None:
        fields[_PARENT] = text
    return fields


def _text(octets: bytes) -> str | None:
    """Return a binary ``traceparent`` as a string; None if it is invalid."""
    if len(octets) != _OCTETS or (octets[0], octets[1], octets[18], octets[27]) != (0, 0, 1, 2):
        return None
    return f"00-{octets[2:18].hex()}-{octets[19:27].hex()}-{octets[28]:02x}"


def with_carrier(message: Message, fields: Mapping[str, str]) -> Message:
    """Return a copy of the message with ``fields`` in its application-properties.

    Raises:
        LocalProtocolError: the message cannot be encoded.
    """
    made = copy(message)
    made.application_properties = {**made.application_properties, **fields}
    return made
