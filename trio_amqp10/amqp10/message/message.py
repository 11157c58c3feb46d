"""A message in the payload of a delivery, section by section (3.2).

A received message keeps its octets and decodes on demand. The first access finds its sections; reading an
attribute decodes that one section completely. Sections that were not changed are written back with their
original octets, so an intermediary that changes the header or the delivery annotations forwards the bare
message unchanged, as it must (3.2).

Reading may raise ``RemoteProtocolError`` with scope ``link``, because nothing was checked before. The
condition is ``amqp:decode-error``, or ``amqp:resource-limit-exceeded`` for a section of more than 65,536
values.

Knows nothing of deliveries or links.
"""

from __future__ import annotations

import datetime
import uuid
from reprlib import Repr
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from trio_amqp10.amqp10.wire.pair_map import copied
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

from .fields import (
    HEADER_CHECKS,
    HEADER_FIELDS,
    PROPERTY_FIELDS,
    AnnotationsField,
    Field,
    MapField,
    checked_bytes,
    checked_fields,
    checked_id,
    checked_str,
    checked_symbol,
    checked_time,
    checked_uint,
)
from .readers_shortcut import USUAL_READERS, short_body
from .section_writers import SECTION_WRITERS, write_body
from .sections import (
    ANNOTATIONS,
    APPLICATION_PROPERTIES,
    BODY,
    CODES,
    DELIVERY_ANNOTATIONS,
    FOOTER,
    HEADER,
    PROPERTIES,
    Data,
    Mark,
    Sequence,
    Span,
    Value,
    body_sections,
    read_section,
    read_unusual,
    scan,
    stored_body,
)

try:
    from .writers_compiled import usual_payload
except ImportError:  # only the compiled wheel has it
    from .writers_shortcut import usual_payload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp10.wire.values import Symbol, Timestamp
    from trio_amqp10.core.tolerances import Tolerances

__all__ = ["Data", "Message", "Sequence", "Value", "encode_around", "encode_message"]

MessageId = str | bytes | uuid.UUID | int
Time = int | datetime.datetime


def encode_message(message: Any) -> bytes:
    """Return the payload of a message: octets, a str, any AMQP value or a ``Message``.

    Raises:
        LocalProtocolError: the value has no AMQP type, or a value in the message is illegal.
    """
    cls = message.__class__
    if cls is bytes:
        size = len(message)
        if size < 256:
            return b"\x00\x53\x75\xa0%c%b" % (size, message)
        if size < 0x100000:
            return b"\x00\x53\x75\xb0%b%b" % (size.to_bytes(4, "big"), message)
    if cls is Message:
        payload: bytes = message.to_payload()
        return payload
    if isinstance(message, Message):
        return message.to_payload()
    out = bytearray()
    write_body(out, message)
    return bytes(out)


def encode_around(message: Message) -> tuple[bytes, bytes]:
    """Return the sections before the body, and the footer after it.

    For a body that is sent separately.

    Raises:
        LocalProtocolError: the message has a body; or as ``encode_message``.
    """
    if message.body is not None:
        raise LocalProtocolError(
            f"the message of a stream has a body of type {type(message.body).__name__}: write the body to the stream"
        )
    parts = bytearray(), bytearray()
    for place, writer in enumerate(SECTION_WRITERS):
        value = message._load(place)  # noqa: SLF001 - our own # pyright: ignore[reportPrivateUsage]
        if place != BODY and value is not None:
            writer(parts[place > BODY], value)
    return bytes(parts[0]), bytes(parts[1])


_UNREAD: Final = Mark.UNREAD
_ABSENT: Final = Mark.ABSENT
_BUILT: Final = (None,) * 7
"""The spans of a message that was not received."""
_NOT_SCANNED: Final[Any] = (_UNREAD,) * 7
"""The sections of a received message before the first access."""
_FIRST_OF_BODIES: Final = bytes((CODES["amqp:data:binary"],))
_NO_HEADER: Final = [None] * 5
_NO_PROPERTIES: Final = [None] * 13
_IMMUTABLE: Final = frozenset({bytes, str, int, float, bool, type(None), uuid.UUID})


