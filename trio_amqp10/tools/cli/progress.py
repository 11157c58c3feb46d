"""The progress of a long command, shown on stderr if that is a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

_EVERY = 0.1


class Progress:
    """A counter of messages, shown on stderr if that is a terminal.

    Args:
        what: the activity, e.g. ``sending``.
        total: the expected number of messages, or None if it is unknown.
        quiet: whether to show nothing, because stdout is the same terminal.
    """

    def __init__(self, what: str, total: int | None, *, quiet: bool = False) -> None:
        self.count: int = 0
        self._bar = None
        if quiet or not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            ProgressColumn,
            SpinnerColumn,
            Task,
            TextColumn,
            TimeElapsedColumn,
        )
        from rich.progress import Progress as Bar
        from rich.text import Text

        class RateColumn(ProgressColumn):
            """The rate in messages a second, over the last half minute."""

            def render(self, task: Task) -> Text:
                return Text("" if task.speed is None else f"{task.speed:,.0f}/s")

        bar = [] if total is None else [BarColumn()]
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            *bar,
            MofNCompleteColumn(),
            RateColumn(),
            TimeElapsedColumn(),
        )
        console = Console(stderr=True)
        self._bar = Bar(*columns, console=console, transient=True, refresh_per_second=1 / _EVERY)
        self._task = self._bar.add_task(what, total=total)

    def advance(self, messages: int = 1) -> None:
        """Add to the count."""
        self.count += messages
        if self._bar is not None:
            self._bar.update(self._task, completed=self.count)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
