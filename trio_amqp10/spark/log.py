"""Log: messages that the peer keeps and numbers, read again from any number on.

So it is with the streams of RabbitMQ 4: a source may carry the filter ``rabbitmq:stream-offset-spec``,
and each message tells its number in the annotation ``x-stream-offset``. Nothing is taken away, so nothing
needs to be kept here: whoever knows two numbers can read what is between them, as often as need be.

Numbers may have gaps, and a log forgets its oldest messages. A gap where reading begins is told from
a loss by asking for the first message that there is.

Knows receivers and rows; of Spark, nothing.
"""

from __future__ import annotations

import logging
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

import trio_amqp10 as amqp
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spec.messaging import Source
from trio_amqp10.wire.values import Described, Symbol, ULong

from .ahead import ahead
from .dial import dialling, in_one
from .pool import borrow
from .rows import RowMaker, Rows

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    import pyarrow as pa

    from .ahead import Offer
    from .options import LogOptions

__all__ = ["DataLossError", "find_ends", "find_starts", "read"]

_log = logging.getLogger("trio_amqp10.spark")

_FILTER: Final = Symbol("rabbitmq:stream-offset-spec")
_OFFSET: Final = "x-stream-offset"
_ROWS: Final = 2000
"""Rows of a batch, at most."""
_PROBED: Final = 1000
"""Messages that are asked for at a time, to find the last one: a peer counts in blocks of about so many."""


class DataLossError(amqp.AmqpError):
    """Messages that a checkpoint means are not in the log any more."""


@asynccontextmanager
async def _receiving(
    connection: amqp.Connection, log: str, where: str | int
) -> AsyncGenerator[amqp.Receiver]:
    """A receiver that begins at a number, or at ``first`` or ``last``; nothing is granted yet.

    Raises:
        LocalProtocolError: the peer does not begin where it is told.
    """
    spec = Described(_FILTER, ULong(where) if isinstance(where, int) else where)
    source = Source(address=log, filter={_FILTER: spec})
    opening = connection.open_receiver(log, source=source, credit=0, guarantee="at-most-once")
    async with opening as receiver:
        granted: Any = receiver.remote.source
        if _FILTER not in (getattr(granted, "filter", None) or {}):
            raise LocalProtocolError(f"{log!r} is no log: the peer does not apply the filter {_FILTER}")
        yield receiver


def _offset(delivery: amqp.Delivery) -> int:
    if not delivery.settled:
        delivery.accept()  # which takes nothing away
    offset = delivery.message.annotations.get(_OFFSET)
    if not isinstance(offset, int):
        raise LocalProtocolError(
            f"a message of a log has no number in its annotation {_OFFSET!r}: {offset!r}"
        )
    return int(offset)


# Where logs begin and end -------------------------------------------------------------------------


async def find_ends(options: LogOptions) -> dict[str, int]:
    """The number after the last message of each log; 0 for an empty one.

    Raises:
        LocalProtocolError: the peer does not begin where it is told.
        GaveUpError: the peer could not be reached, or was lost, for too long.
        AmqpError: it refuses.
    """
    return await _find(options, _end)


async def find_starts(options: LogOptions) -> dict[str, int]:
    """The number of the first message of each log; 0 for an empty one. Raises: as ``find_ends``."""
    return await _find(options, _start)


async def _find(options: LogOptions, find: Any) -> dict[str, int]:
    async def use(connection: amqp.Connection, progress: Callable[[], None]) -> dict[str, int]:
        found: dict[str, int] = {}

        async def look(log: str) -> None:
            found[log] = await find(connection, log, options)
            progress()

        await in_one(*[partial(look, log) for log in options.logs])
        return {log: found[log] for log in options.logs}

    return await dialling(options, use, borrow)


async def _end(connection: amqp.Connection, log: str, options: LogOptions) -> int:
    end = 0
    async with _receiving(connection, log, "last") as receiver:
        while True:
            deliveries = await _drained(receiver, log, _PROBED, options)
            if deliveries:
                end = max(end, 1 + max(map(_offset, deliveries)))
            if len(deliveries) < _PROBED:
                return end


