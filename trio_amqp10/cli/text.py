"""Messages as text: what ``receive``, ``browse`` and ``request`` print.

Octets stay octets and strings are UTF-8; every other value is JSON, never the notation of a
programming language. Knows no connection.
"""

from __future__ import annotations

import base64
import json
import math
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from trio_amqp10.message import Data, Message, Sequence
from trio_amqp10.wire.values import Described, ZeroWidthArray

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["body_octets", "message_json", "to_json"]

_PROPERTIES = (
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
    "ttl",
)
_DEFAULTS = {"durable": False, "priority": 4, "first_acquirer": False, "delivery_count": 0}
_MAPS = ("application_properties", "annotations", "delivery_annotations", "footer")


def body_octets(message: Message) -> bytes:
    """The body, as one line of output without its end.

    Raises:
        RemoteProtocolError: it cannot be decoded.
    """
    body = message.body
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    return _dump(to_json(body))


def message_json(message: Message) -> bytes:
    """The whole message as one JSON object: the body, what kind it is, and every field that is set.

    A data section that is UTF-8 is a string, and ``body_type`` tells it from an amqp-value.

    Raises:
        RemoteProtocolError: it cannot be decoded.
    """
    sections = message.sections
    body = message.body
    shown: dict[str, Any] = {}
    if sections and isinstance(sections[0], Data):
        shown["body"] = _text_or_base64(body)
        shown["body_type"] = "data"
    else:
        shown["body"] = to_json(body)
        shown["body_type"] = "sequence" if sections and isinstance(sections[0], Sequence) else "value"
    for name in _PROPERTIES:
        value = getattr(message, name)
        if value is not None:
            shown[name] = to_json(value)
    for name, default in _DEFAULTS.items():
        value = getattr(message, name)
        if value != default:
            shown[name] = to_json(value)
    for name in _MAPS:
        value = getattr(message, name)
        if value:
            shown[name] = to_json(value)
    return _dump(shown)


def to_json(value: Any) -> Any:
    """An AMQP value as what JSON has.

    Binary is ``{"base64": ...}``, a timestamp milliseconds, a uuid or a decimal a string, a
    described value ``{"descriptor": ..., "value": ...}``, and a map whose keys are not all
    strings a list of pairs.
    """
    raw: Any = value  # what a type checker does not narrow to a list or dict of unknowns
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, (uuid.UUID, Decimal)):
        return str(value)
    if isinstance(value, dict):
        return _map_to_json(raw)
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in raw]
    if isinstance(value, Described):
        return {"descriptor": to_json(value.descriptor), "value": to_json(value.value)}
    if isinstance(value, ZeroWidthArray):
        return {"element_code": value.code, "count": value.count}
    return str(value)


def _map_to_json(items: Mapping[Any, Any]) -> Any:
    if all(isinstance(key, str) for key in items):
        return {str(key): to_json(item) for key, item in items.items()}
    return [[to_json(key), to_json(item)] for key, item in items.items()]


def _text_or_base64(octets: bytes) -> Any:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return to_json(octets)


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ")).encode(errors="surrogatepass")
