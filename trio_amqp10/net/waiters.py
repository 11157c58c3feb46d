"""Tasks that wait for the engine, and calls that must not hog the loop.

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

__all__ = [
    "CheckpointThrottle",
    "EnteredWithAsync",
    "OneShotEvent",
    "Waiter",
    "check_trio",
    "interrupts_unwrapped",
]


@contextmanager
def interrupts_unwrapped() -> Generator[None, None, None]:
    """Raise the ``KeyboardInterrupt`` of a nursery as itself: in a group of one, Python would not end the process by it."""
    try:
        yield
    except BaseExceptionGroup as group:
        interrupts, others = group.split(KeyboardInterrupt)
        if interrupts is None or others is not None:
            raise
        raise KeyboardInterrupt from None


def check_trio() -> None:
    """Raise where no trio runs, as under asyncio: trio itself would only say what it misses.

    Raises:
        RuntimeError: no trio runs in this thread.
    """
    try:
        trio.lowlevel.current_trio_token()
    except RuntimeError:
        raise RuntimeError(
            "trio_amqp10 needs trio, which does not run here: start the program with trio.run(main). "
            "From asyncio, or without either, use trio_amqp10.blocking in a thread"
        ) from None


class EnteredWithAsync:
    """What is entered with ``async with`` and used only then: other uses are answered with that advice."""

    __slots__ = ()

    if not TYPE_CHECKING:  # type checkers know the attributes that there are

        def __getattr__(self, name: str) -> Any:
            advice = "" if name.startswith("_") else "; it is opened first: async with ... as name"
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}{advice}", name=name, obj=self
            )


class Waiter:
    """Where tasks park until the engine touches this, or anyone else wakes it.

    A wake-up is a hint: whoever waits looks at the state again, in a loop.
    """

    # Nearly always one task waits, and often for long: it is kept as it is, and a dict and a closure are for more.
    __slots__ = ("_parked", "touched")

    def __init__(self) -> None:
        self.touched: bool = False
        self._parked: Task | dict[Task, None] | None = None

    @property
    def waiting(self) -> int:
        """How many tasks wait."""
        parked = self._parked
        if isinstance(parked, dict):
            return len(parked)
        return 0 if parked is None else 1

    def wake(self) -> None:
        """Let every task that waits look again."""
        parked = self._parked
        if parked is not None:
            self._parked = None
            if isinstance(parked, dict):
                for task in parked:
                    reschedule(task)
            else:
                reschedule(parked)

    async def wait(self) -> None:
        """Park until the next ``wake``. A cancelled call leaves nothing behind."""
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
        """The task that waited alone once is cancelled; others that came since are behind it."""
        parked = self._parked
        if isinstance(parked, dict):
            del parked[next(iter(parked))]
        else:
            self._parked = None
        return Abort.SUCCEEDED


class OneShotEvent:
    """What happens once, and can be waited for: as ``trio.Event``, at a quarter of its size."""

    __slots__ = ("_is_set", "_waiter")

    def __init__(self) -> None:
        self._is_set = False
        self._waiter: Waiter | None = None

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._is_set

    def set(self) -> None:
        """It has happened: let all who wait go on."""
        self._is_set = True
        if self._waiter is not None:
            self._waiter.wake()

    async def wait(self) -> None:
        """Wait until it has happened; a checkpoint where it has. Cancelled: nothing has happened."""
        if self._is_set:
            await trio.lowlevel.checkpoint()
            return
        if self._waiter is None:
            self._waiter = Waiter()
        await self._waiter.wait()


_CALLS: Final = 64
_SECONDS: Final = 0.001


class CheckpointThrottle:
    """A checkpoint for calls that cost less than one.

    A full checkpoint costs more than a message. So a task that makes calls without ever
    blocking has a full one at every 64th call, and after a millisecond of unbroken work, or a
    deadline that has passed would stay unseen; between those it only looks whether it is
    cancelled already.
    """

    __slots__ = ("_count", "_since", "_task")

    def __init__(self) -> None:
        self._task: Task | None = None
        self._count = 0
        self._since = 0.0

    def checkpoint(self) -> Coroutine[Any, Any, None]:
        """A checkpoint to await, as cheap as may be. Cancelled: it raises, and nothing has happened."""
        task = current_task()
        now = perf_counter()
        self._count += 1
        if task is self._task:
            if self._count >= _CALLS or now - self._since > _SECONDS:
                self._count = 0
                self._task = None  # what comes next begins anew, whoever it is
                return trio.lowlevel.checkpoint()  # noqa: ASYNC105 - the caller awaits it
        else:
            self._task = task
            self._count = 1
            self._since = now
        return trio.lowlevel.checkpoint_if_cancelled()  # noqa: ASYNC105 - the caller awaits it

    def blocked(self) -> None:
        """The calling task has just been parked, which is a checkpoint and more."""
        self._count = 0
        self._since = perf_counter()
