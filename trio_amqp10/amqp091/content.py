"""Contents: properties and a body, after a method that carries them (0-9-1, 4.2.6).

Knows the octets of a content header, and how header and bodies become one content again within bounds; which frames a
content may be mixed with is the channel's concern.
"""

from __future__ import annotations

import dataclasses
import struct
import typing
from typing import Any, Final, NamedTuple, dataclass_transform

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.reply_codes import ReplyCode091

from .faults import ReplyError
from .fields import Letters, Scan
from .methods import FieldType, field_type_of, octet, shortstr, table
from .methods import timestamp as seconds

__all__ = ["BASIC", "BasicProperties", "Content", "ContentHeader", "read_header", "write_header"]

BASIC: Final = 60
"""The class whose methods carry contents."""

_HEADER: Final = struct.Struct(">HHQH")
_FLAGS: Final = struct.Struct(">H")
_CONTINUED: Final = 1


@dataclass_transform(kw_only_default=True)
def _properties(cls: type[BasicProperties]) -> type[BasicProperties]:
    hints = typing.get_type_hints(cls, include_extras=True)
    made = dataclasses.dataclass(slots=True, kw_only=True)(cls)
    for place, (name, hint) in enumerate(hints.items()):
        _ROWS.append((1 << 15 - place, name, field_type_of(hint)))
    return made


_ROWS: Final[list[tuple[int, str, FieldType]]] = []
"""Each property's flag, name and type, the highest flag first (4.2.6.1)."""


@_properties
class BasicProperties:
    """The properties of the basic class, in the order of their flags; None for one that is absent."""

    content_type: shortstr | None = None
    content_encoding: shortstr | None = None
    headers: table | None = None
    delivery_mode: octet | None = None
    priority: octet | None = None
    correlation_id: shortstr | None = None
    reply_to: shortstr | None = None
    expiration: shortstr | None = None
    message_id: shortstr | None = None
    timestamp: seconds | None = None
    type: shortstr | None = None
    user_id: shortstr | None = None
    app_id: shortstr | None = None
    cluster_id: shortstr | None = None

    def encode(self, letters: Letters) -> bytes:
        """The flags and the values (4.2.6.1).

        Raises:
            LocalProtocolError: a property that its type does not take; the message names it.
        """
        flags, out = 0, bytearray(2)
        for flag, name, kind in _ROWS:
            value = getattr(self, name)
            if value is not None:
                flags |= flag
                try:
                    kind.write(out, value, letters)
                except LocalProtocolError as error:
                    raise LocalProtocolError(f"{name}: {error}") from error
        _FLAGS.pack_into(out, 0, flags)
        return bytes(out)

    @classmethod
    def decode(cls, buf: bytes, pos: int, letters: Letters) -> BasicProperties:
        """What ``encode`` wrote, from ``pos`` to the end.

        Raises:
            ReplyError: 501, they end early or late; 502, a value is wrong, or there are flags of no property.
        """
        end, scan = len(buf), Scan(letters)
        flags = 0
        more = True
        words = 0
        while more:
            if pos + 2 > end:
                raise ReplyError(ReplyCode091.FRAME_ERROR, "the content header ends within its flags")
            word = _FLAGS.unpack_from(buf, pos)[0]
            pos += 2
            if words and word:
                raise ReplyError(
                    ReplyCode091.SYNTAX_ERROR, f"flags {word:#06x} of properties that do not exist"
                )
            flags |= word
            more = bool(word & _CONTINUED)
            words += 1
        found: dict[str, Any] = {}
        for flag, name, kind in _ROWS:
            if flags & flag:
                found[name], pos = kind.read(buf, pos, end, scan)
        if pos != end:
            raise ReplyError(ReplyCode091.FRAME_ERROR, f"{end - pos} octets after the last property")
        return cls(**found)


class ContentHeader(NamedTuple):
    """A content header (4.2.6.1).

    Attributes:
        size: octets of the body that the peer announces.
        properties: what it says of the content.
        octets: flags and values of the properties as they came.
    """

    size: int
    properties: BasicProperties
    octets: bytes


class Content(NamedTuple):
    """What a method carries.

    Attributes:
        properties: the basic properties.
        body: the octets.
        octets: flags and values of the properties as they came; None for a content that was made here.
    """

    properties: BasicProperties
    body: bytes
    octets: bytes | None = None


def read_header(payload: bytes, letters: Letters) -> ContentHeader:
    """The payload of a content header frame.

    Raises:
        ReplyError: 505, another class than basic or a weight that is not 0; 501, it ends early or late; 502, a value is wrong.
    """
    if len(payload) < _HEADER.size:
        raise ReplyError(ReplyCode091.FRAME_ERROR, f"a content header of {len(payload)} octets")
    class_id, weight, size, _ = _HEADER.unpack_from(payload)
    if class_id != BASIC or weight:
        raise ReplyError(
            ReplyCode091.UNEXPECTED_FRAME, f"a content header of class {class_id} with weight {weight}"
        )
    start = _HEADER.size - 2
    return ContentHeader(size, BasicProperties.decode(payload, start, letters), payload[start:])


def write_header(content: Content, letters: Letters) -> bytes:
    """The payload of a content header frame; properties that came are written as they came.

    Raises:
        LocalProtocolError: see ``BasicProperties.encode``.
    """
    octets = content.properties.encode(letters) if content.octets is None else content.octets
    return b"".join((_HEADER.pack(BASIC, 0, len(content.body), 0)[:-2], octets))
