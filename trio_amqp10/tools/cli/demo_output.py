"""The output of the demos: a line for each step, and the frames in between."""

from __future__ import annotations

import logging
import sys
from typing import TextIO, cast

from .command_runner import OutputClosedError


def show(text: str = "") -> None:
    """Print a line, and flush it.

    Raises:
        OutputClosedError: the reader of stdout has closed it.
    """
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise OutputClosedError from None


class _FrameLines(logging.StreamHandler[TextIO]):
    """A log handler that prints each frame once, as the dialling end logs it.

    Both ends of a connection are in this process. The dialling end of every protocol writes first.
    """

    def __init__(self) -> None:
        super().__init__(sys.stdout)
        self.setFormatter(logging.Formatter("    %(message)s"))
        self._dialled: dict[int, bool] = {}

    def emit(self, record: logging.LogRecord) -> None:
        number, way, _ = cast("tuple[int, str, str]", record.args)
        if self._dialled.setdefault(number, way == "->"):
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """Ignore a closed stdout: the next line of the command ends it."""


def show_frames() -> None:
    """Print the frames of all later connections, with their numbers."""
    log = logging.getLogger("trio_amqp10.frames")
    log.addHandler(_FrameLines())
    log.setLevel(logging.DEBUG)
    log.propagate = False
