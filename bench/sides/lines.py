"""What a program of ``bench/sides`` shares with the others: lines of JSON, and the span that is measured.

Knows no library, so that the environments of all peers can run it.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from types import SimpleNamespace
from typing import Any


def read_job() -> SimpleNamespace:
    """The job of the command line, on the processor that it names."""
    job = SimpleNamespace(**json.loads(sys.argv[1]))
    if job.core is not None:
        os.sched_setaffinity(0, {job.core})
    return job


def tell(**items: Any) -> None:
    sys.stdout.write(json.dumps(items) + "\n")
    sys.stdout.flush()


def go() -> None:
    """Say that all is ready, and wait for the word."""
    tell(ready=True)
    sys.stdin.readline()


def raise_file_limit() -> None:
    """As many descriptors as the system gives."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Span:
    """Wall and processor time (user and system, of this process) from here to ``end``."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._processor = time.process_time()

    def end(self, count: int) -> dict[str, float]:
        """For so many messages: ``us`` of processor time for each, and messages ``a second``."""
        wall = time.perf_counter() - self._wall
        processor = time.process_time() - self._processor
        return {"us": processor / count * 1e6, "a second": count / wall}
