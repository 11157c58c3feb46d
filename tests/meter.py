"""What work costs, counted in steps and octets: the same on a quiet machine and on a busy one.

A step is a line of ``trio_amqp10`` that is run, in whichever function, comprehension or coroutine. What C does inside
one line, such as copying a list, is one step; so a count shows what grows with the work of our own loops.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio_amqp10

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_PACKAGE: Final = str(Path(trio_amqp10.__file__).parent)


class TooMuchError(AssertionError):
    """An attempt took more steps, or more memory, than its octets are worth; also how one that never ends is stopped."""


def steps(call: Callable[[], object], limit: int | None = None) -> int:
    """Count the lines of the package that ``call`` runs in this thread.

    Args:
        call: what to measure; what it raises is raised here.
        limit: steps after which ``TooMuchError`` is raised inside of it, and again at the end; None for any number.
    """
    counted = 0
    known: dict[Any, bool] = {}

    def step(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal counted
        if event == "line":
            counted += 1
            if limit is not None and counted > limit:
                raise TooMuchError(f"more than {limit} steps")
        return step

    def enter(frame: FrameType, _event: str, _argument: object) -> Any:
        code = frame.f_code
        ours = known.get(code)
        if ours is None:
            ours = known[code] = code.co_filename.startswith(_PACKAGE)
        return step if ours else None

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()  # A collection would count what ends of other tests' objects.
    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    if limit is not None and counted > limit:
        raise TooMuchError(f"{counted} steps, and {limit} are enough")
    return counted


def allocated(call: Callable[[], object]) -> int:
    """Octets of Python objects at the worst moment of ``call``, beyond what there was before."""
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if not tracing:
            tracemalloc.stop()
