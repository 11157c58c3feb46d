"""Frames in the log: the logger ``trio_amqp10.frames``, and ``AMQP10_TRACE=frames`` in the environment.

Sits between pump and engine, so that it sees what the engine sees, after TLS. It is looked at once for each
connection: one that is not traced does not pay. Knows no state of the conversation.
"""

from __future__ import annotations

import itertools
import logging
import os
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.trace.pieces import FrameSplitter
from trio_amqp10.trace.text import describe

if TYPE_CHECKING:
    from trio_amqp10.net.engine import Engine

__all__ = ["follow_environment", "traced"]

_VARIABLE: Final = "AMQP10_TRACE"

_log: Final = logging.getLogger("trio_amqp10.frames")
_numbers: Final = itertools.count(1)


def follow_environment(value: str | None) -> None:
    """Do as the variable says: ``frames`` has every frame written to stderr, whatever logging is set to.

    What it does not know it says in the log, and leaves things as they are.
    """
    if not value:
        return
    if value != "frames":
        _log.warning("%s=%s is not known; it may be: frames", _VARIABLE, value)
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d %(message)s", "%H:%M:%S"))
    _log.addHandler(handler)
    _log.setLevel(logging.DEBUG)
    _log.propagate = False


def traced(engine: Engine) -> Engine:
    """``engine``; with every frame logged if the logger itself, and not one above it, is set to DEBUG."""
    if not 0 < _log.level <= logging.DEBUG:
        return engine
    return cast("Engine", _Traced(engine, next(_numbers)))


class _Traced:
    """An engine whose octets are logged. All that it does not know it passes on."""

    def __init__(self, engine: Engine, number: int) -> None:
        self._engine = engine
        self._number = number
        self._written = FrameSplitter()
        self._read = FrameSplitter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def receive_slice(self, data: bytes, now: float) -> None:
        self._tell("<-", self._read, data)
        self._engine.receive_slice(data, now)

    def data_to_send(self) -> bytes | None:
        data = self._engine.data_to_send()
        if data:
            self._tell("->", self._written, data)
        return data

    def _tell(self, arrow: str, splitter: FrameSplitter, octets: bytes) -> None:
        for piece in splitter.feed(octets):
            _log.debug("%d %s %s", self._number, arrow, describe(piece))


follow_environment(os.environ.get(_VARIABLE))
