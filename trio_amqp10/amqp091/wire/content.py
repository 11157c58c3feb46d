"""Contents: properties and a body that follow a method (0-9-1, 4.2.6).

The module reads and writes content headers. The engine's channel puts header and bodies together.
"""

from __future__ import annotations

import dataclasses
import struct
import typing
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self, TypeVar, dataclass_transform

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.reply_codes import ReplyCode091

from .faults import ReplyError
from .fields import Letters, Scan
from .methods import FieldType, field_type_of, octet, shortstr, table
from .methods import timestamp as seconds

if TYPE_CHECKING:
    from collections.abc import Callable

BASIC: Final = 60
"""The number of the class basic, whose methods have contents in 0-9-1."""

_HEADER: Final = struct.Struct(">HHQH")
_FLAGS: Final = struct.Struct(">H")
_CONTINUED: Final = 1


P = TypeVar("P", bound="Properties")


@dataclass_transform(kw_only_default=True, field_specifiers=(dataclasses.field,))
def properties(class_id: int) -> Callable[[type[P]], type[P]]:
    """Make a class decorator for the properties of a class of the protocol.

    The annotations of the decorated class are the properties, in the order of their flags (4.2.6.1).

    Raises:
        TypeError: an annotation is not a property type.
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
    """The base class of all properties; an absent property is None.

    Attributes:
        class_id: the number of the class whose contents have them.
        rows: each property's flag, name and type, the highest flag first (4.2.6.1).
    """

    __slots__ = ()
    class_id: ClassVar[int]
    rows: ClassVar[tuple[tuple[int, str, FieldType], ...]]

    def encode(self, letters: Letters) -> bytes:
        """Return the flags and the values (4.2.6.1).

        Raises:
            LocalProtocolError: a value does not fit its property's type; the message names the property.
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
        """Decode flags and values, from ``pos`` to the end of ``buf``.

        Raises:
            ReplyError: 501, there are too few or too many octets; 502, a value is not valid, or a flag has no
                property.
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
    """The properties of the basic class; None for an absent one."""

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
        size: the announced size of the body in octets.
        properties: the properties of the method's class, such as ``BasicProperties``.
        octets: flags and values of the properties, as received.
    """

    size: int
    properties: Any
    octets: bytes


class Content(NamedTuple):
    """Properties and body of a method.

    Attributes:
        properties: the properties of the method's class, such as ``BasicProperties``.
        body: the octets.
        octets: flags and values of the properties, as received; None for a content that was made here.
    """

    properties: Any
    body: bytes
    octets: bytes | None = None


class ContentCodes(NamedTuple):
    """The reply codes of a version for contents out of order; by default 0-9-1's.

    Attributes:
        out_of_order: a frame of another type than the channel expects.
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
"""The reply codes of 0-9-1."""


def read_header(
    payload: bytes,
    letters: Letters,
    expected: type[Properties] = BasicProperties,
    codes: ContentCodes = CODES,
) -> ContentHeader:
    """Read the payload of a content header frame.

    Args:
        payload: the payload of the frame.
        letters: the types of field tables.
        expected: the properties of the class of the preceding method.
        codes: the reply codes of the version.

    Raises:
        ReplyError: another class, or a weight that is not 0, with their codes; 501, there are too few or too
            many octets; 502, a value is not valid.
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
    """Return the payload of a content header frame; received octets are reused.

    Raises:
        LocalProtocolError: see ``Properties.encode``.
    """
    octets = content.properties.encode(letters) if content.octets is None else content.octets
    return b"".join((_HEADER.pack(class_id, 0, len(content.body), 0)[:-2], octets))
