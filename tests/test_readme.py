"""README.md and the tutorial on a fresh machine: every block works in the order in which it stands, as typed.

The conventions: a block of ``python`` is a file, and its first line says which. A block of ``console`` is typed into one shell, and shows
what is printed; ``...`` at the end of a line stands for anything. A command that ends with ``&`` stays, as job 1. Blocks of ``text`` are
not run here: they install, which ``make dist-check`` does. Only the port is another one than 5672.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .ports import free_port
from .test_docs import ROOT, SECONDS, Block, blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = [ROOT / "README.md", ROOT / "docs" / "tutorial.rst"]


class Shell:
    """Types commands; has at most one job in the background."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.folder = folder
        self.job: subprocess.Popen[str] | None = None
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}

    def type(self, command: str) -> str:
        """What it prints; of one in the background, the first line where it says anything."""
        command = command.replace("5672", str(self.port))
        if command == "kill %1; wait":
            self.kill()
            return ""
        if command.endswith(" &"):
            return self.start(command.removesuffix(" &"))
        done = subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout.replace(str(self.port), "5672")

    def start(self, command: str) -> str:
        assert self.job is None, "the job before it still runs"
        listen = f" --listen amqp://127.0.0.1:{self.port}" if command == "amqp10 serve" else ""
        self.job = subprocess.Popen(
            ["/bin/bash", "-c", f"exec {command}{listen}"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.job.stdout is not None
        printed = self.job.stdout.readline() if listen else ""
        self.wait_for_port()
        return printed.replace(str(self.port), "5672")

    def wait_for_port(self) -> None:
        """As long as somebody takes to type the next command, or a little longer."""
        for _ in range(SECONDS * 20):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError("the job does not listen")

    def kill(self) -> None:
        if self.job is not None:
            self.job.terminate()
            self.job.communicate(timeout=SECONDS)
            self.job = None


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    try:
        yield shell
    finally:
        shell.kill()


def commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each command of a block, and the lines that it prints."""
    for typed in block.text.split("$ ")[1:]:
        command, *printed = typed.rstrip("\n").splitlines()
        yield command, printed


def is_printed(promised: str, line: str) -> bool:
    return line.startswith(promised.removesuffix("...")) if promised.endswith("...") else line == promised


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_works_as_typed(page: Path, shell: Shell) -> None:
    for block in blocks(page):
        if block.kind == "python":
            first, _, _ = block.text.partition("\n")
            name = first.removeprefix("# ")
            assert name.endswith(".py"), f"line {block.line}: the block does not say which file it is"
            (shell.folder / name).write_text(block.text.replace("5672", str(shell.port)))
        elif block.kind == "console":
            for command, promised in commands(block):
                lines = shell.type(command).splitlines()
                assert len(lines) == len(promised), (command, lines)
                assert all(map(is_printed, promised, lines)), (command, lines)
    assert shell.job is None, "the last job is left behind"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_of_the_page_is_run(page: Path) -> None:
    files = {
        block.text.split("\n", 1)[0].removeprefix("# ") for block in blocks(page) if block.kind == "python"
    }
    typed = " ".join(block.text for block in blocks(page) if block.kind == "console")
    assert [name for name in files if name not in typed] == []