class Message:
    """One message: a body, properties and annotations.

    Args:
        body: ``bytes`` are sent as a data section, any other value as an amqp-value; ``Data``, ``Sequence``
            and ``Value`` choose the section explicitly.
        message_id: str, bytes, ``uuid.UUID``, or an int, which is sent as a ulong (3.2.4).
        user_id: octets that identify the user who made the message.
        to: the address of the destination node.
        subject: the subject.
        reply_to: the address for replies.
        correlation_id: the id of the message that this one answers; types as ``message_id``.
        content_type: a MIME type, for a body of data.
        content_encoding: the encoding of that data, e.g. ``gzip``.
        absolute_expiry_time: milliseconds since 1970 or an aware datetime.
        creation_time: milliseconds since 1970 or an aware datetime.
        group_id: the group that the message belongs to.
        group_sequence: its place in the group, modulo 2^32.
        reply_to_group_id: the group that replies belong to.
        durable: whether it must survive the loss of an intermediary (3.2.1).
        priority: 0 to 255; 4 is normal.
        ttl: milliseconds during which it is worth delivering.
        first_acquirer: whether no other link has acquired it before.
        delivery_count: how many earlier attempts to deliver it failed.
        application_properties: for filters and the application; simple values by str (3.2.5).
        annotations: message annotations (3.2.3); str keys are sent as symbols, ints as ulongs.
        delivery_annotations: for the next hop only (3.2.2); keys as in ``annotations``. The value of
            ``rejected`` is an ``Error``.
        footer: hashes and signatures of the message before it (3.2.9); keys as in ``annotations``.

    Every argument is also an attribute that can be read and set. The four maps read as an empty dict if
    absent, and as a ``PairMap`` if a dict cannot hold the received map. The body of a received message may
    have at most 65,536 values.

    Raises:
        LocalProtocolError: an argument has a wrong type or is out of range. The values in maps and bodies are
            checked when the message is sent.
    """

    __slots__ = ("_changed", "_lent", "_payload", "_sections", "_spans", "_tolerances", "message_format")

    _tolerances: Tolerances | None
    _in_order: ClassVar[bool] = False
    _allow_duplicates: ClassVar[bool] = False

    message_id: Field[MessageId | None, MessageId | None] = Field(PROPERTIES, "message_id")
    user_id: Field[bytes | None, bytes | bytearray | memoryview | None] = Field(PROPERTIES, "user_id")
    to: Field[str | None, str | None] = Field(PROPERTIES, "to")
    subject: Field[str | None, str | None] = Field(PROPERTIES, "subject")
    reply_to: Field[str | None, str | None] = Field(PROPERTIES, "reply_to")
    correlation_id: Field[MessageId | None, MessageId | None] = Field(PROPERTIES, "correlation_id")
    content_type: Field[Symbol | None, str | None] = Field(PROPERTIES, "content_type")
    content_encoding: Field[Symbol | None, str | None] = Field(PROPERTIES, "content_encoding")
    absolute_expiry_time: Field[Timestamp | None, Time | None] = Field(PROPERTIES, "absolute_expiry_time")
    creation_time: Field[Timestamp | None, Time | None] = Field(PROPERTIES, "creation_time")
    group_id: Field[str | None, str | None] = Field(PROPERTIES, "group_id")
    group_sequence: Field[int | None, int | None] = Field(PROPERTIES, "group_sequence")
    reply_to_group_id: Field[str | None, str | None] = Field(PROPERTIES, "reply_to_group_id")

    durable: Field[bool, bool | None] = Field(HEADER, "durable", False)
    priority: Field[int, int | None] = Field(HEADER, "priority", 4)
    ttl: Field[int | None, int | None] = Field(HEADER, "ttl")
    first_acquirer: Field[bool, bool | None] = Field(HEADER, "first_acquirer", False)
    delivery_count: Field[int, int | None] = Field(HEADER, "delivery_count", 0)

    application_properties: MapField = MapField(APPLICATION_PROPERTIES)
    annotations: MapField = AnnotationsField(ANNOTATIONS)
    delivery_annotations: MapField = AnnotationsField(DELIVERY_ANNOTATIONS)
    footer: MapField = AnnotationsField(FOOTER)

    def __init__(
        self,
        body: Any = None,
        *,
        message_id: MessageId | None = None,
        user_id: bytes | bytearray | memoryview | None = None,
        to: str | None = None,
        subject: str | None = None,
        reply_to: str | None = None,
        correlation_id: MessageId | None = None,
        content_type: str | None = None,
        content_encoding: str | None = None,
        absolute_expiry_time: Time | None = None,
        creation_time: Time | None = None,
        group_id: str | None = None,
        group_sequence: int | None = None,
        reply_to_group_id: str | None = None,
        durable: bool | None = None,
        priority: int | None = None,
        ttl: int | None = None,
        first_acquirer: bool | None = None,
        delivery_count: int | None = None,
        application_properties: Mapping[str, Any] | None = None,
        annotations: Mapping[Any, Any] | None = None,
        delivery_annotations: Mapping[Any, Any] | None = None,
        footer: Mapping[Any, Any] | None = None,
    ) -> None:
        # A value of the usual class is checked here, because a call for each field is slow.
        header: list[Any] = [durable, priority, ttl, first_acquirer, delivery_count]
        if header != _NO_HEADER and (durable.__class__ is not bool or header.count(None) < 4):
            header = checked_fields(HEADER_FIELDS, HEADER_CHECKS, header)
        if message_id is not None and message_id.__class__ is not str:
            message_id = checked_id("message_id", message_id)
        if user_id is not None:
            user_id = checked_bytes("user_id", user_id)
        if to is not None and to.__class__ is not str:
            to = checked_str("to", to)
        if subject is not None and subject.__class__ is not str:
            subject = checked_str("subject", subject)
        if reply_to is not None and reply_to.__class__ is not str:
            reply_to = checked_str("reply_to", reply_to)
        if correlation_id is not None and correlation_id.__class__ is not str:
            correlation_id = checked_id("correlation_id", correlation_id)
        if content_type is not None:
            content_type = checked_symbol("content_type", content_type)
        if content_encoding is not None:
            content_encoding = checked_symbol("content_encoding", content_encoding)
        if absolute_expiry_time is not None:
            absolute_expiry_time = checked_time("absolute_expiry_time", absolute_expiry_time)
        if creation_time is not None:
            creation_time = checked_time("creation_time", creation_time)
        if group_id is not None:
            group_id = checked_str("group_id", group_id)
        if group_sequence is not None:
            group_sequence = checked_uint("group_sequence", group_sequence)
        if reply_to_group_id is not None:
            reply_to_group_id = checked_str("reply_to_group_id", reply_to_group_id)
        properties: list[Any] = [
            message_id,
            user_id,
            to,
            subject,
            reply_to,
            correlation_id,
            content_type,
            content_encoding,
            absolute_expiry_time,
            creation_time,
            group_id,
            group_sequence,
            reply_to_group_id,
        ]
        self.message_format: int = 0
        self._payload = b""
        self._spans: list[Span | None] | tuple[None, ...] | None = _BUILT
        self._changed = True
        self._lent = 0
        self._sections: list[Any] = [
            None if header == _NO_HEADER else header,
            copied(delivery_annotations) if delivery_annotations else None,
            copied(annotations) if annotations else None,
            None if properties == _NO_PROPERTIES else properties,
            copied(application_properties) if application_properties else None,
            body if body.__class__ is bytes else stored_body(body),
            copied(footer) if footer else None,
        ]

    @classmethod
    def from_payload(
        cls, payload: bytes, message_format: int = 0, tolerances: Tolerances | None = None
    ) -> Self:
        """Make a message from received octets; nothing is decoded before it is accessed.

        Args:
            payload: the payload of a delivery, complete.
            message_format: the message-format of the first transfer; 0 for the format of the standard
                (2.8.11).
            tolerances: counts the rules that the octets break and this class does not enforce; None for no count.
        """
        message = cls.__new__(cls)
        message.message_format = message_format
        message._payload = payload  # noqa: SLF001 - an attribute of this class
        message._spans = None  # noqa: SLF001
        message._sections = _NOT_SCANNED  # noqa: SLF001
        message._tolerances = tolerances  # noqa: SLF001
        return message

    def to_payload(self) -> bytes:
        """Return the octets of the message; unchanged sections keep their octets.

        Raises:
            LocalProtocolError: a value in a map or in the body has no AMQP type, or is not allowed there.
        """
        spans = self._spans
        if spans is None or not (self._changed or self._lent):
            return self._payload
        if spans is _BUILT:
            usual = usual_payload(self._sections)
            if usual is not None:
                return usual
        out = bytearray()
        self._write(out, range(len(spans)))
        return bytes(out)

    def _write(self, out: bytearray, places: range) -> None:
        """Append sections: the received octets if unchanged, otherwise newly encoded."""
        spans = self._spans
        assert spans is not None
        for place in places:
            value, span = self._sections[place], spans[place]
            if span is not None and not self._differs(place, span):
                out += self._payload[span[0] : span[1]]
            elif value is not None and value is not _UNREAD:
                SECTION_WRITERS[place](out, value)

    @property
    def body(self) -> Any:
        """The body: the octets of data, the items of sequences, or the value.

        All data sections are joined, and so are the lists of all sequences. None also for a message without a
        body section, which is illegal but happens.
        """
        value = self._sections[BODY]
        if value is _UNREAD:
            payload = self._payload
            if self._spans is None and payload[2:3] >= _FIRST_OF_BODIES:
                body = short_body(payload, 0, len(payload))
                if body is not None:
                    return body
            value = self._load(BODY)
        if value.__class__ in _IMMUTABLE:
            return value
        if isinstance(value, Data):
            return b"".join(value.chunks)
        if value is _ABSENT:
            return None
        self._lent |= 1 << BODY
        if isinstance(value, Sequence):
            return [item for items in value.lists for item in items]
        return value.value if isinstance(value, Value) else value

    @body.setter
    def body(self, body: Any) -> None:
        self._replace(BODY, stored_body(body))

    @property
    def bare(self) -> bytes:
        """The octets of the bare message: properties, application-properties, body (3.2).

        No intermediary may change them, so a signature over them stays valid; header, annotations and footer,
        which may change, are not included.

        Raises:
            LocalProtocolError: as ``to_payload``.
        """
        out = bytearray()
        self._load(HEADER)
        self._write(out, range(PROPERTIES, FOOTER))
        return bytes(out)

    @property
    def sections(self) -> tuple[Data | Sequence | Value, ...]:
        """The body section by section: one object for each section on the wire."""
        body = self._load(BODY)
        self._lent |= 1 << BODY
        return body_sections(body)

    def __copy__(self) -> Self:
        """Return an independent copy: a change of one does not change the other."""
        return type(self).from_payload(self.to_payload(), self.message_format)

    def __eq__(self, other: object) -> bool:
        """Whether all sections are equal; an empty section equals an absent one."""
        if not isinstance(other, Message):
            return NotImplemented
        return self._comparable() == other._comparable()

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # it may change

    def __repr__(self) -> str:
        try:
            shown = [_REPR.repr(self.body)]
            for name in (*PROPERTY_FIELDS, *HEADER_FIELDS):
                value = getattr(self, name)
                if value != getattr(type(self), name).default:
                    shown.append(f"{name}={_REPR.repr(value)}")
            for name in ("application_properties", "annotations", "delivery_annotations", "footer"):
                value = self._load(getattr(type(self), name).place)
                if value:
                    shown.append(f"{name}={_REPR.repr(value)}")
        except RemoteProtocolError as error:
            return f"<Message of {len(self._payload)} octets, undecodable: {error.description[:100]}>"
        return f"Message({', '.join(shown)})"

    # -- for the attributes

    def _load(self, place: int) -> Any:
        """Return the content of a section, decoded if necessary; None if absent."""
        value = self._sections[place]
        if value is not _UNREAD:
            return value
        spans = self._spans
        if spans is None:
            spans = scan(self._payload, self._in_order, self._tolerances)
            self._changed = False
            self._lent = 0
            self._sections = [_UNREAD] * len(spans)
            self._spans = spans
        span = spans[place]
        if span is None:
            value = _ABSENT if place == BODY else None
        else:
            payload = self._payload
            start, end = span
            value = USUAL_READERS[place](payload, start, end)
            if value is None:
                value = read_unusual(place, payload, span, self._allow_duplicates, self._tolerances)
        self._sections[place] = value
        return value

    def _replace(self, place: int, value: Any) -> None:
        self._load(HEADER)
        self._sections[place] = value
        self._changed = True
        if isinstance(self._spans, list):
            self._spans[place] = None

    def _differs(self, place: int, span: Span) -> bool:
        """Whether a section that was returned to the user has changed since.

        The octets are compared, because Python treats values of different types as equal.
        """
        if not self._lent >> place & 1:
            return False
        before = read_section(place, self._payload, span, self._allow_duplicates)
        now = self._sections[place]
        octets = bytearray(), bytearray()
        try:
            SECTION_WRITERS[place](octets[0], before)
            SECTION_WRITERS[place](octets[1], now)
        except LocalProtocolError:  # the peer sent a value that we may not send
            return bool(before != now)
        return octets[0] != octets[1]

    def _comparable(self) -> list[Any]:
        return [
            [getattr(self, name) for name in HEADER_FIELDS],
            [getattr(self, name) for name in PROPERTY_FIELDS],
            [self._load(place) or {} for place in _MAPS],
            body_sections(self._load(BODY)),
        ]


_MAPS: Final = (DELIVERY_ANNOTATIONS, ANNOTATIONS, APPLICATION_PROPERTIES, FOOTER)


class _BoundedRepr(Repr):
    """A ``Repr`` that also shortens octets before it formats them."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 80

    def repr_bytes(self, octets: bytes, _level: int) -> str:
        return repr(octets) if len(octets) <= 40 else f"{octets[:40]!r}... ({len(octets)} octets)"


_REPR: Final = _BoundedRepr()
