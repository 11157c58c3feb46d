"""Partition: the events of a hub's partition, in order, numbered and dated.

Events are never taken away: they end when they are too old or too many, whether anybody has read them or not. There
is no timer; whoever looks sweeps first.

Knows events and times; knows no links.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.message import Message
from trio_amqp10.message.sections import HEADER, scan
from trio_amqp10.wire.encode import encode
from trio_amqp10.wire.values import Described, Symbol, Timestamp, ULong

from .batch_unpacking import content
from .constants import ARGUMENT_ERROR, ENQUEUED, OFFSET, PARTITION_KEY, SEQUENCE_NUMBER, SIZE_EXCEEDED

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.container.nodes.clock import Clock

    from .entity_options import HubOptions
    from .event_positions import Position

__all__ = ["Event", "Partition"]

_DELIVERY_ANNOTATIONS: Final = ULong(0x71)
_ANNOTATIONS: Final = ULong(0x72)
_OURS: Final = frozenset({SEQUENCE_NUMBER, OFFSET, ENQUEUED})
"""Annotations that senders have no say in."""
_LARGEST: Final = 1024 * 1024
"""Octets of an event, at most."""
_NO_TIME: Final = -62_135_596_800_000
"""Of a partition that never had an event: the first moment of the year 1."""

_ATTRIBUTE: Final = {
    SEQUENCE_NUMBER: attrgetter("number"),
    OFFSET: attrgetter("offset"),
    ENQUEUED: attrgetter("enqueued"),
}


class Event:
    """An event as it is kept: the octets that came, but for annotations, which are added to.

    Args:
        message: as it came.
        key: of the batch that it came in.

    Attributes:
        size: octets of it.
        number: its sequence number, once it is in a partition.
        offset: octets of all that were in the partition before it.
        enqueued: when it came, in milliseconds since 1970.

    Raises:
        RemoteProtocolError: its octets are no message.
        RefusedError: ``amqp:link:message-size-exceeded``.
    """

    __slots__ = ("_annotations", "_content", "_header", "_tail", "enqueued", "number", "offset", "size")

    def __init__(self, message: Message, key: str | None = None) -> None:
        payload = message.to_payload()
        self.size: int = len(payload)
        if self.size > _LARGEST:
            raise RefusedError(
                SIZE_EXCEEDED, f"an event of {self.size} octets: at most {_LARGEST} are possible"
            )
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
        """It is in a partition now, which numbers and dates it."""
        self.number, self.offset, self.enqueued = number, offset, enqueued
        annotations: dict[Symbol, Any] = {
            **self._annotations,
            SEQUENCE_NUMBER: number,
            OFFSET: str(offset),
            ENQUEUED: Timestamp(enqueued),
        }
        self._tail = encode(Described(_ANNOTATIONS, annotations)) + self._content

    def render(self, metrics: dict[Symbol, Any] | None = None) -> Message:
        """What a receiver gets.

        Args:
            metrics: delivery-annotations to put with it.
        """
        between = b"" if metrics is None else encode(Described(_DELIVERY_ANNOTATIONS, metrics))
        return Message.from_payload(self._header + between + self._tail)


class Partition:
    """One of the parts of a hub; its ``len`` is how many events it holds.

    Args:
        number: its id, as a string.
        options: how long it keeps them, and how many.
        clock: tells when they came.

    Attributes:
        id: as given.
        end: the number that the next event gets.
        last_offset: of the last event that there was, or -1.
        last_enqueued: when that came, in milliseconds since 1970; the year 1 if there was none.
        on_append: called when there are more.
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
        """The number of the first event that it holds; ``end`` if it holds none."""
        self.sweep()
        return self._events[0].number if self._events else self.end

    @property
    def messages(self) -> list[Message]:
        """What it holds, as receivers get it."""
        self.sweep()
        return [event.render() for event in self._events]

    def append(self, events: list[Event]) -> None:
        """Hold more events."""
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
        """Let go of what is too old, or too much."""
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
        """The number of the first event that somebody wants who begins there.

        Raises:
            RefusedError: ``com.microsoft:argument-error``, it is behind the last event.
        """
        begin = self.begin
        what, value, inclusive = position
        if value is None:
            return self.end
        last = {SEQUENCE_NUMBER: self.end - 1, OFFSET: self.last_offset}.get(Symbol(what))
        if last is not None and value > last:
            raise RefusedError(
                ARGUMENT_ERROR, f"{what} {value} is none that partition {self.id} has: the last one is {last}"
            )
        bisect = bisect_left if inclusive else bisect_right
        return begin + bisect(self._events, value, key=_ATTRIBUTE[Symbol(what)])

    def get(self, number: int) -> Event:
        """The event of that number, which is one that it holds."""
        return self._events[number - self._events[0].number]
