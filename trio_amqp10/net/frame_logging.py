"""The log of frames: logger ``trio_amqp10.frames``, or ``AMQP10_TRACE=frames``.

A tap gets the octets between pump and engine, so it has them as the engine gets them, after TLS. The pump asks for a log once per
connection: a connection without one has no cost. The code that splits and describes the frames of every protocol belongs to
the tools, and is imported only if frames are logged. Knows no state of the connection.
"""

from __future__ import annotations

import itertools
import logging
import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

_VARIABLE: Final = "AMQP10_TRACE"

_log: Final = logging.getLogger("trio_amqp10.frames")
_numbers: Final = itertools.count(1)


def follow_environment(value: str | None) -> None:
    """Apply the variable's value: ``frames`` writes every frame to stderr.

    Frames are then written whatever the configuration of logging. An unknown value is logged as a warning, and changes nothing.
    """
    if not value:
        return
    if value != "frames":
        _log.warning("%s=%s is not known: the only value is frames", _VARIABLE, value)
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d %(message)s", "%H:%M:%S"))
    _log.addHandler(handler)
    _log.setLevel(logging.DEBUG)
    _log.propagate = False


class Tap(Protocol):
    """An object that gets the octets of one connection.

    It must neither raise nor wait.
    """

    def read(self, octets: bytes) -> None:
        """Take octets from the peer, before the engine reads them."""
        ...

    def written(self, octets: bytes) -> None:
        """Take octets from the engine, before they are written."""
        ...


class FrameTools(NamedTuple):
    """The functions that split and describe the frames of every protocol.

    See ``tools.trace``.
    """

    splitter: Callable[..., Any]
    describe: Callable[[Any], str]
    fields_of: Callable[[Any], dict[str, str]]


def frame_tools() -> FrameTools:
    """Import what splits and describes frames, and return it."""
    text = import_module("trio_amqp10.tools.trace.frame_text")
    splitter = import_module("trio_amqp10.tools.trace.frame_splitter").FrameSplitter
    return FrameTools(splitter, text.describe, text.fields_of)


class FrameLog:
    """The log of the frames of one connection.

    Args:
        splitter: makes an object that splits the octets of one direction into frames.
        describe: returns a frame as text.
    """

    def __init__(self, splitter: Callable[[], Any], describe: Callable[[Any], str]) -> None:
        self._number = next(_numbers)
        self._describe = describe
        self._in = splitter()
        self._out = splitter()

    def read(self, octets: bytes) -> None:
        """Log octets from the peer, before the engine reads them."""
        self._log_frames("<-", self._in, octets)

    def written(self, octets: bytes) -> None:
        """Log octets from the engine, before they are written."""
        self._log_frames("->", self._out, octets)

    def _log_frames(self, arrow: str, splitter: Any, octets: bytes) -> None:
        for piece in splitter.feed(octets):
            _log.debug("%d %s %s", self._number, arrow, self._describe(piece))


def new_frame_log() -> FrameLog | None:
    """Return a log for a new connection, or None if frames are not logged.

    Frames are logged if the logger itself, and not a parent of it, has the level DEBUG.
    """
    if not 0 < _log.level <= logging.DEBUG:
        return None
    tools = frame_tools()
    return FrameLog(tools.splitter, tools.describe)


follow_environment(os.environ.get(_VARIABLE))
