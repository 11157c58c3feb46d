"""What the demos print: a line for each step, and between them the frames."""

from __future__ import annotations

import logging
import sys
from typing import TextIO, cast

__all__ = ["show", "show_frames"]


def show(text: str = "") -> None:
    """A line, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class _FrameLines(logging.StreamHandler[TextIO]):
    """Each frame once, as the end sees it that dialled: that end writes first, whatever the protocol."""

    def __init__(self) -> None:
        super().__init__(sys.stdout)
        self.setFormatter(logging.Formatter("    %(message)s"))
        self._dialled: dict[int, bool] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """As of ``StreamHandler``."""
        number, way, _ = cast("tuple[int, str, str]", record.args)
        if self._dialled.setdefault(number, way == "->"):
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """Nobody reads any more: the next line of the command itself ends it."""


def show_frames() -> None:
    """Show the frames of all connections that are made from now on, each with the number of its connection."""
    log = logging.getLogger("trio_amqp10.frames")
    log.addHandler(_FrameLines())
    log.setLevel(logging.DEBUG)
    log.propagate = False
