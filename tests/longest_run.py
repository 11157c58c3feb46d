"""How long tasks run between two passes of the scheduler: what all other tasks have to wait for.

Counted is the processor time of the thread, so that other processes on the machine do not matter.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from time import thread_time
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Generator


class LongestRun(trio.abc.Instrument):
    """Measures the runs of all tasks.

    Attributes:
        longest: seconds of the longest run.
        task: the name of the task that had it.
        spent: seconds of all runs together.
    """

    def __init__(self) -> None:
        self._ignored: set[trio.lowlevel.Task] = set()
        self._began = thread_time()
        self.reset()

    def reset(self) -> None:
        """Begin to measure from here."""
        self.longest = 0.0
        self.task = ""
        self.spent = 0.0

    def ignore(self) -> None:
        """Do not measure the calling task: it belongs to the test."""
        self._ignored.add(trio.lowlevel.current_task())

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._began = thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task in self._ignored:
            return
        spent = thread_time() - self._began
        self.spent += spent
        if spent > self.longest:
            self.longest, self.task = spent, task.name


@contextmanager
def measured_runs() -> Generator[LongestRun]:
    """Measure the runs of tasks in this block; no garbage collection is among them."""
    runs = LongestRun()
    gc.collect()
    gc.freeze()
    gc.disable()
    trio.lowlevel.add_instrument(runs)
    try:
        yield runs
    finally:
        trio.lowlevel.remove_instrument(runs)
        gc.enable()
        gc.unfreeze()
