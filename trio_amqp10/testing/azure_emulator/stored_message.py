"""StoredMessage: a message in an entity, and its octets for a receiver.

A message without a message-id is given one, as the service does. Else what a receiver gets differs from what was sent in the header, for the
delivery-count, and in the message-annotations (3.2.1, 3.2.3); these are written anew for each delivery. The rest stays the octets that came.

Knows one message; knows no locks, and no time but what it is told.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.message import Message
from trio_amqp10.wire.encode import encode
from trio_amqp10.wire.values import TYPE_NAMES, Array, Described, Int, Symbol, Timestamp, UByte, UInt, ULong

from .batch_unpacking import content
from .constants import ENQUEUED, LOCKED_UNTIL, ORIGIN, SCHEDULED, SEQUENCE_NUMBER, STATE

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["StoredMessage"]

_SIMPLE: Final = frozenset(TYPE_NAMES) - {list, dict, Array}

_HEADER: Final = ULong(0x70)
_ANNOTATIONS: Final = ULong(0x72)
_OURS: Final = frozenset({SEQUENCE_NUMBER, ENQUEUED, LOCKED_UNTIL, STATE, ORIGIN})
"""Annotations that senders have no say in."""


class StoredMessage:
    """What an entity knows of a message, apart from who has it.

    Args:
        message: as it came.

    Attributes:
        session: what it belongs to (its ``group-id``), or None.
        ttl: milliseconds that its sender gives it from when it is enqueued; None for ever.
        due: milliseconds since 1970 when its sender wants it enqueued; None for at once.
        number: its sequence number; 0 before it has one.
        origin: the first that it had, in another entity or before it was due.
        enqueued: when that was, in milliseconds since 1970.
        failures: deliveries that came to nothing.

    Raises:
        RemoteProtocolError: its octets are no message.
    """

    __slots__ = (
        "_annotations",
        "_durable",
        "_priority",
        "_rest",
        "due",
        "enqueued",
        "failures",
        "number",
        "origin",
        "session",
        "ttl",
    )

    def __init__(self, message: Message) -> None:
        payload = message.to_payload()
        mine = Message.from_payload(payload)
        self._rest = content(payload)
        if (
            mine.message_id is None
        ):  # clients rely on it: that for JavaScript cannot settle a message without one
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
        """The same message for another entity, where it gets a number of its own."""
        other = StoredMessage.__new__(StoredMessage)
        for name in StoredMessage.__slots__:
            setattr(other, name, getattr(self, name))
        return other

    @property
    def message(self) -> Message:
        """The message without header and annotations, for filters."""
        return Message.from_payload(self._rest)

    def change(self, properties: Mapping[Any, Any]) -> None:
        """Merge into the application-properties what a receiver, or the service, has to say.

        None, and what is no simple value (3.2.5), is left out.
        """
        said = {str(key): value for key, value in properties.items() if value.__class__ in _SIMPLE}
        if not said:
            return
        message = Message.from_payload(self._rest)
        message.application_properties = {**message.application_properties, **said}
        self._rest = message.to_payload()

    def render(self, state: int, locked_until: int | None = None) -> bytes:
        """The octets of it for a receiver.

        Args:
            state: 0 for active, 1 for deferred, 2 for scheduled.
            locked_until: milliseconds since 1970; None where it is not locked.
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
        return encode(Described(_HEADER, header)) + encode(Described(_ANNOTATIONS, annotations)) + self._rest
