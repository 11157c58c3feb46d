"""Reads copies of the messages of a queue (distribution-mode copy, 3.5.3).

Knows receivers and rows, not Spark.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import trio

from trio_amqp10.amqp10.spec.messaging import Source

from .connection_pool import borrow
from .prefetch import prefetch
from .rows import RowMaker, Rows
from .source_selection import check_copying, check_filter, selector_filter

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    import trio_amqp10 as amqp

    from .options import BrowseOptions
    from .prefetch import Offer


def browse(options: BrowseOptions) -> Iterator[pa.RecordBatch]:
    """Return batches of the messages in the queue, or of the first ``browse_limit``.

    Raises:
        LocalProtocolError: the peer would move its messages, or does not apply the selector.
        TimeoutError: the peer did not answer a drain within ``browse_timeout`` seconds.
        AmqpError, OSError: the peer cannot be reached, or the connection was lost.
    """
    return prefetch(partial(_browse, options))


async def _browse(options: BrowseOptions, offer: Offer) -> None:
    maker = RowMaker(options)
    source = Source(
        address=options.address, distribution_mode="copy", filter=selector_filter(options.selector)
    )
    async with (
        borrow(options) as connection,
        connection.open_receiver(options.address, source=source, credit=0, filters="optional") as receiver,
    ):
        check_copying(receiver, options)
        check_filter(receiver, options)
        seen = 0
        while options.browse_limit is None or seen < options.browse_limit:
            left = options.credit if options.browse_limit is None else options.browse_limit - seen
            wanted = min(options.credit, left)
            deliveries = await _drained(receiver, wanted, options)
            if deliveries:
                batch = _batch(maker, deliveries, seen, connection.remote.container_id)
                if not await offer(batch):
                    return
            seen += len(deliveries)
            if len(deliveries) < wanted:
                return


async def _drained(receiver: amqp.Receiver, wanted: int, options: BrowseOptions) -> list[amqp.Delivery]:
    receiver.grant(wanted)
    with trio.move_on_after(options.browse_timeout):
        return await receiver.drain()
    raise TimeoutError(
        f"{options.where} did not answer a drain within {options.browse_timeout:g} s (browseTimeout), so it is "
        "unknown whether there are more messages"
    )


def _batch(maker: RowMaker, deliveries: list[amqp.Delivery], first: int, peer: str) -> pa.RecordBatch:
    rows = Rows()
    maker.gather(rows, deliveries, time.time_ns() // 1000)
    for delivery in deliveries:
        if not delivery.settled:
            delivery.release()
    return maker.batch(rows, range(first, first + len(rows.came)), peer=peer)
