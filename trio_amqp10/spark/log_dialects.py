"""The offsets of logs: of RabbitMQ's streams, and of event hubs.

=====================  ======================================  =====================================================
aspect                 ``rabbitmq``                            ``event-hubs``
=====================  ======================================  =====================================================
a log                  an address: a stream of RabbitMQ 4      a partition, ``<hub>/Partitions/<id>``; those of a hub
                                                               are found automatically
where reading begins   ``rabbitmq:stream-offset-spec``         ``apache.org:selector-filter:string``
a message's number     ``x-stream-offset``                     ``x-opt-sequence-number``
position of a time     a receiver with that filter drains      the same filter, by ``x-opt-enqueued-time``
the first and the      a receiver with that filter drains      ``READ`` of ``com.microsoft:partition`` at
last                                                           ``$management``
=====================  ======================================  =====================================================

No epoch is sent to an event hub: with an epoch, each new receiver would disconnect the one before it.

Knows addresses, filters and requests; ``offset_reader`` uses them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.amqp10.wire.values import Described, Symbol, Timestamp, ULong
from trio_amqp10.core.errors import LocalProtocolError

from .connections import run_together
from .source_selection import selector_filter
from .super_streams import find_streams
from .token_sources import token_source

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager

    from .options import LogOptions

_STREAM_OFFSET: Final = Symbol("rabbitmq:stream-offset-spec")
_PROBED: Final = 1000
"""The credit for finding the last message.

The peer begins at a block of messages, and blocks have about this size.
"""

_NUMBER: Final = "x-opt-sequence-number"
_ENQUEUED: Final = "x-opt-enqueued-time"
_PARTITIONS: Final = "/Partitions/"

T = TypeVar("T")


class LogError(amqp.AmqpError):
    """The peer does not report where a log begins and ends."""


class Dialect(Protocol):
    """The offsets of one kind of log.

    Attributes:
        annotation: the message annotation that has a message's number.
    """

    annotation: str

    def receiving(
        self, connection: amqp.Connection, options: LogOptions, log: str, start: int
    ) -> AbstractAsyncContextManager[amqp.Receiver]:
        """Open a receiver, without credit, that begins at a number or at the next one."""
        ...

    def check(self, receiver: amqp.Receiver, log: str) -> None:
        """Raise ``LocalProtocolError`` if the peer ignores where to begin."""
        ...

    async def ends(self, connection: amqp.Connection, options: LogOptions) -> dict[str, int]:
        """Return all logs, each with the number after its last message; 0 if it had none."""
        ...

    async def starts(self, connection: amqp.Connection, options: LogOptions) -> dict[str, int]:
        """Return all logs, each with the number of its first message."""
        ...

    async def first(self, connection: amqp.Connection, options: LogOptions, log: str) -> int | None:
        """Return the number of a log's first message; None if it is unknown."""
        ...

    async def at_moments(
        self, connection: amqp.Connection, options: LogOptions, moments: Mapping[str, int]
    ) -> dict[str, int]:
        """Return, for each log, the number of the first message that came then or later.

        If there is no such message, it is the number after the last message.

        Args:
            connection: to the peer.
            options: of the reader.
            moments: by log, in milliseconds since 1970.
        """
        ...


def dialect_of(options: LogOptions) -> Dialect:
    """Return the dialect that the options name."""
    return _DIALECTS[options.dialect]


def hub_of(log: str) -> str | None:
    """Return the event hub of a log; None if the log is no partition."""
    hub, found, _ = log.rpartition(_PARTITIONS)
    return hub if found else None


def number_of(dialect: Dialect, delivery: amqp.Delivery) -> int:
    """Return a message's number.

    Raises:
        LocalProtocolError: the message has no number.
    """
    number = delivery.message.annotations.get(dialect.annotation)
    if not isinstance(number, int):
        raise LocalProtocolError(
            f"this is no log: a message has no number in its annotation {dialect.annotation!r}: {number!r}"
        )
    if not delivery.settled:
        delivery.accept()  # a log keeps accepted messages
    return int(number)


# Streams of RabbitMQ ------------------------------------------------------------------------------


