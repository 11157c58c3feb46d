"""Screen: where a command that watches something shows it, again and again. And tables to show.

Knows rich and the terminal; not what is shown.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, Protocol

from .command_runner import harmless, write_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.console import RenderableType

__all__ = ["Screen", "number", "table"]


class _Wanted(Protocol):
    """What the command line said."""

    @property
    def once(self) -> bool: ...

    @property
    def json(self) -> bool: ...


class Screen:
    """Where samples go: a terminal that is drawn anew, or lines one after the other."""

    def __init__(self, options: _Wanted) -> None:
        self._options = options
        self._live: Any = None

    def __enter__(self) -> None:
        if not (self._options.once or self._options.json) and sys.stdout.isatty():
            from rich.live import Live

            self._live = Live(screen=True, auto_refresh=False)
            self._live.start()

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    async def show(self, line: Callable[[], bytes], drawn: Callable[[], RenderableType]) -> None:
        """Show one of both: a line of JSON, or what is drawn. Cancelled: some of it may have been written."""
        if self._options.json:
            await write_out(line())
        elif self._live is not None:
            self._live.update(drawn(), refresh=True)
        else:
            from rich.console import Console

            # Without escape codes: on a terminal ``write_out`` shows them, since it cannot know whose they are.
            console = Console(file=sys.stdout, force_terminal=False)
            with console.capture() as text:
                console.print(drawn())
            await write_out(text.get().encode())


def number(value: float | None) -> str:
    """With commas; nothing for None."""
    return "" if value is None else f"{value:,}"


_LEFT: Final = frozenset({"", "container", "address", "type", "no.", "peer", "user", "state", "way", "spool"})


def table(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> RenderableType:
    """A table of cells: words are on the left, numbers on the right."""
    from rich.markup import escape
    from rich.table import Table

    made = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in columns:
        made.add_column(name, justify="left" if name in _LEFT else "right")
    for row in rows:
        # Names are the peer's, and no markup of ours.
        made.add_row(*(escape(harmless(cell)) for cell in row))
    return made
