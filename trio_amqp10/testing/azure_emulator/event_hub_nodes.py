"""The nodes of an event hub: the hub, its partitions, its readers.

The sender chooses the partition of an event, by address or by ``x-opt-partition-key``; events without a key go to
all partitions in turn. A whole batch goes to one partition.

One receiver of a consumer group may own a partition: its link has an *epoch*. Receivers with a lower epoch, or without one, are
detached, and refused while it is attached.

Knows inlets and outlets; knows no links.
"""

from __future__ import annotations

import itertools
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.wire.values import Symbol, Timestamp
from trio_amqp10.broker.nodes.node import Inlet, Node, Outlet, RefusedError
from trio_amqp10.core.errors import Condition

from .batch_unpacking import take_in, unpack
from .constants import CONSUMER_GROUPS, PARTITION_KEY, PARTITIONS
from .partition_log import Event, Partition

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.message import Message
    from trio_amqp10.broker.nodes.clock import Clock

    from .entity_options import HubOptions
    from .event_positions import Position

DEFAULT_GROUP: Final = "$Default"
_MOST: Final = 5
"""The most receivers without an epoch in one consumer group at one partition."""

_LAST_NUMBER: Final = Symbol("last_enqueued_sequence_number")
_LAST_OFFSET: Final = Symbol("last_enqueued_offset")
_LAST_TIME: Final = Symbol("last_enqueued_time_utc")
_LOOKED_AT: Final = Symbol("runtime_info_retrieval_time_utc")


class Hub(Node):
    """An event hub, to which senders send; its ``len`` is the number of its events.

    Args:
        address: the address for links.
        options: the rules of the hub.
        clock: the clock for the times of events.

    Attributes:
        options: as given.
        partitions: the partitions by id.
        created: when the hub was created, in milliseconds since 1970.
    """

    accepts_senders = True

    def __init__(self, address: str, options: HubOptions, clock: Clock) -> None:
        super().__init__(address)
        self.max_message_size: int | None = options.max_message_size
        self.options = options
        self.created: Final = round(clock.wall() * 1000)
        self.partitions: Final = {
            str(number): Partition(str(number), options, clock) for number in range(options.partition_count)
        }
        self._turns = itertools.cycle(self.partitions.values())

    def on_arrivals(self, inlet: Inlet) -> None:
        while (arrival := inlet.take()) is not None:
            take_in(arrival, self._take)

    def _take(self, message: Message) -> None:
        key: Any = message.annotations.get(PARTITION_KEY)
        if not isinstance(key, str):
            key = None
        events = [Event(each, key) for each in unpack(message)]
        partition = next(self._turns) if key is None else self.partition_of(key)
        partition.append(events)

    def partition_of(self, key: str) -> Partition:
        """Return the partition for all events with this key."""
        return self.partitions[str(zlib.crc32(key.encode()) % len(self.partitions))]

    def __len__(self) -> int:
        return sum(map(len, self.partitions.values()))


class PartitionEnd(Node):
    """A node for senders to one partition.

    Args:
        hub: the hub.
        partition: the partition.
    """

    accepts_senders = True

    def __init__(self, hub: Hub, partition: Partition) -> None:
        super().__init__(f"{hub.address}{PARTITIONS}{partition.id}")
        self.max_message_size: int | None = hub.max_message_size
        self._partition = partition

    def on_arrivals(self, inlet: Inlet) -> None:
        while (arrival := inlet.take()) is not None:
            take_in(arrival, self._take)

    def _take(self, message: Message) -> None:
        self._partition.append([Event(each) for each in unpack(message)])


@dataclass(slots=True)
class Cursor:
    """The position of one receiver.

    Attributes:
        at: the number of the next event.
        epoch: the epoch of the receiver, or None.
        metrics: whether each event includes the end of the partition as delivery-annotations.
        passed: the number and size of the last event that was skipped because it is too large for the receiver, or None.
    """

    at: int
    epoch: int | None = None
    metrics: bool = False
    passed: tuple[int, int] | None = None