class _RabbitMQ:
    """The streams of RabbitMQ 4."""

    annotation = "x-stream-offset"

    def receiving(
        self, connection: amqp.Connection, options: LogOptions, log: str, start: int | str | Timestamp
    ) -> AbstractAsyncContextManager[amqp.Receiver]:
        """Open a receiver that begins at a number, ``first``, ``last`` or a time.

        Unless it begins at a number, messages come unsettled: RabbitMQ accepts the filter for a queue and ignores it, and messages that a
        queue sends settled would be lost. A read by number comes after such a search. Each link has its own session: if a link
        is detached while messages are on their way, RabbitMQ goes on to count them, and the next transfer of the session is out of order.
        """
        del options
        by_number = isinstance(start, int) and not isinstance(start, Timestamp)
        where = Described(_STREAM_OFFSET, ULong(int(start)) if by_number else start)
        source = Source(address=log, filter={_STREAM_OFFSET: where})
        return connection.open_receiver(
            log,
            source=source,
            credit=0,
            filters="optional",  # ``check`` compares them
            guarantee="at-most-once" if by_number else "at-least-once",
            own_session=True,
        )

    def check(self, receiver: amqp.Receiver, log: str) -> None:
        granted: Any = receiver.remote.source
        if _STREAM_OFFSET not in (getattr(granted, "filter", None) or {}):
            raise LocalProtocolError(
                f"{log!r} is no log: the peer does not apply the filter {_STREAM_OFFSET}"
            )

    async def ends(self, connection: amqp.Connection, options: LogOptions) -> dict[str, int]:
        logs = await find_streams(connection, options)
        return await _each(logs, lambda log: self._end(connection, options, log))

    async def starts(self, connection: amqp.Connection, options: LogOptions) -> dict[str, int]:
        logs = await find_streams(connection, options)
        found = await _each(logs, lambda log: self.first(connection, options, log))
        return {log: start or 0 for log, start in found.items()}

    async def at_moments(
        self, connection: amqp.Connection, options: LogOptions, moments: Mapping[str, int]
    ) -> dict[str, int]:
        """Return the numbers that belong to times.

        RabbitMQ has a time for each block of messages, in whole seconds, so some earlier messages may be among them.
        """

        async def look(log: str) -> int:
            found = await self._first_from(connection, options, log, Timestamp(moments[log]))
            return await self._end(connection, options, log) if found is None else found

        return await _each(moments, look)

    async def _end(self, connection: amqp.Connection, options: LogOptions, log: str) -> int:
        end = 0
        async with self.receiving(connection, options, log, "last") as receiver:
            self.check(receiver, log)
            while True:
                deliveries = await _drained(receiver, log, _PROBED, options)
                if deliveries:
                    end = max(end, 1 + max(number_of(self, each) for each in deliveries))
                if len(deliveries) < _PROBED:
                    return end

    async def first(self, connection: amqp.Connection, options: LogOptions, log: str) -> int | None:
        return await self._first_from(connection, options, log, "first")

    async def _first_from(
        self, connection: amqp.Connection, options: LogOptions, log: str, where: str | Timestamp
    ) -> int | None:
        async with self.receiving(connection, options, log, where) as receiver:
            self.check(receiver, log)
            deliveries = await _drained(receiver, log, 1, options)
            return number_of(self, deliveries[0]) if deliveries else None


async def _each(logs: Iterable[str], find: Callable[[str], Awaitable[T]]) -> dict[str, T]:
    """Call a function for all logs concurrently; return results in the order given."""
    found: dict[str, T] = {}

    async def look(log: str) -> None:
        found[log] = await find(log)

    wanted = list(logs)
    await run_together(*[partial(look, log) for log in wanted])
    return {log: found[log] for log in wanted}


async def _drained(receiver: amqp.Receiver, log: str, most: int, options: LogOptions) -> list[amqp.Delivery]:
    receiver.grant(most)
    with trio.move_on_after(options.read_timeout):
        return await receiver.drain()
    raise TimeoutError(
        f"{log!r} did not answer a drain within {options.read_timeout:g} s (readTimeout), so it is unknown "
        "where it ends"
    )


# Event hubs ---------------------------------------------------------------------------------------


class _Bounds(NamedTuple):
    """The bounds of a partition.

    Attributes:
        start: the number of its first event.
        end: the number after its last event.
        last: when the last event came, in milliseconds since 1970.
    """

    start: int
    end: int
    last: int


