"""LaneProcesses: the receivers of a query's lanes, each in a process of its own.

A lane that fails and says why fails the query: what no patience mends would be met again. One that dies without a word (killed, out
of memory) is started again, with a new epoch; and if that happens time and again, the query fails too. So nothing waits in silence.

Knows processes; what they do is said in ``lane_program``.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.errors import AmqpError

from .lane_program import LaneTask

if TYPE_CHECKING:
    from .options import QueueOptions

__all__ = ["LaneError", "LaneProcesses"]

_log = logging.getLogger("trio_amqp10.spark")

_PROGRAM: Final = "trio_amqp10.spark.lane_program"
_MOST_DEATHS: Final = 5
_WITHIN: Final = 60.0
"""Seconds in which a lane may die less than so many times."""
_FAREWELL: Final = 7.0


class LaneError(AmqpError):
    """The receiver of a lane has failed, or dies time and again."""


class LaneProcesses:
    """The receivers of lanes ``lane-0`` to ``lane-N``, from now on.

    Args:
        options: of the reader. Bounds in octets are shared out among the lanes; ``credit`` is for each link of each lane.
        count: how many lanes.
        emptying: take what is there, and no more.
    """

    def __init__(self, options: QueueOptions, count: int, *, emptying: bool = False) -> None:
        self._lanes = [_Lane(_task(options, number, count, emptying)) for number in range(count)]

    def check(self) -> None:
        """Raise what a lane has failed with.

        Raises:
            LaneError: with the peer's condition in its text.
        """
        for lane in self._lanes:
            if lane.failure is not None:
                raise LaneError(lane.failure)

    @property
    def finished(self) -> bool:
        """Whether every lane has ended: emptied, or failed."""
        return not any(lane.running for lane in self._lanes)

    def stop(self) -> None:
        """Have all write and settle what has come, and end; who does not within seconds is killed."""
        for lane in self._lanes:
            lane.ask_to_end()
        deadline = time.monotonic() + _FAREWELL
        for lane in self._lanes:
            lane.end(deadline)


def _task(options: QueueOptions, number: int, count: int, emptying: bool) -> LaneTask:
    lane = f"lane-{number}"
    own = replace(
        options,
        spool_max_bytes=max(1, options.spool_max_bytes // count),
        credit_max_bytes=max(1, options.credit_max_bytes // count),
        link_name=None if options.link_name is None else f"{options.link_name}-{lane}",
    )
    return LaneTask(own, lane, emptying)


class _Lane:
    """One lane, and the process that it has at present.

    Attributes:
        failure: why there is none any more, for people; None if there is one, or the queue was emptied.
        running: whether there is one, or will be again.
    """

    def __init__(self, task: LaneTask) -> None:
        self.failure: str | None = None
        self.running: bool = True
        self._task = task
        self._deaths: list[float] = []
        self._guard = threading.Lock()
        self._ending = False
        self._process = self._start()
        self._thread = threading.Thread(target=self._watch, name=f"amqp10 {task.lane}", daemon=True)
        self._thread.start()

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it has died already
            process.stdin.write(pickle.dumps(self._task))
            process.stdin.flush()
        return process

    def _watch(self) -> None:
        while True:
            said: dict[str, Any] = {}
            assert self._process.stdout is not None
            for line in self._process.stdout:
                with suppress(ValueError):  # cut off by its death
                    said |= json.loads(line)
            code = self._process.wait()
            with self._guard:
                if self._ending or said.get("emptied"):
                    break
                self.failure = (
                    f"{self._task.lane}: {said['failed']}" if "failed" in said else self._died(code)
                )
                if self.failure is not None:
                    break
                _log.warning(
                    "the process of %s has ended with %d, and is started again", self._task.lane, code
                )
                self._close()
                self._process = self._start()
        self.running = False

    def _died(self, code: int) -> str | None:
        """What to say of a lane that has died too often; None for one that may go on."""
        now = time.monotonic()
        self._deaths = [at for at in self._deaths if now - at < _WITHIN] + [now]
        if len(self._deaths) < _MOST_DEATHS:
            return None
        return (
            f"the process of {self._task.lane} has died {_MOST_DEATHS} times within {_WITHIN:g} s, the last time with code "
            f"{code}: see what it logged; a negative code is the number of a signal, -9 perhaps for want of memory"
        )

    def ask_to_end(self) -> None:
        with self._guard:
            self._ending = True
            assert self._process.stdin is not None
            with suppress(OSError):
                self._process.stdin.close()

    def end(self, deadline: float) -> None:
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._thread.join(1.0)
        self._close()

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
