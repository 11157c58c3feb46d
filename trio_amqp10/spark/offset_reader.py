"""Reads messages of a log, which the peer keeps and numbers, from any number on.

The streams of RabbitMQ 4 and the partitions of event hubs are logs (``log_dialects``). Reading removes no message, so
no spool is needed: the messages between two numbers can be read any number of times.

Numbers may have gaps, and a log deletes its oldest messages. The number of the first message that still exists
decides whether missing numbers are a gap or a loss.

Knows receivers and rows, not Spark.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from .connection_pool import borrow
from .connections import with_reconnects
from .log_dialects import dialect_of, number_of
from .log_offsets import DataLossError
from .prefetch import prefetch
from .rows import RowMaker, Rows

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    import pyarrow as pa

    import trio_amqp10 as amqp

    from .options import LogOptions
    from .prefetch import Offer

__all__ = ["DataLossError", "find_at_moments", "find_ends", "find_starts", "read"]

_log = logging.getLogger("trio_amqp10.spark")

_ROWS: Final = 2000
"""The most rows of a batch."""


# The bounds of logs -------------------------------------------------------------------------------


async def find_ends(options: LogOptions) -> dict[str, int]:
    """Return the number after the last message of each log; 0 for an empty new log.

    Raises:
        LocalProtocolError: the peer ignores where to begin.
        GaveUpError: the peer could not be reached, or was lost, for too long.
        AmqpError: the peer refuses.
    """
    return await _find(options, dialect_of(options).ends)


async def find_starts(options: LogOptions) -> dict[str, int]:
    """Return the number of the first message of each log.

    Raises: as ``find_ends``.
    """
    return await _find(options, dialect_of(options).starts)


async def find_at_moments(options: LogOptions, moments: Mapping[str, int]) -> dict[str, int]:
    """Return, for each log, the number of the first message that came then or later.

    If there is no such message, it is the number after the last message.

    Args:
        options: of a reader.
        moments: by log, in milliseconds since 1970.

    Raises: as ``find_ends``.
    """
    at_moments = dialect_of(options).at_moments
    return await _find(options, lambda connection, options: at_moments(connection, options, moments))


async def _find(
    options: LogOptions, find: Callable[[amqp.Connection, LogOptions], Awaitable[dict[str, int]]]
) -> dict[str, int]:
    async def use(connection: amqp.Connection, progress: Callable[[], None]) -> dict[str, int]:
        del progress
        return await find(connection, options)

    return await with_reconnects(options, use, borrow)


# The messages between two numbers -----------------------------------------------------------------


def read(options: LogOptions, log: str, start: int, stop: int) -> Iterator[pa.RecordBatch]:
    """Return batches of the messages with the numbers ``start`` to ``stop - 1``.

    Raises:
        DataLossError: some messages are not there any more, and ``failOnDataLoss`` is set.
        TimeoutError: no message came for ``read_timeout`` seconds.
        GaveUpError, AmqpError: the peer cannot be reached, was lost, or refuses.
    """
    return prefetch(partial(_read, options, log, start, stop))


async def _read(options: LogOptions, log: str, start: int, stop: int, offer: Offer) -> None:
    dialect = dialect_of(options)
    at = start  # the number of the next message to read

    async def use(connection: amqp.Connection, progress: Callable[[], None]) -> None:
        nonlocal at
        maker = RowMaker(options, address=log)
        async with dialect.receiving(connection, options, log, at) as receiver:
            dialect.check(receiver, log)
            while at < stop:
                _give_credit(receiver, options.credit, stop - at)
                deliveries = await _more(receiver, log, options)
                if deliveries is None:
                    await _check_loss(connection, log, at, stop, options, patience_is_over=True)
                    return
                found = [(number, each) for each in deliveries if (number := number_of(dialect, each)) >= at]
                if not found:
                    continue  # earlier messages of the block where reading begins
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

    await with_reconnects(options, use, borrow)


def _give_credit(receiver: amqp.Receiver, most: int, left: int) -> None:
    """Grant credit for the wanted messages, when half of the last grant is used up."""
    here = receiver.credit + receiver.buffered
    wanted = min(most, left)
    if here <= wanted // 2:
        receiver.grant(wanted - here)


async def _more(receiver: amqp.Receiver, log: str, options: LogOptions) -> list[amqp.Delivery] | None:
    """Return the next messages; None if none came within ``readTimeout``."""
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
    """Raise an error if messages ``start`` to ``stop - 1`` were lost, and are no gap."""
    first = await dialect_of(options).first(connection, options, log)
    if first is not None and first <= start:
        if patience_is_over:
            raise TimeoutError(
                f"messages {start} to {stop - 1} of {log!r} did not come within {options.read_timeout:g} s (readTimeout)"
            )
        return  # the log still has older messages, so this is a gap
    if first is None and not patience_is_over:
        return
    loss = (
        f"messages {start} to {stop - 1} of {log!r} are not all there any more: it "
        f"{'holds nothing' if first is None else f'begins with {first}'} now (option 'failOnDataLoss')"
    )
    if options.fail_on_data_loss:
        raise DataLossError(loss)
    _log.warning(loss)
