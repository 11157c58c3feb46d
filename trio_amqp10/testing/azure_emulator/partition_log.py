"""Partition: the events of a hub's partition, in order, numbered and dated.

Receivers never remove events: events are deleted when they are too old or too many. There is no timer; each call first
deletes those events.

Knows events and times; knows no links.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.message.sections import HEADER, scan
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import Described, Symbol, Timestamp, ULong
from trio_amqp10.broker.nodes.node import RefusedError

from .batch_unpacking import content
from .constants import ARGUMENT_ERROR, ENQUEUED, OFFSET, PARTITION_KEY, SEQUENCE_NUMBER

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.broker.nodes.clock import Clock

    from .entity_options import HubOptions
    from .event_positions import Position

_DELIVERY_ANNOTATIONS: Final = ULong(0x71)
_ANNOTATIONS: Final = ULong(0x72)
_OURS: Final = frozenset({SEQUENCE_NUMBER, OFFSET, ENQUEUED})
"""Annotations that a sender cannot set."""
_NO_TIME: Final = -62_135_596_800_000
"""The time of an empty partition: the first moment of the year 1."""

_ATTRIBUTE: Final = {
    SEQUENCE_NUMBER: attrgetter("number"),
    OFFSET: attrgetter("offset"),
    ENQUEUED: attrgetter("enqueued"),
}


class Event:
    """A stored event: the received octets, with additional annotations.

    Args:
        message: the received message.
        key: the partition key of the batch that contained it.

    Attributes:
        size: the octets of the event.
        number: its sequence number, after it is in a partition.
        offset: the octets of all earlier events of the partition.
        enqueued: when it arrived, in milliseconds since 1970.

    Raises:
        RemoteProtocolError: the octets are not a message.
    """

    __slots__ = ("_annotations", "_content", "_header", "_tail", "enqueued", "number", "offset", "size")

    def __init__(self, message: Message, key: str | None = None) -> None:
        payload = message.to_payload()
        self.size: int = len(payload)
        mine = Message.from_payload(payload)
        span = scan(payload)[HEADER]
        self._header = b"" if span is None else payload[span[0] : span[1]]
        self._annotations = {key: value for key, value in mine.annotations.items() if key not in _OURS}
        if key is not None:
            self._annotations.setdefault(PARTITION_KEY, key)
        self._content = content(payload)
        self._tail = b""
        self.number: int = -1
        self.offset: int = -1
        self.enqueued: int = 0

    def place(self, number: int, offset: int, enqueued: int) -> None:
        """Set number, offset and time, which the partition assigns."""
        self.number, self.offset, self.enqueued = number, offset, enqueued
        annotations: dict[Symbol, Any] = {
            **self._annotations,
            SEQUENCE_NUMBER: number,
            OFFSET: str(offset),
            ENQUEUED: Timestamp(enqueued),
        }
        self._tail = encode(Described(_ANNOTATIONS, annotations)) + self._content

    def render(self, metrics: dict[Symbol, Any] | None = None) -> Message:
        """Return the message for a receiver.

        Args:
            metrics: delivery-annotations to add.
        """
        between = b"" if metrics is None else encode(Described(_DELIVERY_ANNOTATIONS, metrics))
        return Message.from_payload(self._header + between + self._tail)


class Partition:
    """A partition of a hub; its ``len`` is the number of its events.

    Args:
        number: its id, as a string.
        options: how long and how many events it keeps.
        clock: the clock for the times of events.

    Attributes:
        id: as given.
        end: the number of the next event.
        last_offset: the offset of the last event, or -1.
        last_enqueued: when the last event arrived, in milliseconds since 1970; the year 1 if there was none.
        on_append: callbacks for new events.
    """

    def __init__(self, number: str, options: HubOptions, clock: Clock) -> None:
        self.id = number
        self.end: int = 0
        self.last_offset: int = -1
        self.last_enqueued: int = _NO_TIME
        self.on_append: list[Callable[[], object]] = []
        self._next_offset = 0
        self._options = options
        self._clock = clock
        self._events: list[Event] = []

    def __len__(self) -> int:
        self.sweep()
        return len(self._events)

    @property
    def begin(self) -> int:
        """The number of the first stored event; ``end`` if there is none."""
        self.sweep()
        return self._events[0].number if self._events else self.end

    @property
    def messages(self) -> list[Message]:
        """The stored events, as receivers get them."""
        self.sweep()
        return [event.render() for event in self._events]

    def append(self, events: list[Event]) -> None:
        """Store more events."""
        now = max(round(self._clock.wall() * 1000), self.last_enqueued)
        for event in events:
            event.place(self.end, self._next_offset, now)
            self.last_offset = self._next_offset
            self._next_offset += event.size
            self.end += 1
        self.last_enqueued = now
        self._events += events
        self.sweep()
        for call in self.on_append:
            call()

    def sweep(self) -> None:
        """Delete the events that are too old or too many."""
        events = self._events
        gone = max(0, len(events) - self._options.max_events)
        retention = self._options.message_retention
        if retention is not None and events:
            oldest = round((self._clock.wall() - retention) * 1000)
            if events[0].enqueued <= oldest:
                gone = max(gone, bisect_right(events, oldest, key=_ATTRIBUTE[ENQUEUED]))
        if gone:
            del events[:gone]

    def find(self, position: Position) -> int:
        """Return the number of the first event at a position.

        Raises:
            RefusedError: ``com.microsoft:argument-error``, the position is after the last event.
        """
        begin = self.begin
        what, value, inclusive = position
        if value is None:
            return self.end
        last = {SEQUENCE_NUMBER: self.end - 1, OFFSET: self.last_offset}.get(Symbol(what))
        if last is not None and value > last:
            raise RefusedError(
                ARGUMENT_ERROR,
                f"{what} {value} is after the last event of partition {self.id}, which is {last}",
            )
        bisect = bisect_left if inclusive else bisect_right
        return begin + bisect(self._events, value, key=_ATTRIBUTE[Symbol(what)])

    def get(self, number: int) -> Event:
        """Return the event with a number, which must be stored."""
        return self._events[number - self._events[0].number]
