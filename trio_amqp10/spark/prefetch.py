"""Make batches ahead in the trio of the pool, for a thread that iterates.

Spark reads a partition by iterating, in a thread that trio does not run in. So a function in the
pool makes batches, a few ahead of whoever reads, and stops when nobody does any more.

Knows neither messages nor peers.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any, Final

import trio

from .connection_pool import run_in_pool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    import pyarrow as pa

    Offer = Callable[[pa.RecordBatch], Awaitable[bool]]
    """Hands over a batch, once there is room; False if nobody wants any more."""

__all__ = ["prefetch"]

_AHEAD: Final = 4
"""Batches that are made before they are wanted."""
_LOOK: Final = 0.2
"""Seconds between two looks at whether anybody still wants them."""


def prefetch(make: Callable[[Offer], Awaitable[None]]) -> Iterator[pa.RecordBatch]:
    """The batches that a function makes.

    Args:
        make: gets a function to hand over each batch with; returns after the last, or when that says False.

    Raises: what the function raises, after the batches that it made before.
    """
    made: queue.Queue[Any] = queue.Queue(_AHEAD)
    unwanted = threading.Event()

    def put(item: Any) -> bool:
        while not unwanted.is_set():
            try:
                made.put(item, timeout=_LOOK)
            except queue.Full:
                continue
            return True
        return False

    async def offer(batch: pa.RecordBatch) -> bool:
        return await trio.to_thread.run_sync(put, batch)

    def main() -> None:
        try:
            run_in_pool(make, offer)
            put(None)
        except BaseException as failure:  # to be raised where the batches are read
            put(failure)

    threading.Thread(target=main, name="amqp10 ahead", daemon=True).start()
    try:
        while (item := made.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        unwanted.set()
