"""Whether an attempt went wrong, and where: by what it raises, by its steps, or by its memory."""

from __future__ import annotations

import traceback
from functools import partial
from typing import TYPE_CHECKING

from tests.meter import TooMuchError, allocated, steps

from .target import attempt

if TYPE_CHECKING:
    from .target import FuzzTarget


def failure_of(target: FuzzTarget, octets: bytes) -> tuple[str, str] | None:
    """Where an attempt failed, and a line that says how; None if it did not.

    Two failures are one if the same line raised the same exception: the innermost one, as nurseries wrap what their
    tasks raise in groups.
    """
    try:
        attempt(target, octets)
    except Exception as failure:
        return _told(failure)
    return None


def measured(target: FuzzTarget, octets: bytes, how: str) -> tuple[str, str] | None:
    """The same, and ``steps`` or ``memory`` may be too many or too much for so many octets."""
    call = partial(attempt, target, octets)
    try:
        if how == "steps":
            least, each = target.steps
            steps(call, least + each * len(octets))
        else:
            least, each = target.memory
            taken, most = allocated(call), least + each * len(octets)
            if taken > most:
                taken = allocated(call)  # without what is imported, or made for ever, when it is used first
            if taken > most:
                return "memory", f"{taken} octets of memory for {len(octets)}, and {most} are enough"
    except TooMuchError as failure:
        return "steps", f"{failure}, for {len(octets)} octets"
    except Exception as failure:
        return _told(failure)
    return None


def _told(failure: Exception) -> tuple[str, str]:
    innermost: BaseException = failure
    while isinstance(innermost, BaseExceptionGroup):
        innermost = innermost.exceptions[0]
    cause = innermost.__cause__ or innermost
    frame = traceback.extract_tb(cause.__traceback__)[-1]
    where = f"{type(cause).__name__} in {frame.name}"
    return f"{where}:{frame.lineno}", f"{where}: {innermost}"
