"""The source of ``trio_amqp10.blocking``, made of ``trio_amqp10.aio``: ``python -m tests.blocking_source`` writes it.

The two have the same calls, so they are listed once. A call of asyncio becomes one that blocks by leaving out ``async`` and ``await``;
the words of a docstring that are about tasks become words about threads. Lines that end with ``# in trio`` or ``# of trio``, and coroutines that
run in trio, stay as they are. ``tests/test_blocking.py`` holds that the module is what this makes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from trio_amqp10 import aio

MODULE: Final = Path(aio.__file__).with_name("blocking.py")

HEAD: Final = '''\
"""AMQP 1.0 without async: for scripts and threads.

Each call runs in trio, in one thread for the whole process, and the caller waits for it. Any number of threads may use a connection
and its links. An interrupted call, as by Ctrl-C, is cancelled, like the call of the same name in trio.

Each call switches threads twice: a program that sends or receives many thousand messages a second should use
trio itself.

``python -m tests.blocking_source`` generates this module from ``trio_amqp10.aio``: change that, but not this.
"""
'''

WITHOUT_ASYNC: Final = (
    (r"\n\n +Cancelled: [^\n]*(?:\n +(?!\"\"\")\S[^\n]*)*", ""),  # what is cancelled is interrupted here
    (r'("""[^"\n]+)\n +"""', r'\1"""'),
    (r"StopAsyncIteration(?!:  # of trio)", "StopIteration"),
    (r"__aiter__", "__iter__"),
    (r"def __anext__", "def __next__"),
    (r"async def (?!_next)", "def "),
    (r"async (with|for)", r"\1"),
    (r"await (?!self\._inner\.__anext__)", ""),
)
"""How a module for asyncio becomes one whose calls block."""

CHANGES: Final = (
    *WITHOUT_ASYNC,
    (r" Cancelled: the outcome is given anyway\.", ""),
    (r"  # noqa: ASYNC109[^\n]*", ""),
    (r"Opening\[(\w+)\]", r"\1"),
    (r"return Opening\(", "return opened("),
    (
        r"Opened, OpenedSender, Opening, dialled, guest_mode, inner_of",
        "Opened, OpenedSender, dialled, inner_of, opened",
    ),
    (r'    "(?:Opening|guest_mode)",\n', ""),
    (r"asyncio_bridge", "blocking_bridge"),
    (r"asyncio_management_generated", "blocking_management_generated"),
    (r"tasks of its loop", "threads"),
    (r"<aio ", "<blocking "),
    (r"Raises \(on entering\)", "Raises"),
)


def source() -> str:
    """The text of the module."""
    text = Path(aio.__file__).read_text()
    return changed(HEAD + text[text.index("\nfrom __future__") :], CHANGES)


def changed(text: str, changes: tuple[tuple[str, str], ...]) -> str:
    """The text after these changes, each of which is needed."""
    for pattern, replacement in changes:
        text, times = re.subn(pattern, replacement, text)
        assert times, pattern
    return text


def write(module: Path, text: str) -> None:
    """Write a module, in the form that the project has."""
    module.write_text(text)
    for command in (["check", "--fix", "--quiet"], ["format", "--quiet"]):
        subprocess.run([str(Path(sys.executable).with_name("ruff")), *command, str(module)], check=True)


if __name__ == "__main__":
    write(MODULE, source())
