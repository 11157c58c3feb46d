"""Places where tasks wait for the engine, and checkpoints that cost little.

Knows trio's scheduler, and nothing of AMQP.
"""

from __future__ import annotations

from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import trio
from trio.lowlevel import Abort, RaiseCancelT, Task, current_task, reschedule, wait_task_rescheduled

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator


@contextmanager
def interrupts_unwrapped() -> Generator[None, None, None]:
    """Raise a nursery's ``KeyboardInterrupt`` without its exception group.

    Python would not end the process as interrupted by a group of one.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        interrupts, others = group.split(KeyboardInterrupt)
        if interrupts is None or others is not None:
            raise
        raise KeyboardInterrupt from None


def check_trio() -> None:
    """Raise a helpful error if no trio runs, as under asyncio.

    Raises:
        RuntimeError: no trio runs in this thread.
    """
    try:
        trio.lowlevel.current_trio_token()
    except RuntimeError:
        raise RuntimeError(
            "trio_amqp10 needs trio, which does not run here: start the program with trio.run(main). "
            "From asyncio use trio_amqp10.aio, and without either trio_amqp10.blocking"
        ) from None


class EnteredWithAsync:
    """A base of classes that must be entered with ``async with`` before use.

    The error for an unknown attribute contains this advice.
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # otherwise type checkers would accept every attribute

        def __enter__(self) -> Any:
            raise TypeError(f"{type(self).__name__!r} object is opened with async: async with ... as name")

        def __exit__(self, *_: object) -> None:
            """Make ``with`` call ``__enter__``, which raises."""

        def __await__(self) -> Any:
            raise TypeError(f"{type(self).__name__!r} object is not awaited: async with ... as name")

        def __getattr__(self, name: str) -> Any:
            advice = "" if name.startswith("_") else "; enter it first: async with ... as name"
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}{advice}", name=name, obj=self
            )


class Waiter:
    """A place where tasks wait until the engine, or another task, wakes them.

    A wake-up is a hint: a waiting task must check the state again, in a loop.
    """

    # Nearly always a single task waits, and often for long: it is stored directly, which saves the memory of a
    # dict and a closure.
    __slots__ = ("_parked", "touched")

    def __init__(self) -> None:
        self.touched: bool = False
        self._parked: Task | dict[Task, None] | None = None

    @property
    def waiting(self) -> int:
        """The number of waiting tasks."""
        parked = self._parked
        if isinstance(parked, dict):
            return len(parked)
        return 0 if parked is None else 1

    def wake(self) -> None:
        """Let every waiting task check again."""
        parked = self._parked
        if parked is not None:
            self._parked = None
            if isinstance(parked, dict):
                for task in parked:
                    reschedule(task)
            else:
                reschedule(parked)

    async def wait(self) -> None:
        """Wait until the next ``wake``. Cancelled: nothing has changed."""
        task = current_task()
        parked = self._parked
        if not parked:
            self._parked = task
            await wait_task_rescheduled(self._forget_first)
            return
        if not isinstance(parked, dict):
            self._parked = parked = {parked: None}
        parked[task] = None

        def forget(_: RaiseCancelT) -> Abort:
            del parked[task]
            return Abort.SUCCEEDED

        await wait_task_rescheduled(forget)

    def _forget_first(self, _: RaiseCancelT) -> Abort:
        """Remove a cancelled task that was the first to wait."""
        parked = self._parked
        if isinstance(parked, dict):
            del parked[next(iter(parked))]
        else:
            self._parked = None
        return Abort.SUCCEEDED


class OneShotEvent:
    """An event that happens once: as ``trio.Event``, at a quarter of its size."""

    __slots__ = ("_is_set", "_waiter")

    def __init__(self) -> None:
        self._is_set = False
        self._waiter: Waiter | None = None

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._is_set

    def set(self) -> None:
        """Let all waiting tasks continue, now and in future."""
        self._is_set = True
        if self._waiter is not None:
            self._waiter.wake()

    async def wait(self) -> None:
        """Wait until it has happened; if it has, do a checkpoint.

        Cancelled: nothing has changed.
        """
        if self._is_set:
            await trio.lowlevel.checkpoint()
            return
        if self._waiter is None:
            self._waiter = Waiter()
        await self._waiter.wait()


_CALLS: Final = 64
_SECONDS: Final = 0.001


class CheckpointThrottle:
    """A checkpoint for calls that cost less than a checkpoint.

    A full checkpoint takes longer than a message. So a task whose calls never block has a full one at every 64th call, and after
    a millisecond of work without a pause; otherwise it would never notice that a deadline has passed. At the other calls it
    only checks whether it is cancelled already.
    """

    __slots__ = ("_count", "_since", "_task")

    def __init__(self) -> None:
        self._task: Task | None = None
        self._count = 0
        self._since = 0.0

    def checkpoint(self) -> Coroutine[Any, Any, None]:
        """Return a checkpoint to await, as cheap as possible.

        Cancelled: it raises, and nothing has changed.
        """
        task = current_task()
        now = perf_counter()
        self._count += 1
        if task is self._task:
            if self._count >= _CALLS or now - self._since > _SECONDS:
                self._count = 0
                self._task = None  # the next call, of any task, starts counting again
                return trio.lowlevel.checkpoint()  # noqa: ASYNC105 - the caller awaits it
        else:
            self._task = task
            self._count = 1
            self._since = now
        return trio.lowlevel.checkpoint_if_cancelled()  # noqa: ASYNC105 - the caller awaits it

    def blocked(self) -> None:
        """Note that the calling task was just blocked, which is a full checkpoint."""
        self._count = 0
        self._since = perf_counter()
