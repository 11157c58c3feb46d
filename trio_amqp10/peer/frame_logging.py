"""Log frames: logger ``trio_amqp10.frames``, or ``AMQP10_TRACE=frames``.

Looks on between pump and engine of every dialect, so that it sees what the engine sees, after TLS. It is asked once for each
connection: one that is not logged does not pay. Knows no state of the conversation.
"""

from __future__ import annotations

import itertools
import logging
import os
from typing import TYPE_CHECKING, Final

from trio_amqp10.net.octet_log import log_octets

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.net.octet_log import OctetLog
    from trio_amqp10.trace.frame_splitter import FrameSplitter
    from trio_amqp10.trace.pieces import Piece

__all__ = ["follow_environment", "frame_log"]

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


class _FrameLog:
    """Logs the frames of one connection; see ``net.octet_log.OctetLog``."""

    def __init__(self, splitter: type[FrameSplitter], describe: Callable[[Piece], str]) -> None:
        self._number = next(_numbers)
        self._describe = describe
        self._in = splitter()
        self._out = splitter()

    def read(self, octets: bytes) -> None:
        self._tell("<-", self._in, octets)

    def written(self, octets: bytes) -> None:
        self._tell("->", self._out, octets)

    def _tell(self, arrow: str, splitter: FrameSplitter, octets: bytes) -> None:
        for piece in splitter.feed(octets):
            _log.debug("%d %s %s", self._number, arrow, self._describe(piece))


def frame_log() -> OctetLog | None:
    """A log of the frames of a new connection, if the logger itself, and not one above it, is set to DEBUG."""
    if not 0 < _log.level <= logging.DEBUG:
        return None
    # What reads the frames of every protocol is not loaded unless they are logged.
    from trio_amqp10.trace.frame_splitter import FrameSplitter
    from trio_amqp10.trace.frame_text import describe

    return _FrameLog(FrameSplitter, describe)


follow_environment(os.environ.get(_VARIABLE))
log_octets(frame_log)
