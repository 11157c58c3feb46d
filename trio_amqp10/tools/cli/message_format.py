"""The templates of ``receive --format``: text with ``%`` codes.

Knows no connection.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.wire.json_values import to_json

from .message_text import as_line, body_octets

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.message import Message

CODES: Final = {
    "b": "body",
    "s": "subject",
    "i": "message_id",
    "c": "correlation_id",
    "r": "reply_to",
    "g": "group_id",
    "t": "content_type",
    "p": "priority",
    "d": "delivery_count",
}
"""The letters, and the attributes of a message."""

_PIECE: Final = re.compile(
    r"%(?:\{(?P<property>[^{}]+)\}|(?P<code>.?))|\\(?P<escape>[nt0\\])|(?P<text>[^%\\]+|\\)", re.DOTALL
)
_ESCAPES: Final = {"n": b"\n", "t": b"\t", "0": b"\0", "\\": b"\\"}


def parse_format(template: str) -> Callable[[Message], bytes]:
    """Return the function that writes a message by this template.

    ``%b`` is the body, ``%{NAME}`` an application property; see ``CODES``. ``\\n``, ``\\t``, ``\\0`` and ``\\\\`` are a newline, a tab,
    a zero octet and a backslash, and ``%%`` is a percent sign. What a message does not have is empty.

    Raises:
        ValueError: there is no such code.
    """
    parts: list[Callable[[Message], bytes]] = []
    for found in _PIECE.finditer(template):
        name, code = found["property"], found["code"]
        if name is not None:
            parts.append(_property(name))
        elif code is None:
            parts.append(_constant(_ESCAPES[found["escape"]] if found["escape"] else _octets(found["text"])))
        elif code == "%":
            parts.append(_constant(b"%"))
        elif code == "b":
            parts.append(body_octets)
        elif code in CODES:
            parts.append(_field(CODES[code]))
        else:
            known = ", ".join(f"%{letter} ({field})" for letter, field in CODES.items())
            raise ValueError(
                f"'%{code}' is not a code of a format; the codes are {known}, %{{NAME}} for an application property, and %%"
            )
    return lambda message: b"".join(part(message) for part in parts)


def _octets(text: str) -> bytes:
    return text.encode(errors="surrogateescape")  # an argument may have octets that are not UTF-8


def _constant(octets: bytes) -> Callable[[Message], bytes]:
    return lambda _: octets


def _field(name: str) -> Callable[[Message], bytes]:
    return lambda message: _shown(getattr(message, name))


def _property(name: str) -> Callable[[Message], bytes]:
    return lambda message: _shown(message.application_properties.get(name))


def _shown(value: Any) -> bytes:
    if value is None:
        return b""
    if isinstance(value, (str, bytes)):
        return value if isinstance(value, bytes) else value.encode()
    return as_line(to_json(value))
