"""Streams of RabbitMQ and of Event Hubs: how each is asked for an offset.

=====================  ======================================  =====================================================
of                     ``rabbitmq``                            ``event-hubs``
=====================  ======================================  =====================================================
a log                  an address: a stream of RabbitMQ 4      a partition, ``<hub>/Partitions/<id>``; those of a hub
                                                               are found by themselves
where reading begins   ``rabbitmq:stream-offset-spec``         ``apache.org:selector-filter:string``
a message's number     ``x-stream-offset``                     ``x-opt-sequence-number``
the first and the      a receiver looks, and drains            ``READ`` of ``com.microsoft:partition`` at
last                                                           ``$management``
=====================  ======================================  =====================================================

An event hub is never told an epoch: with one, every new receiver makes the one before it go.

Knows what is said; when, and what becomes of it, is told in ``offset_reader``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

import trio_amqp10 as amqp
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.message import Message
from trio_amqp10.spec.messaging import Source
from trio_amqp10.wire.values import Described, Symbol, ULong

from .connections import in_one, token_source

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractAsyncContextManager

    from .options import LogOptions

__all__ = ["Dialect", "LogError", "dialect_of", "hub_of", "number_of"]

_STREAM_OFFSET: Final = Symbol("rabbitmq:stream-offset-spec")
_PROBED: Final = 1000
"""Messages that are asked for at a time, to find the last one: a peer counts in blocks of about so many."""

_SELECTOR: Final = Symbol("apache.org:selector-filter:string")
_NUMBER: Final = "x-opt-sequence-number"
_PARTITIONS: Final = "/Partitions/"


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
        self, connection: amqp.Connection, options: LogOptions, log: str, start: int | str
    ) -> AbstractAsyncContextManager[amqp.Receiver]:
        """It may also begin at ``first`` or ``last``.

        To look there, messages come unsettled: RabbitMQ lets a queue have the filter too and ignores it, and what a queue
        had sent settled would be lost. Who reads has looked before. Each link has a session of its own: where RabbitMQ is
        detached while messages are on their way, it goes on to count them, and what comes next on that session is out of order.
        """
        del options
        where = Described(_STREAM_OFFSET, ULong(start) if isinstance(start, int) else start)
        source = Source(address=log, filter={_STREAM_OFFSET: where})
        return connection.open_receiver(
            log,
            source=source,
            credit=0,
            filters="optional",  # check looks
            guarantee="at-most-once" if isinstance(start, int) else "at-least-once",
            own_session=True,
        )

    def check(self, receiver: amqp.Receiver, log: str) -> None:
        granted: Any = receiver.remote.source
        if _STREAM_OFFSET not in (getattr(granted, "filter", None) or {}):
            raise LocalProtocolError(
                f"{log!r} is no log: the peer does not apply the filter {_STREAM_OFFSET}"
            )

    async def ends(self, connection: amqp.Connection, options: LogOptions) -> dict[str, int]:
        found: dict[str, int] = {}

        async def look(log: str) -> None:
            found[log] = await self._end(connection, options, log)

        await in_one(*[partial(look, log) for log in options.addressed])
        return {log: found[log] for log in options.addressed}

    async def starts(self, connection: amqp.Connection, options: LogOptions) -> dict[str, int]:
        found: dict[str, int] = {}

        async def look(log: str) -> None:
            found[log] = await self.first(connection, options, log) or 0

        await in_one(*[partial(look, log) for log in options.addressed])
        return {log: found[log] for log in options.addressed}

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
        async with self.receiving(connection, options, log, "first") as receiver:
            self.check(receiver, log)
            deliveries = await _drained(receiver, log, 1, options)
            return number_of(self, deliveries[0]) if deliveries else None


async def _drained(receiver: amqp.Receiver, log: str, most: int, options: LogOptions) -> list[amqp.Delivery]:
    receiver.grant(most)
    with trio.move_on_after(options.read_timeout):
        return await receiver.drain()
    raise TimeoutError(
        f"{log!r} did not answer a drain within {options.read_timeout:g} s (readTimeout), so nobody knows "
        "where it ends"
    )


# Event hubs ---------------------------------------------------------------------------------------


class _EventHubs:
    """See ``Dialect``."""

    annotation = _NUMBER

    def receiving(
        self, connection: amqp.Connection, options: LogOptions, log: str, start: int
    ) -> AbstractAsyncContextManager[amqp.Receiver]:
        hub, _, partition = log.rpartition(_PARTITIONS)
        address = f"{hub}/ConsumerGroups/{options.consumer_group or '$Default'}{_PARTITIONS}{partition}"
        where = Described(_SELECTOR, f"amqp.annotation.{_NUMBER} > '{start - 1}'")
        source = Source(address=address, filter={_SELECTOR: where})
        return connection.open_receiver(
            address, source=source, credit=0, guarantee="at-most-once", filters="optional"
        )

    def check(self, receiver: amqp.Receiver, log: str) -> None:
        """Nothing: each event tells its number, and those before it are passed over."""

    async def ends(self, connection: amqp.Connection, options: LogOptions) -> dict[str, int]:
        return {log: end for log, (_, end) in (await self._told(connection, options)).items()}

    async def starts(self, connection: amqp.Connection, options: LogOptions) -> dict[str, int]:
        return {log: start for log, (start, _) in (await self._told(connection, options)).items()}

    async def first(self, connection: amqp.Connection, options: LogOptions, log: str) -> int | None:
        return (await self._told(connection, options, log))[log][0]

    async def _told(
        self, connection: amqp.Connection, options: LogOptions, log: str | None = None
    ) -> dict[str, tuple[int, int]]:
        """Where partitions begin and end: one, or all of the hubs."""
        found: dict[str, tuple[int, int]] = {}
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
                found[f"{hub}{_PARTITIONS}{partition}"] = int(start), int(end)

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
