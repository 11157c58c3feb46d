"""``amqp10 trace``: print a capture frame by frame, or as a sequence diagram."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trio_amqp10.trace.frame_log import entries_of
from trio_amqp10.trace.frame_text import describe, hexdump, redacted
from trio_amqp10.trace.html_diagram import sequence_diagram
from trio_amqp10.trace.read_capture import read_capture

from .command_runner import CommandError, say, write_out

if TYPE_CHECKING:
    from trio_amqp10.trace.frame_log import Entry

    from .command_runner import Interrupts

__all__ = ["TraceOptions", "trace"]


@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """What the command line said; a file that is None is stdin."""

    file: str | None
    html: bool = False
    octets: bool = False


async def trace(options: TraceOptions, interrupts: Interrupts) -> None:  # noqa: ARG001 - it is cancelled whole
    """Read it all, and show it.

    Raises:
        OSError: the file cannot be read.
        LocalProtocolError: it is broken, or a capture without AMQP in it.
        CommandError: nothing in it can be read as AMQP.
    """
    data = sys.stdin.buffer.read() if options.file is None else Path(options.file).read_bytes()  # noqa: ASYNC240 - nothing else is going on
    capture = read_capture(data)
    entries = entries_of(capture.records)
    if all(entry.piece.fault is not None for entry in entries):
        name = "stdin" if options.file is None else options.file
        first = f": {describe(entries[0].piece)}" if entries else ""
        raise CommandError(f"{name} has no header and no frame of AMQP in it{first}")
    if options.html:
        title = "AMQP 1.0" if options.file is None else Path(options.file).name
        await write_out(sequence_diagram(entries, title=title, notes=capture.notes).encode())
        return
    for note in capture.notes:
        say(note)
    several = len({entry.conversation for entry in entries}) > 1
    lines: list[str] = []
    for entry in entries:
        lines.append(_line(entry, several))
        if options.octets:
            lines += [f"    {line}" for line in hexdump(redacted(entry.piece))]
    await write_out("".join(f"{line}\n" for line in lines).encode())


def _line(entry: Entry, several: bool) -> str:
    when = "" if entry.at is None else f"{entry.at:11.6f}  "
    number = f"{entry.conversation:<3}" if several else ""
    arrow = "->" if entry.way == ">" else "<-"
    return f"{when}{number}{arrow} {describe(entry.piece)}"
