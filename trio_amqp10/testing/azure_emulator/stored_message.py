"""StoredMessage: a message in an entity, and its octets for a receiver.

A message without a message-id gets one, as in the service. A receiver gets the received octets, but for the header, which has the
delivery-count, and the message-annotations (3.2.1, 3.2.3); both are written again for each delivery.

Knows one message; knows no locks and no clock.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import (
    TYPE_NAMES,
    Array,
    Described,
    Int,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
)

from .batch_unpacking import content
from .constants import (
    DEAD_LETTER_SOURCE,
    ENQUEUED,
    LOCK_TOKEN,
    LOCKED_UNTIL,
    ORIGIN,
    SCHEDULED,
    SEQUENCE_NUMBER,
    STATE,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SIMPLE: Final = frozenset(TYPE_NAMES) - {list, dict, Array}

_HEADER: Final = ULong(0x70)
_DELIVERY_ANNOTATIONS: Final = ULong(0x71)
_ANNOTATIONS: Final = ULong(0x72)
_OURS: Final = frozenset({SEQUENCE_NUMBER, ENQUEUED, LOCKED_UNTIL, STATE, ORIGIN})
"""Annotations that a sender cannot set."""


class StoredMessage:
    """A message as an entity stores it, without its lock.

    Args:
        message: the received message.

    Attributes:
        session: the session of the message (its ``group-id``), or None.
        ttl: the time to live that its sender set, in milliseconds from when it is enqueued; None for no limit.
        due: when the message will be enqueued, in milliseconds since 1970, as its sender set; None for at once.
        number: its sequence number; 0 before it has one.
        origin: the first sequence number that it had, in another entity or before it was due.
        enqueued: when it was enqueued, in milliseconds since 1970.
        failures: the number of failed deliveries.
        message_id: the message-id that its sender set, as text, or None.
        hops: how often it was forwarded.

    Raises:
        RemoteProtocolError: the octets are not a message.
    """

    __slots__ = (
        "_annotations",
        "_durable",
        "_priority",
        "_rest",
        "due",
        "enqueued",
        "failures",
        "hops",
        "message_id",
        "number",
        "origin",
        "session",
        "ttl",
    )

    def __init__(self, message: Message) -> None:
        payload = message.to_payload()
        mine = Message.from_payload(payload)
        self._rest = content(payload)
        self.message_id: str | None = None if mine.message_id is None else str(mine.message_id)
        self.hops: int = 0
        if mine.message_id is None:  # the client for JavaScript cannot settle a message without an id
            named = Message.from_payload(self._rest)
            named.message_id = uuid.uuid4().hex
            self._rest = named.to_payload()
        self._annotations = {key: value for key, value in mine.annotations.items() if key not in _OURS}
        self._durable = mine.durable
        self._priority = mine.priority
        self.session: str | None = mine.group_id
        self.ttl: int | None = mine.ttl
        due: Any = self._annotations.get(SCHEDULED)
        self.due: int | None = int(due) if isinstance(due, int) else None
        self.number: int = 0
        self.origin: int = 0
        self.enqueued: int = 0
        self.failures: int = 0

    def copy(self) -> StoredMessage:
        """Return the same message for another entity, which assigns its own number."""
        other = StoredMessage.__new__(StoredMessage)
        for name in StoredMessage.__slots__:
            setattr(other, name, getattr(self, name))
        return other

    def forwarded(self, dead_letter_source: str | None) -> StoredMessage:
        """Return the same message for the entity that it is moved to.

        Args:
            dead_letter_source: the entity in which it became a dead letter; None if it did not.
        """
        other = self.copy()
        other.hops += 1
        other.enqueued = other.failures = 0
        other.due = None
        other.origin = self.origin
        if dead_letter_source is not None:
            other._annotations = {**self._annotations, DEAD_LETTER_SOURCE: dead_letter_source}  # noqa: SLF001
        return other

    def changed_by(self, action: Callable[[Message], None], rule: str) -> StoredMessage:
        """Return a copy that the action of a rule has changed, and that names the rule."""
        other = self.copy()
        message = Message.from_payload(self._rest)
        action(message)
        message.application_properties = {**message.application_properties, "RuleName": rule}
        other._rest = message.to_payload()  # noqa: SLF001
        other.session = message.group_id
        return other

    @property
    def message(self) -> Message:
        """The message without header and annotations, for filters."""
        return Message.from_payload(self._rest)

    def change(self, properties: Mapping[Any, Any]) -> None:
        """Add application-properties of a receiver or the service.

        Values that are not simple types (3.2.5), None included, are left out.
        """
        changes = {str(key): value for key, value in properties.items() if value.__class__ in _SIMPLE}
        if not changes:
            return
        message = Message.from_payload(self._rest)
        message.application_properties = {**message.application_properties, **changes}
        self._rest = message.to_payload()

    def render(self, state: int, locked_until: int | None = None, token: uuid.UUID | None = None) -> bytes:
        """Return the octets of the message for a receiver.

        Args:
            state: 0 for active, 1 for deferred, 2 for scheduled.
            locked_until: the end of the lock in milliseconds since 1970; None without a lock.
            token: the lock-token, for a receiver that gets no delivery-tag.
        """
        header = [
            self._durable,
            UByte(self._priority),
            None if self.ttl is None else UInt(self.ttl),
            None,
            UInt(self.failures),
        ]
        annotations: dict[Symbol, Any] = {
            **self._annotations,
            SEQUENCE_NUMBER: self.number,
            ENQUEUED: Timestamp(self.enqueued),
            ORIGIN: self.origin,
            STATE: Int(state),
        }
        if locked_until is not None:
            annotations[LOCKED_UNTIL] = Timestamp(locked_until)
        sections = encode(Described(_HEADER, header))
        if token is not None:
            sections += encode(Described(_DELIVERY_ANNOTATIONS, {LOCK_TOKEN: token}))
        return sections + encode(Described(_ANNOTATIONS, annotations)) + self._rest