class _EventHubs:
    """The partitions of event hubs."""

    annotation = _NUMBER

    def receiving(
        self, connection: amqp.Connection, options: LogOptions, log: str, start: int
    ) -> AbstractAsyncContextManager[amqp.Receiver]:
        return self._receiving(connection, options, log, f"{_NUMBER} > '{start - 1}'")

    def _receiving(
        self, connection: amqp.Connection, options: LogOptions, log: str, condition: str
    ) -> AbstractAsyncContextManager[amqp.Receiver]:
        hub, _, partition = log.rpartition(_PARTITIONS)
        address = f"{hub}/ConsumerGroups/{options.consumer_group or '$Default'}{_PARTITIONS}{partition}"
        source = Source(address=address, filter=selector_filter(f"amqp.annotation.{condition}"))
        return connection.open_receiver(
            address, source=source, credit=0, guarantee="at-most-once", filters="optional"
        )

    def check(self, receiver: amqp.Receiver, log: str) -> None:
        """Accept all: each event has its number, and earlier ones are skipped."""

    async def ends(self, connection: amqp.Connection, options: LogOptions) -> dict[str, int]:
        return {log: bounds.end for log, bounds in (await self._bounds(connection, options)).items()}

    async def starts(self, connection: amqp.Connection, options: LogOptions) -> dict[str, int]:
        return {log: bounds.start for log, bounds in (await self._bounds(connection, options)).items()}

    async def first(self, connection: amqp.Connection, options: LogOptions, log: str) -> int | None:
        return (await self._bounds(connection, options, log))[log].start

    async def at_moments(
        self, connection: amqp.Connection, options: LogOptions, moments: Mapping[str, int]
    ) -> dict[str, int]:
        """Return the numbers that belong to times, by the time when the hub took an event."""

        async def look(log: str) -> int:
            bounds = (await self._bounds(connection, options, log))[log]
            moment = moments[log]
            if bounds.start == bounds.end or bounds.last < moment:
                return bounds.end  # do not wait for a later event
            async with self._receiving(connection, options, log, f"{_ENQUEUED} > '{moment - 1}'") as receiver:
                receiver.grant(1)
                with trio.move_on_after(options.read_timeout):
                    return number_of(self, await receiver.receive())
            raise TimeoutError(
                f"no event of {log!r} came within {options.read_timeout:g} s (readTimeout), so the first event of that "
                "time is unknown"
            )

        return await _each(moments, look)

    async def _bounds(
        self, connection: amqp.Connection, options: LogOptions, log: str | None = None
    ) -> dict[str, _Bounds]:
        """Return the bounds of one partition, or of all partitions of the hubs."""
        found: dict[str, _Bounds] = {}
        async with connection.open_requester("$management", direct=True) as requester:

            async def ask(kind: str, **which: str) -> Any:
                properties = {"operation": "READ", "type": f"com.microsoft:{kind}", **which}
                source = token_source(options)
                if source is not None:
                    properties["security_token"] = (await source[1](source[0])).value
                request = Message(None, application_properties=properties)
                try:
                    reply = await requester.request(request, timeout=options.read_timeout)
                except trio.TooSlowError:
                    raise TimeoutError(
                        f"the peer did not report within {options.read_timeout:g} s (readTimeout) where {which} ends"
                    ) from None
                return _answer(reply, which)

            async def look(hub: str, partition: str) -> None:
                partition_info = await ask("partition", name=hub, partition=partition)
                end = partition_info["last_enqueued_sequence_number"] + 1
                start = (
                    end if partition_info["is_partition_empty"] else partition_info["begin_sequence_number"]
                )
                last = int(partition_info["last_enqueued_time_utc"])
                found[f"{hub}{_PARTITIONS}{partition}"] = _Bounds(int(start), int(end), last)

            if log is not None:
                hub, _, partition = log.rpartition(_PARTITIONS)
                partitions: Iterable[tuple[str, str]] = [(hub, partition)]
            else:
                partitions = [
                    (hub, str(each))
                    for hub in options.addressed
                    for each in (await ask("eventhub", name=hub))["partition_ids"]
                ]
            await run_together(*[partial(look, hub, partition) for hub, partition in partitions])
        return {f"{hub}{_PARTITIONS}{each}": found[f"{hub}{_PARTITIONS}{each}"] for hub, each in partitions}


def _answer(reply: Message, which: dict[str, str]) -> Any:
    properties: Any = reply.application_properties
    status = properties.get("status-code")
    if not isinstance(status, int) or not 200 <= status < 300:
        words = f"{which} could not be read: {status}, {properties.get('error-condition')}, {properties.get('status-description')}"
        if isinstance(status, int) and status >= 500 and status != 501:
            raise OSError(words)  # a failure of the server, which is retried
        raise LogError(words)
    return reply.body


_DIALECTS: Final[dict[str, Dialect]] = {"rabbitmq": _RabbitMQ(), "event-hubs": _EventHubs()}
