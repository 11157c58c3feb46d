"""Wait for the lock of a broker, which one run of the command at a time has.

Knows time; knows no broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import trio

from trio_amqp10.tools.cli.command_runner import CommandError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

_PATIENCE: Final = 10.0
"""Seconds to wait for the connection of an earlier run to be over."""
_PAUSE: Final = 0.1


async def take_lock(name: str, take: Callable[[], Awaitable[T]], refusal: type[Exception]) -> T:
    """Call ``take()`` until it is not refused; return its result.

    Args:
        name: the place of the broker, for people.
        take: takes the lock.
        refusal: what it raises if another run has the lock.

    Raises:
        CommandError: another run has it for a long time.

    Cancelled: as ``take``.
    """
    end = trio.current_time() + _PATIENCE
    while True:
        try:
            return await take()
        except refusal as refused:
            if trio.current_time() > end:
                raise CommandError(
                    f"{name}: another amqp10 migrate is at work there ({refused}): wait until it has ended"
                ) from None
        await trio.sleep(_PAUSE)
