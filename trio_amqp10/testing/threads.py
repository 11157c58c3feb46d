"""Run a trio program in a thread: ``with in_thread(open_x()) as value``.

Knows threads and trio's entry queue; knows nothing of AMQP.
"""

from __future__ import annotations

import queue
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

import trio

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractAsyncContextManager

__all__ = ["in_thread"]

T = TypeVar("T")


@contextmanager
def in_thread(manager: AbstractAsyncContextManager[T], name: str) -> Generator[T]:
    """Enter ``manager`` in a new thread under ``trio.run``; leave it when the block is left.

    Args:
        manager: what is to run; its value is for any thread to use as far as it may be.
        name: of the thread.

    Raises:
        BaseException: whatever entering raised; and what leaving raised, even when the block
            has raised too: that is its context then.
    """
    ready: queue.SimpleQueue[tuple[T, trio.lowlevel.TrioToken, trio.Event] | BaseException] = (
        queue.SimpleQueue()
    )

    async def main() -> None:
        leave = trio.Event()
        async with manager as value:
            ready.put((value, trio.lowlevel.current_trio_token(), leave))
            await leave.wait()

    failures: list[BaseException] = []

    def run() -> None:
        try:
            trio.run(main)
        except BaseException as failure:  # it is raised in the other thread
            failures.append(failure)
            ready.put(failure)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    first = ready.get()
    if isinstance(first, BaseException):
        thread.join()
        raise first
    value, token, leave = first
    try:
        yield value
    finally:
        with suppress(trio.RunFinishedError):  # it may have failed already
            token.run_sync_soon(leave.set)
        thread.join()
        if failures:
            raise failures[0]
