"""Long work of management, in pieces: the loop is never held for long.

Knows how long a piece may take; knows no operation.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from trio_amqp10.broker.nodes.turns import take_steps
from trio_amqp10.net.read_turns import current_turns

if TYPE_CHECKING:
    from collections.abc import Generator

    from trio_amqp10.broker.nodes.turns import Resumer, Steps

T = TypeVar("T")

_LENGTH: Final = 0.0005
"""Seconds of work after which other tasks run."""


class Pace:
    """Divides a long operation, so that it never holds the loop for long."""

    __slots__ = ("_until",)

    def __init__(self) -> None:
        self._until = perf_counter() + _LENGTH

    def is_over(self) -> bool:
        """Whether other tasks should run now."""
        return perf_counter() >= self._until

    async def pause(self) -> None:
        """Let other tasks run, if it is time. Cancelled: nothing is half done."""
        if self.is_over():
            await trio.lowlevel.checkpoint()
            self._until = perf_counter() + _LENGTH


async def take_paced(steps: Generator[None, None, T]) -> T:
    """Take steps of reading, with pauses; return their result. Cancelled: they end."""
    pace = Pace()
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: T = done.value
            return found
        if pace.is_over():
            await pace.pause()


async def take_in_turns(steps: Generator[Resumer | None, None, T]) -> T:
    """Take steps in turns between those of connections; return their result.

    Cancelled: the steps go on.
    """
    turns, done = current_turns(), trio.Event()
    results: list[T] = []
    failures: list[Exception] = []

    def collected() -> Steps:
        try:
            results.append((yield from steps))
        except Exception as failure:
            failures.append(failure)

    turns.run(lambda: take_steps(turns, collected(), done.set))
    await done.wait()
    if failures:
        raise failures[0]
    return results[0]
