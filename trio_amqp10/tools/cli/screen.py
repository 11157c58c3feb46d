"""A screen for figures that change, and tables to show on it.

Knows rich and the terminal; does not know the figures.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from .command_runner import harmless, write_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.console import RenderableType


_NO_LIMIT: Final = 100_000
"""The width of a line in a file or a pipe."""


class Screen:
    """The output of a command that shows samples: a full screen, or lines.

    A terminal is redrawn for each sample, unless the options request JSON or one sample.
    """

    def __init__(self, *, once: bool, json: bool) -> None:
        self._json = json
        self._redraws = not (once or json)
        self._live: Any = None

    def __enter__(self) -> None:
        if self._redraws and sys.stdout.isatty():
            from rich.live import Live

            self._live = Live(screen=True, auto_refresh=False)
            self._live.start()

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    async def show(self, line: Callable[[], bytes], drawn: Callable[[], RenderableType]) -> None:
        """Show a line of JSON, or a drawing. Cancelled: a part may have been written."""
        if self._json:
            await write_out(line())
        elif self._live is not None:
            self._live.update(drawn(), refresh=True)
        else:
            from rich.console import Console

            # No escape codes: ``write_out`` would escape them too, because it cannot distinguish them from those of a message.
            # Only a terminal has a width: cells that are cut would be lost to the next program of a pipe.
            width = None if sys.stdout.isatty() else _NO_LIMIT
            console = Console(file=sys.stdout, force_terminal=False, width=width)
            with console.capture() as text:
                console.print(drawn())
            await write_out("".join(f"{line.rstrip()}\n" for line in text.get().splitlines()).encode())


def number(value: float | None) -> str:
    """Return a number with commas, or an empty text for None."""
    return "" if value is None else f"{value:,}"


_LEFT: Final = frozenset(
    {"", "container", "name", "address", "type", "no.", "peer", "user", "state", "way", "spool"}
)


def table(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> RenderableType:
    """Return a table with words aligned left and numbers aligned right.

    There is no header if all names of columns are empty.
    """
    from rich.markup import escape
    from rich.table import Table

    made = Table(
        title=title or None, title_justify="left", box=None, pad_edge=False, show_header=any(columns)
    )
    for name in columns:
        made.add_column(name, justify="left" if name in _LEFT else "right")
    for row in rows:
        # Names come from the peer and must not be read as markup.
        made.add_row(*(escape(harmless(cell)) for cell in row))
    return made
