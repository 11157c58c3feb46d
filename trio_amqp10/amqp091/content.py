"""Contents: properties and a body, after a method that carries them (0-9-1, 4.2.6).

Knows the octets of a content header, and how header and bodies become one content again within bounds; which frames a
content may be mixed with is the channel's concern.
"""

from __future__ import annotations

import dataclasses
import struct
import typing
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self, TypeVar, dataclass_transform

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.reply_codes import ReplyCode091

from .faults import ReplyError
from .fields import Letters, Scan
from .methods import FieldType, field_type_of, octet, shortstr, table
from .methods import timestamp as seconds

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "BASIC",
    "CODES",
    "BasicProperties",
    "Content",
    "ContentCodes",
    "ContentHeader",
    "Properties",
    "properties",
    "read_header",
    "write_header",
]

BASIC: Final = 60
"""The class whose methods carry contents in 0-9-1."""

_HEADER: Final = struct.Struct(">HHQH")
_FLAGS: Final = struct.Struct(">H")
_CONTINUED: Final = 1


P = TypeVar("P", bound="Properties")


@dataclass_transform(kw_only_default=True, field_specifiers=(dataclasses.field,))
def properties(class_id: int) -> Callable[[type[P]], type[P]]:
    """Make a class of annotated properties those of a class of the protocol, in the order of their flags (4.2.6.1).

    Raises:
        TypeError: an annotation gives no type of a property.
    """

    def decorate(cls: type[P]) -> type[P]:
        hints = typing.get_type_hints(cls, include_extras=True)
        names = [name for name in hints if name not in ("class_id", "rows")]
        made: Any = dataclasses.dataclass(slots=True, kw_only=True)(cls)
        made.class_id = class_id
        made.rows = tuple(
            (1 << 15 - place, name, field_type_of(hints[name])) for place, name in enumerate(names)
        )
        return typing.cast("type[P]", made)

    return decorate


class Properties:
    """The base of all properties; None stands for one that is absent.

    Attributes:
        class_id: the number of the class whose contents have them.
        rows: each property's flag, name and type, the highest flag first (4.2.6.1).
    """

    __slots__ = ()
    class_id: ClassVar[int]
    rows: ClassVar[tuple[tuple[int, str, FieldType], ...]]

    def encode(self, letters: Letters) -> bytes:
        """The flags and the values (4.2.6.1).

        Raises:
            LocalProtocolError: a property that its type does not take; the message names it.
        """
        flags, out = 0, bytearray(2)
        for flag, name, kind in self.rows:
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
    def decode(cls, buf: bytes, pos: int, letters: Letters) -> Self:
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
        for flag, name, kind in cls.rows:
            if flags & flag:
                found[name], pos = kind.read(buf, pos, end, scan)
        if pos != end:
            raise ReplyError(ReplyCode091.FRAME_ERROR, f"{end - pos} octets after the last property")
        return cls(**found)


@properties(BASIC)
class BasicProperties(Properties):
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


class ContentHeader(NamedTuple):
    """A content header (4.2.6.1).

    Attributes:
        size: octets of the body that the peer announces.
        properties: what it says of the content: those of the class of its method, such as ``BasicProperties``.
        octets: flags and values of the properties as they came.
    """

    size: int
    properties: Any
    octets: bytes


class Content(NamedTuple):
    """What a method carries.

    Attributes:
        properties: those of the class of the method, such as ``BasicProperties``.
        body: the octets.
        octets: flags and values of the properties as they came; None for a content that was made here.
    """

    properties: Any
    body: bytes
    octets: bytes | None = None


class ContentCodes(NamedTuple):
    """The codes with which a version answers frames of contents that are out of place; 0-9-1's unless said.

    Attributes:
        out_of_order: another type of frame than is due on the channel.
        other_class: a header whose class is not that of the method.
        weight: a header that announces contents within the content.
        on_channel_0: a header or a body on channel 0.
        on_closed_channel: a header or a body on a channel that is not open.
    """

    out_of_order: ReplyCode091 = ReplyCode091.UNEXPECTED_FRAME
    other_class: ReplyCode091 = ReplyCode091.UNEXPECTED_FRAME
    weight: ReplyCode091 = ReplyCode091.UNEXPECTED_FRAME
    on_channel_0: ReplyCode091 = ReplyCode091.UNEXPECTED_FRAME
    on_closed_channel: ReplyCode091 = ReplyCode091.UNEXPECTED_FRAME


CODES: Final = ContentCodes()
"""Those of 0-9-1."""


def read_header(
    payload: bytes,
    letters: Letters,
    expected: type[Properties] = BasicProperties,
    codes: ContentCodes = CODES,
) -> ContentHeader:
    """The payload of a content header frame.

    Args:
        payload: of the frame.
        letters: the types that field tables have.
        expected: the properties of the class of the method before it.
        codes: of the version.

    Raises:
        ReplyError: another class, or a weight that is not 0, with their codes; 501, it ends early or late; 502, a value is wrong.
    """
    if len(payload) < _HEADER.size:
        raise ReplyError(ReplyCode091.FRAME_ERROR, f"a content header of {len(payload)} octets")
    class_id, weight, size, _ = _HEADER.unpack_from(payload)
    if class_id != expected.class_id or weight:
        raise ReplyError(
            codes.other_class if class_id != expected.class_id else codes.weight,
            f"a content header of class {class_id} with weight {weight}",
        )
    start = _HEADER.size - 2
    return ContentHeader(size, expected.decode(payload, start, letters), payload[start:])


def write_header(content: Content, letters: Letters, class_id: int = BASIC) -> bytes:
    """The payload of a content header frame; properties that came are written as they came.

    Raises:
        LocalProtocolError: see ``Properties.encode``.
    """
    octets = content.properties.encode(letters) if content.octets is None else content.octets
    return b"".join((_HEADER.pack(class_id, 0, len(content.body), 0)[:-2], octets))
