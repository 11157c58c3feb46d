"""Switch a queue over while producers and consumers use it.

Its messages are copied while it is in use. Then it is held, so that senders wait and consumers get no more, until consumers have answered for
what they have; the rest is copied, and all links are sent to the target. Messages of consumers that did not answer in time come back when
their links end, and are copied last. The hold ends by itself if the command is killed.

Knows the copying of a queue and the operations of a container; knows no plan.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.core.errors import AmqpError
from trio_amqp10.net.tasks_beside import tasks_beside
from trio_amqp10.tools.cli.command_runner import CommandError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .container_end import ContainerEnd
    from .from_container import OutOfContainer

_HOLD: Final = 15
"""Seconds for which the queue is held without a word from this command."""
_RENEWAL: Final = 5.0
_ANSWERS: Final = 10.0
"""Seconds that consumers have to answer for their messages."""
_PAUSE: Final = 0.1


async def switch(
    source: ContainerEnd, queue: str, url: str, copying: OutOfContainer, copy: Callable[[], Awaitable[None]]
) -> None:
    """Send the links of a queue to another place, and its last messages too.

    Args:
        source: the container.
        queue: the queue, most of whose messages were copied.
        url: the other place, with an address.
        copying: the copying of the queue.
        copy: copies all that is ready.

    Raises:
        CommandError: as ``OutOfContainer.step``; or messages do not come back.

    Cancelled: the queue is held for some seconds more; it may be redirected.
    """
    async with tasks_beside() as nursery:
        nursery.start_soon(_renew, source, queue)
        await source.hold(queue, _HOLD)
        await _until_answered(source, queue)
        await copy()
        await source.redirect(queue, url)
        copying.beside_consumers = True
        await _until_answered(source, queue)
        await copy()
    await source.hold(queue, 0)
    found = await source.figures(queue)
    if found is not None and found.ready + found.busy:
        raise CommandError(
            f"{found.ready + found.busy} messages of {queue!r} did not come back from their consumers: run the command again"
        )


async def _renew(source: ContainerEnd, queue: str) -> None:
    """Prolong the hold until cancelled; the copying reports a lost connection."""
    with suppress(AmqpError, trio.TooSlowError):
        while True:
            await trio.sleep(_RENEWAL)
            await source.hold(queue, _HOLD)


async def _until_answered(source: ContainerEnd, queue: str) -> None:
    """Wait until no consumer has a message, for some time."""
    end = trio.current_time() + _ANSWERS
    while (found := await source.figures(queue)) is not None and found.busy:
        if trio.current_time() > end:
            return
        await trio.sleep(_PAUSE)