class Readers(Node):
    """A node for receivers of one consumer group at one partition.

    Each receiver gets all events of the partition.

    Args:
        hub: the hub.
        group: the consumer group.
        partition: the partition.
        clock: the clock for the time of metrics.
    """

    accepts_receivers = True

    def __init__(self, hub: Hub, group: str, partition: Partition, clock: Clock) -> None:
        super().__init__(f"{hub.address}{CONSUMER_GROUPS}{group}{PARTITIONS}{partition.id}")
        self._partition = partition
        self._clock = clock
        self._cursors: dict[Outlet, Cursor] = {}
        partition.on_append.append(self._on_append)

    # -- admission --------------------------------------------------------------------------

    def cursor(self, position: Position, epoch: int | None, *, metrics: bool) -> Cursor:
        """Admit a receiver, and return its first position.

        Raises:
            RefusedError: a receiver with a higher epoch is attached, or one with any epoch if this one has none; there are
                too many receivers; or the position is not valid.
        """
        owner = next((each for each in self._cursors.values() if each.epoch is not None), None)
        if owner is not None and owner.epoch is not None:
            if epoch is None:
                raise RefusedError(
                    Condition.STOLEN,
                    f"a receiver of {self.address!r} has the epoch {owner.epoch}, so a receiver without an epoch is refused",
                )
            if epoch < owner.epoch:
                raise RefusedError(
                    Condition.STOLEN,
                    f"a receiver of {self.address!r} has the epoch {owner.epoch}, which is higher than {epoch}",
                )
        elif epoch is None and len(self._cursors) >= _MOST:
            raise RefusedError(
                Condition.RESOURCE_LIMIT_EXCEEDED,
                f"{self.address!r} has {_MOST} receivers, the most of one consumer group",
            )
        return Cursor(self._partition.find(position), epoch, metrics)

    def place(self, outlet: Outlet, cursor: Cursor) -> None:
        """Set the position of a new outlet, and detach receivers of a lower epoch."""
        if cursor.epoch is not None:
            for other, its in list(self._cursors.items()):
                had = "no epoch" if its.epoch is None else f"the epoch {its.epoch}"
                self.attempt(
                    other,
                    other.close,
                    Condition.STOLEN.value,
                    f"a receiver with the epoch {cursor.epoch} was attached, and this one has {had}",
                )
        self._cursors[outlet] = cursor

    def remove_outlet(self, outlet: Outlet) -> None:
        super().remove_outlet(outlet)
        self._cursors.pop(outlet, None)

    # -- events -----------------------------------------------------------------------------

    def _on_append(self) -> None:
        for outlet in list(self.outlets):
            self.attempt(outlet, self.on_demand, outlet)

    def on_demand(self, outlet: Outlet) -> None:
        cursor = self._cursors.get(outlet)
        if cursor is None:
            return
        partition = self._partition
        cursor.at = max(cursor.at, partition.begin)
        metrics = self._metrics() if cursor.metrics and cursor.at < partition.end else None
        while cursor.at < partition.end and outlet.ready():
            event = partition.get(cursor.at)
            cursor.at += 1
            message = event.render(metrics)
            size = len(message.to_payload())
            if outlet.max_message_size is not None and size > outlet.max_message_size:
                cursor.passed = event.number, size
            else:
                outlet.give(message, None)
        if cursor.passed is not None and cursor.at == partition.end and cursor.passed[0] >= partition.begin:
            outlet.outgrow(cursor.passed[1])
        outlet.rest(partition.end - cursor.at)

    def _metrics(self) -> dict[Symbol, Any]:
        partition = self._partition
        return {
            _LAST_NUMBER: partition.end - 1,
            _LAST_OFFSET: str(partition.last_offset),
            _LAST_TIME: Timestamp(partition.last_enqueued),
            _LOOKED_AT: Timestamp(round(self._clock.wall() * 1000)),
        }

    def statistics(self) -> dict[str, int]:
        return super().statistics() | {"messages": len(self._partition)}


def nodes_of(hub: Hub, clock: Clock, add: Callable[[Node], None]) -> None:
    """Add all nodes of a hub."""
    add(hub)
    for partition in hub.partitions.values():
        add(PartitionEnd(hub, partition))
        for group in (DEFAULT_GROUP, *hub.options.consumer_groups):
            add(Readers(hub, group, partition, clock))
