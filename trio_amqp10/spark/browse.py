"""Browse: read copies of what is in a queue, and leave it there (3.3, distribution-mode copy).

A batch is read in the executor's thread, which trio does not run in; so a thread of its own
receives, a few batches ahead of whoever reads.

Knows receivers and rows; of Spark, nothing.
"""

from __future__ import annotations

import queue
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spec.messaging import Source

from .dial import dial
from .rows import RowMaker, Rows
from .selecting import check_filter, selecting

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    import trio_amqp10 as amqp

    from .options import BrowseOptions

__all__ = ["browse"]

_AHEAD: Final = 4
"""Batches that are read before they are wanted."""
_LOOK: Final = 0.2
"""Seconds between two looks at whether anybody still wants them."""


def browse(options: BrowseOptions) -> Iterator[pa.RecordBatch]:
    """Batches of what is in the queue now, or of the first ``browse_limit`` messages.

    Raises:
        LocalProtocolError: the peer would move its messages, or does not select.
        TimeoutError: it did not say within ``browse_timeout`` seconds whether there is more.
        AmqpError, OSError: it cannot be reached, or was lost.
    """
    ahead: queue.Queue[Any] = queue.Queue(_AHEAD)
    unwanted = threading.Event()

    def main() -> None:
        try:
            trio.run(_browse, options, partial(_offer, ahead, unwanted))
            _offer(ahead, unwanted, None)
        except BaseException as failure:  # to be raised where the batches are read
            _offer(ahead, unwanted, failure)

    threading.Thread(target=main, name="amqp10 browse", daemon=True).start()
    try:
        while (item := ahead.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        unwanted.set()


def _offer(ahead: queue.Queue[Any], unwanted: threading.Event, item: Any) -> bool:
    """Hand over, once there is room; False if nobody wants any more."""
    while not unwanted.is_set():
        try:
            ahead.put(item, timeout=_LOOK)
        except queue.Full:
            continue
        return True
    return False


async def _browse(options: BrowseOptions, offer: Any) -> None:
    maker = RowMaker(options)
    source = Source(address=options.address, distribution_mode="copy", filter=selecting(options.selector))
    async with (
        dial(options) as connection,
        connection.open_receiver(options.address, source=source, credit=0) as receiver,
    ):
        granted: Any = receiver.remote.source
        if granted is None or granted.distribution_mode != "copy":
            raise LocalProtocolError(
                f"{options.address!r} cannot be browsed: the peer would move its messages, not copy them"
            )
        check_filter(receiver, options)
        seen = 0
        while options.browse_limit is None or seen < options.browse_limit:
            left = options.credit if options.browse_limit is None else options.browse_limit - seen
            wanted = min(options.credit, left)
            deliveries = await _drained(receiver, wanted, options)
            if deliveries:
                batch = _batch(maker, deliveries, seen, connection.remote.container_id)
                if not await trio.to_thread.run_sync(offer, batch):
                    return
            seen += len(deliveries)
            if len(deliveries) < wanted:
                return


async def _drained(receiver: amqp.Receiver, wanted: int, options: BrowseOptions) -> list[amqp.Delivery]:
    receiver.grant(wanted)
    with trio.move_on_after(options.browse_timeout):
        return await receiver.drain()
    raise TimeoutError(
        f"{options.where} did not answer a drain within {options.browse_timeout:g} s (browseTimeout), so nobody "
        "knows whether there is more"
    )


def _batch(maker: RowMaker, deliveries: list[amqp.Delivery], first: int, peer: str) -> pa.RecordBatch:
    rows = Rows()
    maker.gather(rows, deliveries, time.time_ns() // 1000)
    for delivery in deliveries:
        if not delivery.settled:
            delivery.release()
    return maker.batch(rows, first=first, peer=peer)
