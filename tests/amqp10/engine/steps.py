"""Counts the steps of a call: instructions of the interpreter, which do not depend on the machine or what else it does."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def steps(call: Callable[[], object]) -> int:
    """Instructions that Python runs in ``call``; what C does in one of them counts as one.

    Garbage is collected afterwards: what is called when other tests' garbage goes would count.
    """
    count = 0

    def trace(frame: Any, event: str, _argument: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        count += event == "opcode"
        return trace

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return count
