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

T = TypeVar("T")


@contextmanager
def in_thread(manager: AbstractAsyncContextManager[T], name: str) -> Generator[T]:
    """Enter ``manager`` in a new thread under ``trio.run``; exit it after the block.

    Args:
        manager: the async context manager to run; its value is the value of the block.
        name: the name of the thread.

    Raises:
        BaseException: the exception of entering or exiting ``manager``. If the block has raised too,
            its exception is the context.
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
        except BaseException as failure:  # the exception is raised in the other thread
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
        with suppress(trio.RunFinishedError):  # the thread may have ended with an exception
            token.run_sync_soon(leave.set)
        thread.join()
        if failures:
            raise failures[0]
