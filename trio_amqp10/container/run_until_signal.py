"""Serve a container until the process gets a signal, then let it finish.

Knows signals; does not know the options of a listener.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import trio

from trio_amqp10.net.tasks_beside import tasks_beside

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from .container import Container


async def run_until_signal(container: Container, serve: Callable[..., Awaitable[object]]) -> None:
    """Run ``serve`` until the first SIGINT or SIGTERM, then let the container finish.

    The second signal ends it at once.

    Raises:
        Exception: What ``serve`` raised before it listened.
    """
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with tasks_beside() as nursery:
            await nursery.start(serve)
            await anext(signals)
            nursery.start_soon(_cancel_at_next, signals, nursery.cancel_scope)
            await container.finish()


async def _cancel_at_next(signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
    await anext(signals)
    scope.cancel()
