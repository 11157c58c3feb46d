"""Messages as text: what ``receive``, ``browse`` and ``request`` print.

Octets stay octets and strings are UTF-8; every other value is JSON, never the notation of a
programming language. Knows no connection.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trio_amqp10.json_values import to_json
from trio_amqp10.message import Data, Message, Sequence
from trio_amqp10.message.fields import PROPERTY_FIELDS

from .command_runner import CONTROLS

if TYPE_CHECKING:
    import re

__all__ = ["body_octets", "message_json", "raw_json"]

_PROPERTIES = (*PROPERTY_FIELDS, "ttl")
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


def raw_json(payload: bytes, message_format: int) -> bytes:
    """The octets of a message that cannot be decoded as one JSON object, with its message-format (2.8.11)."""
    return _dump({"undecodable": to_json(payload), "message_format": message_format})


def _text_or_base64(octets: bytes) -> Any:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return to_json(octets)


def _dump(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    # JSON escapes the control characters below U+0020 only; terminals obey others, too.
    text = CONTROLS.sub(_escaped, text)
    return text.encode(errors="surrogatepass")


def _escaped(found: re.Match[str]) -> str:
    """A character as JSON has it in ASCII."""
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))
