"""LaneProcesses: the receivers of a query's lanes, each in its own process.

A lane that reports a failure fails the query, because another attempt would fail too. A process that dies
without a report (killed, out of memory) is started again, with a new epoch. If that happens too often, the lane rests: the peer gives its
messages to the other lanes, and it is tried again after a minute. The query fails if all lanes rest, or if one does that should
empty the queue.

Knows processes; ``lane_program`` is what they run.
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

from trio_amqp10.core.errors import AmqpError

from .lane_program import LaneTask

if TYPE_CHECKING:
    from .options import QueueOptions

_log = logging.getLogger("trio_amqp10.spark")

_PROGRAM: Final = "trio_amqp10.spark.lane_program"
_MOST_DEATHS: Final = 5
_WITHIN: Final = 60.0
"""Seconds within which ``_MOST_DEATHS`` deaths of a process make its lane rest."""
_REST: Final = 60.0
"""Seconds for which a lane rests."""
_FAREWELL: Final = 7.0


class LaneError(AmqpError):
    """The receiver of a lane has failed, or its process died too often."""


class LaneProcesses:
    """The running receivers of the lanes ``lane-0`` to ``lane-N``.

    Args:
        options: of the reader. Bounds in octets are divided among the lanes; ``credit`` is for each link of each lane.
        count: the number of lanes.
        emptying: whether to end when all messages that are in the queue now were received.
    """

    def __init__(self, options: QueueOptions, count: int, *, emptying: bool = False) -> None:
        self._lanes = [_Lane(_task(options, number, count, emptying)) for number in range(count)]

    def check(self) -> None:
        """Raise the failure of a lane, if one has failed, or if all lanes rest.

        Raises:
            LaneError: a lane has failed; the text has the peer's condition.
        """
        for lane in self._lanes:
            if lane.failure is not None:
                raise LaneError(lane.failure)
        resting = [lane.resting for lane in self._lanes if lane.resting is not None]
        if len(resting) == len(self._lanes):
            raise LaneError(resting[0])

    @property
    def finished(self) -> bool:
        """Whether no lane receives: each has emptied the queue, has failed, or rests."""
        return not any(lane.running and lane.resting is None for lane in self._lanes)

    def stop(self) -> None:
        """Let all lanes write and settle the messages that have come, and end.

        A process that does not end within seconds is killed.
        """
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
    """One lane, and its present process.

    Attributes:
        failure: why the lane has failed; None if it is running, or has emptied the queue.
        resting: why the lane has no process for a minute; None if it does not rest.
        running: whether the lane has a process, or will have one again.
    """

    def __init__(self, task: LaneTask) -> None:
        self.failure: str | None = None
        self.resting: str | None = None
        self.running: bool = True
        self._task = task
        self._deaths: list[float] = []
        self._guard = threading.Lock()
        self._ending = threading.Event()
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
        with suppress(BrokenPipeError):  # the process has died already
            process.stdin.write(pickle.dumps(self._task))
            process.stdin.flush()
        return process

    def _watch(self) -> None:
        while True:
            report: dict[str, Any] = {}
            assert self._process.stdout is not None
            for line in self._process.stdout:
                with suppress(ValueError):  # the process died while it wrote the line
                    report |= json.loads(line)
            code = self._process.wait()
            with self._guard:
                if self._ending.is_set() or report.get("emptied"):
                    break
                if "failed" in report:
                    self.failure = f"{self._task.lane}: {report['failed']}"
                    break
                self.resting = self._died(code)
                if self.resting is None:
                    _log.warning(
                        "the process of %s has ended with %d, and is started again", self._task.lane, code
                    )
                elif self._task.emptying:
                    self.failure, self.resting = self.resting, None
                    break
                else:
                    _log.warning("%s; it is tried again in %g s", self.resting, _REST)
                    self._deaths.clear()
            if self.resting is not None and self._ending.wait(_REST):
                break
            with self._guard:
                if self._ending.is_set():
                    break
                self.resting = None
                self._close()
                try:
                    self._process = self._start()
                except OSError as wrong:  # e.g. no memory for another process
                    self.failure = f"{self._task.lane}: its process cannot be started again: {wrong}"
                    break
        self.running = False

    def _died(self, code: int) -> str | None:
        """Count a death; return the failure of the lane if it has died too often."""
        now = time.monotonic()
        self._deaths = [at for at in self._deaths if now - at < _WITHIN] + [now]
        if len(self._deaths) < _MOST_DEATHS:
            return None
        return (
            f"the process of {self._task.lane} has died {_MOST_DEATHS} times within {_WITHIN:g} s, the last time with code "
            f"{code}: see what it logged; a negative code is the number of a signal (-9 may mean that memory ran out)"
        )

    def ask_to_end(self) -> None:
        with self._guard:
            self._ending.set()
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
