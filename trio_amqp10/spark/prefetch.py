"""Makes batches ahead in the trio thread of the pool, for a thread that iterates.

Spark reads a partition by iterating, in a thread without trio. So an async function in the
pool makes batches, a few ahead of the reading thread, and stops when the iteration ends.

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
    """Waits for room, and passes a batch on; returns False if the iteration has ended."""

_AHEAD: Final = 4
"""The most batches that wait for the reading thread."""
_LOOK: Final = 0.2
"""Seconds between two checks whether the iteration has ended."""


def prefetch(make: Callable[[Offer], Awaitable[None]]) -> Iterator[pa.RecordBatch]:
    """Iterate over the batches that an async function makes.

    Args:
        make: called with a function ``offer``, and must call it for each batch. It must return after the last
            batch, or when ``offer`` has returned False.

    Raises: the exception of the function, after the batches that it made before.
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
        except BaseException as failure:  # it is raised in the reading thread
            put(failure)

    threading.Thread(target=main, name="amqp10 ahead", daemon=True).start()
    try:
        while (item := made.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        unwanted.set()
