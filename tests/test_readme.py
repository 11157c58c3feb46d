"""README.md and the tutorial on a fresh machine: every block works in the order in which it stands, as typed.

The conventions: a block of ``python`` is a file, and its first line says which. A block of ``console`` is typed into one shell, and shows
what is printed; ``...`` at the end of a line stands for anything. A command that ends with ``&`` stays, as job 1. Blocks of ``text`` are
not run here: they install, which ``make dist-check`` does. Only the port is another one than 5672.

A comment before a file names what it runs beside: ``beside RabbitMQ 4`` is the emulator here, and a RabbitMQ in ``tests/interop``; ``in Spark`` is run
by ``tests/spark``.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trio_amqp10.testing import rabbitmq

from .ports import free_port
from .test_docs import ROOT, SECONDS, Block, blocks
from .tools.cli.forks import amqp10_that_forks

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = [ROOT / "README.md", ROOT / "docs" / "tutorial.rst"]


PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
BESIDE_RABBITMQ = "<!-- beside RabbitMQ 4 at localhost:5672 -->"
IN_SPARK = "<!-- in Spark -->"


def with_comment(page: Path, comment: str) -> list[Block]:
    """The blocks of files that a comment stands before."""
    lines = page.read_text().splitlines()
    return [block for block in blocks(page) if block.kind == "python" and lines[block.line - 2] == comment]


def name_of(block: Block) -> str:
    """The name of a file, which its first line says."""
    name = block.text.partition("\n")[0].removeprefix("# ")
    assert name.endswith(".py"), f"line {block.line}: the block does not say which file it is"
    return name


class Shell:
    """Types commands; has at most one job in the background."""

    def __init__(self, folder: Path, *, path: str = PATH, port: int | None = None) -> None:
        self.port = free_port() if port is None else port
        self.folder = folder
        self.job: subprocess.Popen[str] | None = None
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


@pytest.fixture(scope="module")
def path() -> Iterator[str]:
    """Where commands are found: ``amqp10`` starts quickly."""
    with amqp10_that_forks() as path:
        yield path


@pytest.fixture
def shell(tmp_path: Path, path: str) -> Iterator[Shell]:
    shell = Shell(tmp_path, path=path)
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


def type_all(block: Block, shell: Shell, not_here: frozenset[str] = frozenset()) -> None:
    """Type the commands of a block but those of these files, and see that each prints what the page shows."""
    for command, promised in commands(block):
        if any(name in command for name in not_here):
            continue
        lines = shell.type(command).splitlines()
        assert len(lines) == len(promised), (command, lines)
        assert all(map(is_printed, promised, lines)), (command, lines)


def type_beside(page: Path, folder: Path, port: int) -> int:
    """Type what the page types beside a RabbitMQ; return how many files there were."""
    shell = Shell(folder, port=port)
    files = with_comment(page, BESIDE_RABBITMQ)
    for file in files:
        (folder / name_of(file)).write_text(file.text.replace("5672", str(port)))
        for block in blocks(page):
            if block.kind == "console" and name_of(file) in block.text:
                type_all(block, shell)
    return len(files)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_works_as_typed(page: Path, shell: Shell) -> None:
    elsewhere = {name_of(block) for block in with_comment(page, BESIDE_RABBITMQ)}
    in_spark = frozenset(name_of(block) for block in with_comment(page, IN_SPARK))
    for block in blocks(page):
        if block.kind == "python":
            (shell.folder / name_of(block)).write_text(block.text.replace("5672", str(shell.port)))
        elif block.kind == "console" and not any(name in block.text for name in elsewhere):
            type_all(block, shell, in_spark)
    assert shell.job is None, "the last job is left behind"


def test_readme_works_beside_the_emulator_of_rabbitmq_4(tmp_path: Path) -> None:
    with rabbitmq() as url:
        assert type_beside(PAGES[0], tmp_path, int(url.rpartition(":")[2])) == 1


def test_readme_is_short() -> None:
    assert len(PAGES[0].read_text().split()) <= 900


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_of_the_page_is_run(page: Path) -> None:
    files = {name_of(block) for block in blocks(page) if block.kind == "python"}
    typed = " ".join(block.text for block in blocks(page) if block.kind == "console")
    assert {name for name in files if name not in typed} == set()


def test_no_page_installs_from_an_index() -> None:
    pages = [
        ROOT / "README.md",
        ROOT / "docs" / "index.rst",
        *(ROOT / "docs" / "how-to").rglob("*.rst"),
        PAGES[1],
    ]
    wrong = [
        page.name
        for page in pages
        if re.search(r"pip install [\"'`]*(trio-amqp10|\.\[|\.`)", page.read_text())
    ]
    assert wrong == []