async def _start(connection: amqp.Connection, log: str, options: LogOptions) -> int:
    async with _receiving(connection, log, "first") as receiver:
        deliveries = await _drained(receiver, log, 1, options)
        return _offset(deliveries[0]) if deliveries else 0


async def _drained(receiver: amqp.Receiver, log: str, most: int, options: LogOptions) -> list[amqp.Delivery]:
    receiver.grant(most)
    with trio.move_on_after(options.read_timeout):
        return await receiver.drain()
    raise TimeoutError(
        f"{log!r} did not answer a drain within {options.read_timeout:g} s (readTimeout), so nobody knows "
        "where it ends"
    )


# What is between two numbers ----------------------------------------------------------------------


def read(options: LogOptions, log: str, start: int, stop: int) -> Iterator[pa.RecordBatch]:
    """Batches of the messages that are numbered ``start`` to ``stop - 1``.

    Raises:
        DataLossError: some are not there any more, and that is to be an error.
        TimeoutError: nothing came for ``read_timeout`` seconds.
        GaveUpError, AmqpError: the peer cannot be reached, was lost, or refuses.
    """
    return ahead(partial(_read, options, log, start, stop))


async def _read(options: LogOptions, log: str, start: int, stop: int, offer: Offer) -> None:
    at = start  # what is wanted next

    async def use(connection: amqp.Connection, progress: Callable[[], None]) -> None:
        nonlocal at
        maker = RowMaker(options, address=log)
        async with _receiving(connection, log, at) as receiver:
            while at < stop:
                _give_credit(receiver, options.credit, stop - at)
                deliveries = await _more(receiver, log, options)
                if deliveries is None:
                    await _check_loss(connection, log, at, stop, options, patience_is_over=True)
                    return
                found = [(number, each) for each in deliveries if (number := _offset(each)) >= at]
                if not found:
                    continue  # of the same block as what is wanted
                if found[0][0] > at:
                    await _check_loss(connection, log, at, min(stop, found[0][0]), options)
                wanted = [(number, each) for number, each in found if number < stop]
                if wanted:
                    rows = Rows()
                    maker.gather(rows, [each for _, each in wanted], time.time_ns() // 1000)
                    numbers = [number for number, _ in wanted]
                    if not await offer(maker.batch(rows, numbers, peer=connection.remote.container_id)):
                        at = stop
                        return
                at = found[-1][0] + 1
                progress()

    await dialling(options, use, borrow)


def _give_credit(receiver: amqp.Receiver, most: int, left: int) -> None:
    """For no more than is wanted, and asked for by halves."""
    here = receiver.credit + receiver.buffered
    wanted = min(most, left)
    if here <= wanted // 2:
        receiver.grant(wanted - here)


async def _more(receiver: amqp.Receiver, log: str, options: LogOptions) -> list[amqp.Delivery] | None:
    """What comes next; None where nothing does."""
    with trio.move_on_after(options.read_timeout):
        return await receiver.receive_many(_ROWS)
    _log.debug("nothing came from %r for %g s", log, options.read_timeout)
    return None


async def _check_loss(
    connection: amqp.Connection,
    log: str,
    start: int,
    stop: int,
    options: LogOptions,
    *,
    patience_is_over: bool = False,
) -> None:
    """Messages ``start`` to ``stop - 1`` did not come: were there any?"""
    first = await _start(connection, log, options)
    if first <= start and first:
        if patience_is_over:
            raise TimeoutError(
                f"messages {start} to {stop - 1} of {log!r} did not come within {options.read_timeout:g} s (readTimeout)"
            )
        return  # a gap, and nothing else
    if not first and not patience_is_over:
        return
    loss = (
        f"messages {start} to {stop - 1} of {log!r} are not all there any more: it begins with {first} now "
        "(option 'failOnDataLoss')"
    )
    if options.fail_on_data_loss:
        raise DataLossError(loss)
    _log.warning(loss)
