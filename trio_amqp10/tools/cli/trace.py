"""``amqp10 trace``: print captures frame by frame, or as an HTML page."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trio_amqp10.tools.trace.frame_log import entries_of
from trio_amqp10.tools.trace.frame_text import describe, hexdump, redacted
from trio_amqp10.tools.trace.html_page import html_page
from trio_amqp10.tools.trace.page_model import PageModel
from trio_amqp10.tools.trace.read_capture import read_capture

from .command_runner import CommandError, say, write_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trio_amqp10.tools.trace.frame_log import Entry

    from .command_runner import Interrupts


@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """The options of ``amqp10 trace``; ``-`` is stdin or stdout."""

    files: Sequence[str]
    html: str | None = None
    octets: bool = False


async def trace(options: TraceOptions, interrupts: Interrupts) -> None:  # noqa: ARG001 - an interrupt cancels the whole command
    """Read all files, and print their frames or write the page.

    Raises:
        OSError: a file cannot be read, or the page cannot be written.
        LocalProtocolError: a file is damaged, or is a capture without AMQP.
        CommandError: a file has no header and no frame of AMQP.
    """
    entries: list[Entry] = []
    notes: list[str] = []
    for file in options.files:
        found, remarks = _read(file, max((entry.conversation for entry in entries), default=0))
        entries += found
        notes += remarks if len(options.files) == 1 else [f"{_name(file)}: {note}" for note in remarks]
    if options.html is not None:
        model = PageModel()
        for entry in entries:
            model.feed(entry)
        title = ", ".join(map(_name, options.files))
        await _write_page(html_page(model, title=title, notes=notes), options.html)
        return
    for note in notes:
        say(note)
    several = len({entry.conversation for entry in entries}) > 1
    lines = [line for entry in entries for line in lines_of(entry, several=several, octets=options.octets)]
    await write_out("".join(f"{line}\n" for line in lines).encode())


def _read(file: str, before: int) -> tuple[list[Entry], list[str]]:
    """Return the frames of a file, and notes for the user.

    The conversations of the file are numbered from ``before`` on.
    """
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    capture = read_capture(data)
    entries = entries_of(capture.records)
    if all(entry.piece.fault is not None for entry in entries):
        first = f": {describe(entries[0].piece)}" if entries else ""
        raise CommandError(f"{_name(file, whole=True)} has no protocol header and no frame of AMQP{first}")
    return [replace(entry, conversation=entry.conversation + before) for entry in entries], capture.notes


def _name(file: str, *, whole: bool = False) -> str:
    return "stdin" if file == "-" else file if whole else Path(file).name


async def _write_page(page: str, out: str) -> None:
    if out == "-":
        await write_out(page.encode())
    else:
        Path(out).write_text(page, encoding="utf-8")  # noqa: ASYNC240 - no other task runs


def lines_of(entry: Entry, *, several: bool, octets: bool) -> list[str]:
    """Return the lines of a frame: its text, then its octets if requested.

    With ``several`` conversations, the text begins with the number of the conversation.
    """
    when = "" if entry.at is None else f"{entry.at:11.6f}  "
    number = f"{entry.conversation:<3}" if several else ""
    arrow = "->" if entry.way == ">" else "<-"
    dump = [f"    {line}" for line in hexdump(redacted(entry.piece))] if octets else []
    return [f"{when}{number}{arrow} {describe(entry.piece)}", *dump]
