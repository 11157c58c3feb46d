"""Streams of RabbitMQ and of Event Hubs: how each is asked for an offset.

=====================  ======================================  =====================================================
of                     ``rabbitmq``                            ``event-hubs``
=====================  ======================================  =====================================================
a log                  an address: a stream of RabbitMQ 4      a partition, ``<hub>/Partitions/<id>``; those of a hub
                                                               are found by themselves
where reading begins   ``rabbitmq:stream-offset-spec``         ``apache.org:selector-filter:string``
a message's number     ``x-stream-offset``                     ``x-opt-sequence-number``
by a time              a receiver looks, and drains            the filter again, by ``x-opt-enqueued-time``
the first and the      a receiver looks, and drains            ``READ`` of ``com.microsoft:partition`` at
last                                                           ``$management``
=====================  ======================================  =====================================================

An event hub is never told an epoch: with one, every new receiver makes the one before it go.

Knows what is said; when, and what becomes of it, is told in ``offset_reader``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import trio

import trio_amqp10 as amqp
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.message import Message
from trio_amqp10.spec.messaging import Source
from trio_amqp10.wire.values import Described, Symbol, Timestamp, ULong

from .connections import in_one, token_source
from .super_streams import find_streams

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager

    from .options import LogOptions

__all__ = ["Dialect", "LogError", "dialect_of", "hub_of", "number_of"]

_STREAM_OFFSET: Final = Symbol("rabbitmq:stream-offset-spec")
_PROBED: Final = 1000
"""Messages that are asked for at a time, to find the last one: a peer counts in blocks of about so many."""

_SELECTOR: Final = Symbol("apache.org:selector-filter:string")
_NUMBER: Final = "x-opt-sequence-number"
_ENQUEUED: Final = "x-opt-enqueued-time"
_PARTITIONS: Final = "/Partitions/"

T = TypeVar("T")


class LogError(amqp.AmqpError):
    """The peer does not tell of a log where it begins and ends."""


class Dialect(Protocol):
    """One way to speak of logs.

    Attributes:
        annotation: where a message tells its number.
    """

    annotation: str

    def receiving(
        self, connection: amqp.Connection, options: LogOptions, log: str, start: int
    ) -> AbstractAsyncContextManager[amqp.Receiver]:
        """A receiver that begins at a number, or at the first after it; nothing is granted yet."""
        ...

    def check(self, receiver: amqp.Receiver, log: str) -> None:
        """Raise ``LocalProtocolError`` if the peer does not begin where it is told."""
        ...

    async def ends(self, connection: amqp.Connection, options: LogOptions) -> dict[str, int]:
        """All logs, each with the number after its last message; 0 if it never had one."""
        ...

    async def starts(self, connection: amqp.Connection, options: LogOptions) -> dict[str, int]:
        """All logs, each with the number that it begins with."""
        ...

    async def first(self, connection: amqp.Connection, options: LogOptions, log: str) -> int | None:
        """The number that a log begins with; None if it holds nothing, and nobody can tell."""
        ...

    async def at_moments(
        self, connection: amqp.Connection, options: LogOptions, moments: Mapping[str, int]
    ) -> dict[str, int]:
        """For each log the number of the first message that came then or later; the number behind the last if there is none.

        Args:
            connection: to the peer.
            options: of the reader.
            moments: by log, in milliseconds since 1970.
        """
        ...


def dialect_of(options: LogOptions) -> Dialect:
    """The one that the options name."""
    return _DIALECTS[options.dialect]


def hub_of(log: str) -> str | None:
    """The hub that a log is a partition of; None if it is no partition."""
    hub, found, _ = log.rpartition(_PARTITIONS)
    return hub if found else None


def number_of(dialect: Dialect, delivery: amqp.Delivery) -> int:
    """A message's number.

    Raises:
        LocalProtocolError: it has none.
    """
    number = delivery.message.annotations.get(dialect.annotation)
    if not isinstance(number, int):
        raise LocalProtocolError(
            f"this is no log: a message has no number in its annotation {dialect.annotation!r}: {number!r}"
        )
    if not delivery.settled:
        delivery.accept()  # which takes nothing away
    return int(number)


# Streams of RabbitMQ ------------------------------------------------------------------------------


class _RabbitMQ:
    """See ``Dialect``."""

    annotation = "x-stream-offset"

    def receiving(
        self, connection: amqp.Connection, options: LogOptions, log: str, start: int | str | Timestamp
    ) -> AbstractAsyncContextManager[amqp.Receiver]:
        """It may also begin at ``first``, at ``last`` or at a time.

        To look there, messages come unsettled: RabbitMQ lets a queue have the filter too and ignores it, and what a queue
        had sent settled would be lost. Who reads has looked before. Each link has a session of its own: where RabbitMQ is
        detached while messages are on their way, it goes on to count them, and what comes next on that session is out of order.
        """
        del options
        by_number = isinstance(start, int) and not isinstance(start, Timestamp)
        where = Described(_STREAM_OFFSET, ULong(int(start)) if by_number else start)
        source = Source(address=log, filter={_STREAM_OFFSET: where})
        return connection.open_receiver(
            log,
            source=source,
            credit=0,
            filters="optional",  # check looks
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
        """RabbitMQ has a time for each block of messages, and reads times as whole seconds: so somewhat more may come."""

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
    """What there is to find of each log, all at once, in the order given."""
    found: dict[str, T] = {}

    async def look(log: str) -> None:
        found[log] = await find(log)

    wanted = list(logs)
    await in_one(*[partial(look, log) for log in wanted])
    return {log: found[log] for log in wanted}


async def _drained(receiver: amqp.Receiver, log: str, most: int, options: LogOptions) -> list[amqp.Delivery]:
    receiver.grant(most)
    with trio.move_on_after(options.read_timeout):
        return await receiver.drain()
    raise TimeoutError(
        f"{log!r} did not answer a drain within {options.read_timeout:g} s (readTimeout), so nobody knows "
        "where it ends"
    )


# Event hubs ---------------------------------------------------------------------------------------


class _Told(NamedTuple):
    """Of a partition: the number that it begins with, that behind its last, and when that came (milliseconds since 1970)."""

    start: int
    end: int
    last: int


class _EventHubs:
    """See ``Dialect``."""

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
        where = Described(_SELECTOR, f"amqp.annotation.{condition}")
        source = Source(address=address, filter={_SELECTOR: where})
        return connection.open_receiver(
            address, source=source, credit=0, guarantee="at-most-once", filters="optional"
        )

    def check(self, receiver: amqp.Receiver, log: str) -> None:
        """Nothing: each event tells its number, and those before it are passed over."""

    async def ends(self, connection: amqp.Connection, options: LogOptions) -> dict[str, int]:
        return {log: told.end for log, told in (await self._told(connection, options)).items()}

    async def starts(self, connection: amqp.Connection, options: LogOptions) -> dict[str, int]:
        return {log: told.start for log, told in (await self._told(connection, options)).items()}

    async def first(self, connection: amqp.Connection, options: LogOptions, log: str) -> int | None:
        return (await self._told(connection, options, log))[log].start

    async def at_moments(
        self, connection: amqp.Connection, options: LogOptions, moments: Mapping[str, int]
    ) -> dict[str, int]:
        """By the time at which the hub took each event."""

        async def look(log: str) -> int:
            told = (await self._told(connection, options, log))[log]
            moment = moments[log]
            if told.start == told.end or told.last < moment:
                return told.end  # an event that comes later is not waited for
            async with self._receiving(connection, options, log, f"{_ENQUEUED} > '{moment - 1}'") as receiver:
                receiver.grant(1)
                with trio.move_on_after(options.read_timeout):
                    return number_of(self, await receiver.receive())
            raise TimeoutError(
                f"no event of {log!r} came within {options.read_timeout:g} s (readTimeout), so nobody knows which is the "
                "first of that time"
            )

        return await _each(moments, look)

    async def _told(
        self, connection: amqp.Connection, options: LogOptions, log: str | None = None
    ) -> dict[str, _Told]:
        """Where partitions begin and end: one, or all of the hubs."""
        found: dict[str, _Told] = {}
        async with connection.open_requester("$management", direct=True) as requester:

            async def ask(kind: str, **which: str) -> Any:
                said = {"operation": "READ", "type": f"com.microsoft:{kind}", **which}
                source = token_source(options)
                if source is not None:
                    said["security_token"] = (await source[1](source[0])).value
                request = Message(None, application_properties=said)
                try:
                    reply = await requester.request(request, timeout=options.read_timeout)
                except trio.TooSlowError:
                    raise TimeoutError(
                        f"no answer within {options.read_timeout:g} s (readTimeout), where {which} ends"
                    ) from None
                return _answer(reply, which)

            async def look(hub: str, partition: str) -> None:
                told = await ask("partition", name=hub, partition=partition)
                end = told["last_enqueued_sequence_number"] + 1
                start = end if told["is_partition_empty"] else told["begin_sequence_number"]
                last = int(told["last_enqueued_time_utc"])
                found[f"{hub}{_PARTITIONS}{partition}"] = _Told(int(start), int(end), last)

            if log is not None:
                hub, _, partition = log.rpartition(_PARTITIONS)
                partitions: Iterable[tuple[str, str]] = [(hub, partition)]
            else:
                partitions = [
                    (hub, str(each))
                    for hub in options.addressed
                    for each in (await ask("eventhub", name=hub))["partition_ids"]
                ]
            await in_one(*[partial(look, hub, partition) for hub, partition in partitions])
        return {f"{hub}{_PARTITIONS}{each}": found[f"{hub}{_PARTITIONS}{each}"] for hub, each in partitions}


def _answer(reply: Message, which: dict[str, str]) -> Any:
    said: Any = reply.application_properties
    status = said.get("status-code")
    if not isinstance(status, int) or not 200 <= status < 300:
        words = f"{which} could not be read: {status}, {said.get('error-condition')}, {said.get('status-description')}"
        if isinstance(status, int) and status >= 500 and status != 501:
            raise OSError(words)  # which may pass
        raise LogError(words)
    return reply.body


_DIALECTS: Final[dict[str, Dialect]] = {"rabbitmq": _RabbitMQ(), "event-hubs": _EventHubs()}
