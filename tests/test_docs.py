"""Every code block of docs/ is run, page by page, against a peer that is really there.

The conventions, so that blocks can be read as they are:

- Blocks of ``python`` share the names of their page, in order. ``trio.run(main)`` runs ``main``; functions called
  ``test_...`` are run as tests.
- ``localhost:5672`` is a container with queues and a function ``upper``, for clients of 1.0 and of 0-9-1; ``127.0.0.1:5672`` is the reader's own service: a
  block with ``serve(`` on it stays in the background until the end of the page, or the next one.
- Blocks of ``console`` are commands after ``$``, each with what it prints on stdout.
- ``It prints ``, at the beginning of a line, is followed by a line that the page's programs print.
- Blocks of ``text`` are not run.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import logging
import os
import re
import subprocess
import textwrap
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10 import blocking

from .conftest import run_limited
from .ports import free_port
from .tools.cli.forks import amqp10_that_forks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.rst"))]
ELSEWHERE = {
    "README.md": "tests/test_readme.py",
    "docs/tutorial.rst": "tests/test_readme.py",
    "docs/how-to/spark.rst": "tests/spark/test_docs.py",
    "docs/how-to/amqp091.rst": "tests/amqp091/client/test_docs.py",
    "docs/how-to/pika.rst": "tests/interop/test_docs_091.py",
    "docs/how-to/http-api.rst": "tests/http/test_docs.py",
}
"""Pages that need more than these tests may ask for, and who reads them."""
FAULTS = {"docs/how-to/from-celery.rst"}
"""Pages that show what becomes of a handler that fails."""
KINDS = {"python", "console", "text"}
SECONDS = 100


@dataclass(frozen=True)
class Block:
    """A code block and where it stands."""

    kind: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """The code blocks of a page, in order."""
    text = page.read_text()
    return list(fenced(text) if page.suffix == ".md" else directives(text))


def fenced(text: str) -> Iterator[Block]:
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield Block(found[1], found[2], text.count("\n", 0, found.start(2)))


def directives(text: str) -> Iterator[Block]:
    for found in re.finditer(r"^\.\. code-block:: (\w+)\n\n((?:   .*\n|\n)+)", text, re.MULTILINE):
        yield Block(found[1], textwrap.dedent(found[2]), text.count("\n", 0, found.start(2)))


def promises(page: Path) -> list[str]:
    """Lines of which the page says that its programs print them."""
    return re.findall(r"^It prints ``(.*?)``[. ]", page.read_text(), re.MULTILINE)


class Reader:
    """Reads a page from top to bottom, and does what it says."""

    def __init__(self, page: Path, peer: amqp.Listener, path: str, nursery: trio.Nursery) -> None:
        self.page = page
        self.peer = peer
        self.path = path
        self.nursery = nursery
        self.port = 0
        self.names: dict[str, Any] = {"__name__": page.stem}
        self.loop = asyncio.Runner()

    async def read(self, block: Block) -> None:
        with trio.fail_after(SECONDS):
            if block.kind == "python":
                await self.run_python(block)
            elif block.kind == "console":
                await self.run_console(block)

    def addressed(self, text: str) -> str:
        """With the ports that there are, in place of those that are written."""
        text = text.replace("localhost:5672", f"127.0.0.1:{self.peer.port}")
        return text.replace("127.0.0.1:5672", f"127.0.0.1:{self.port}")

    async def run_python(self, block: Block) -> None:
        serves = "serve(" in block.text and "127.0.0.1:5672" in block.text
        if serves:
            self.port = free_port()
        text = self.addressed(block.text)
        program = re.sub(r"^trio\.run\(main\)$", "", text, flags=re.MULTILINE)
        before = dict(self.names)
        # Line numbers as on the page, for whoever has to find the block that failed.
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # of cells of notebooks
        code = compile("\n" * block.line + program, self.page, "exec", flags, dont_inherit=True)
        if "import blocking" in program or self.runs_asyncio(block):
            # It waits for the peer, which is in this thread.
            await trio.to_thread.run_sync(self.run_in_thread, code)
        else:
            exec(code, self.names)
        if program != text:
            if serves:
                await self.leave_running(self.names["main"])
            else:
                await self.names["main"]()
        for name, item in list(self.names.items()):
            if name.startswith("test_") and item is not before.get(name):
                if inspect.iscoroutinefunction(item):
                    await item()
                else:
                    await trio.to_thread.run_sync(item)

    def runs_asyncio(self, block: Block) -> bool:
        return "asyncio.run(" in block.text or self.page.stem == "notebooks"

    def run_in_thread(self, code: CodeType) -> None:
        """Runs a block; if it awaits, on one loop of asyncio for the whole page."""
        coroutine = eval(code, self.names)
        if coroutine is not None:
            self.loop.run(coroutine)

    async def leave_running(self, main: Any) -> None:
        self.nursery.start_soon(main)
        while True:
            try:
                stream = await trio.open_tcp_stream("127.0.0.1", self.port)
            except OSError:
                await trio.sleep(
                    0.01
                )  # no task of ours will tell: the page starts the service in its own way
            else:
                await stream.aclose()
                return

    async def run_console(self, block: Block) -> None:
        commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
        for command, _, printed in (one.partition("\n") for one in commands):
            done = await trio.to_thread.run_sync(
                partial(
                    subprocess.run,
                    ["/bin/sh", "-c", self.addressed(command)],
                    env={**os.environ, "PATH": self.path},
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=SECONDS,
                )
            )
            assert done.returncode == 0, f"{command}: {done.stderr}"
            assert done.stdout.rstrip("\n") == printed.rstrip("\n"), command


def peer() -> amqp.Container:
    """What the pages know at ``localhost:5672``."""
    container = amqp.Container("localhost")
    container.add_management()

    @container.function("upper")
    async def upper(message: amqp.Message) -> str:
        asked = (
            message.body.decode() if isinstance(message.body, bytes) else str(message.body)
        )  # data, from 0-9-1
        return asked.upper()

    return container


def connections_of(monkeypatch: pytest.MonkeyPatch) -> list[blocking.Connection]:
    """Return a list of those that are dialled from now on: a page may leave one to the end of its process."""
    made: list[blocking.Connection] = []

    def connect(*where: Any, **options: Any) -> blocking.Connection:
        made.append(blocking.open_connection(*where, **options))
        return made[-1]

    monkeypatch.setattr(blocking, "connect", connect)
    return made


@pytest.fixture(autouse=True)
def _levels_as_before() -> Iterator[None]:
    """Pages set levels of loggers."""
    loggers = [logging.getLogger(name) for name in ("trio_amqp10", "trio_amqp10.frames")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.fixture(scope="module")
def path() -> Iterator[str]:
    """Where commands are found: ``amqp10`` starts quickly."""
    with amqp10_that_forks() as path:
        yield path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_are_of_a_known_kind(page: Path) -> None:
    assert {block.kind for block in blocks(page)} <= KINDS
    written = page.read_text()
    marks = written.count("\n```") // 2 if page.suffix == ".md" else written.count(".. code-block::")
    assert len(blocks(page)) == marks


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name, marks=[pytest.mark.logs_errors] if name in FAULTS else [])
        for page in PAGES
        if {block.kind for block in blocks(page)} & {"python", "console"}
        and (name := str(page.relative_to(ROOT))) not in ELSEWHERE
    ],
)
@pytest.mark.trio(run=partial(run_limited, limit=10 * SECONDS))  # each block has SECONDS
async def test_page_does_what_it_says(
    page: Path,
    path: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)  # a page may write files
    monkeypatch.setenv("OCTETS", "20000000")  # of programs/transfer.rst, in place of 2 GiB
    left_open = connections_of(monkeypatch)
    sasl = amqp.sasl.Server(users={"guest": "guest"}, anonymous=True)
    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = await nursery.start(
            partial(peer().serve, "amqp://127.0.0.1:0", sasl=sasl, dialects="all")
        )
        reader = Reader(page, listeners[0], path, nursery)
        for block in blocks(page):
            await reader.read(block)
        await trio.to_thread.run_sync(reader.loop.close)
        for conn in left_open:
            await trio.to_thread.run_sync(conn.close)
        nursery.cancel_scope.cancel()
    promised = promises(page)
    shown = capsys.readouterr().out.splitlines()
    assert [line for line in promised if line not in shown and not line.endswith("...")] == []


@pytest.mark.parametrize(("page", "reader"), ELSEWHERE.items())
def test_page_that_is_read_elsewhere_is_named_there(page: str, reader: str) -> None:
    assert f'"{Path(page).name}"' in (ROOT / reader).read_text()


@pytest.mark.parametrize(
    "word", ["prefetch", "confirm", "retry", "nack", "dead letter", "routing key", "virtual host", "policy"]
)
def test_word_of_rabbitmq_is_found_in_a_guide(word: str) -> None:
    guides = [ROOT / "docs/how-to" / name for name in ("amqp091.rst", "from-rabbitmq.rst", "pika.rst")]
    assert any(word in guide.read_text().lower() for guide in guides)
