"""Messages as text, for the output of ``receive``, ``browse`` and ``request``.

Octets stay octets and strings are UTF-8; every other value is JSON, never Python's notation. Knows no connection.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.message import Data, Message, Sequence
from trio_amqp10.amqp10.message.fields import PROPERTY_FIELDS
from trio_amqp10.amqp10.wire.json_values import to_json

from .command_runner import CONTROLS
from .json_types import pointer, types_of

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping

_PROPERTIES = (*PROPERTY_FIELDS, "ttl")
_DEFAULTS = {"durable": False, "priority": 4, "first_acquirer": False, "delivery_count": 0}
MAPS: Final = ("application_properties", "annotations", "delivery_annotations", "footer")
FIELDS: Final = (*_PROPERTIES, *_DEFAULTS)
"""The members of the JSON object for the fields of a message, and for its maps."""


def body_octets(message: Message) -> bytes:
    """Return the body as one line of output, without a newline.

    Raises:
        RemoteProtocolError: it cannot be decoded.
    """
    body = message.body
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    return as_line(to_json(body))


def message_json(message: Message) -> bytes:
    """Return the message as one JSON object: body, type of the body, and fields.

    A data section that is UTF-8 is shown as a string; ``body_type`` distinguishes it from an amqp-value. ``types`` has the AMQP types
    that JSON does not have, if there are any: ``message_from_json`` returns the same message.

    Raises:
        RemoteProtocolError: it cannot be decoded.
    """
    sections = message.sections
    body = message.body
    shown: dict[str, Any] = {}
    types: dict[str, str] = {}
    if sections and isinstance(sections[0], Data):
        shown["body"] = _text_or_base64(body)
        shown["body_type"] = "data"
    else:
        shown["body"] = to_json(body)
        shown["body_type"] = "sequence" if sections and isinstance(sections[0], Sequence) else "value"
        types_of(body, "/body", types)
    for name in _PROPERTIES:
        value = getattr(message, name)
        if value is not None:
            shown[name] = to_json(value)
            if isinstance(value, uuid.UUID):
                types[pointer("", name)] = "uuid"
    for name, default in _DEFAULTS.items():
        value = getattr(message, name)
        if value != default:
            shown[name] = to_json(value)
    for name in MAPS:
        value = getattr(message, name)
        if value:
            shown[name] = to_json(value)
            _section_types(value, pointer("", name), types)
    if types:
        shown["types"] = types
    return as_line(shown)


def _section_types(section: Mapping[Any, Any], where: str, types: dict[str, str]) -> None:
    """Add the types of the values of a section; its keys need none."""
    named = isinstance(to_json(section), dict)
    for place, (key, value) in enumerate(section.items()):
        types_of(value, pointer(where, str(key)) if named else pointer(where, place, 1), types)


def raw_json(payload: bytes, message_format: int) -> bytes:
    """Return an undecodable message as JSON: octets and message-format (2.8.11)."""
    return as_line({"undecodable": to_json(payload), "message_format": message_format})


def _text_or_base64(octets: bytes) -> Any:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return to_json(octets)


def as_line(value: Any) -> bytes:
    """Return JSON on one line, without control characters."""
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    # JSON escapes only the control characters below U+0020, and a terminal obeys others too.
    text = CONTROLS.sub(_escaped, text)
    return text.encode(errors="surrogatepass")


def _escaped(found: re.Match[str]) -> str:
    """Return the JSON escape of a character, of one or two UTF-16 units."""
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))
