"""The command as a process: started, read, ended by its id. And a server that all tests of a module share.

Processes are forks of one that has imported the command (``quick_start``). ``AMQP10`` starts one as a user does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from . import without_a_process
from .forks import forking

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

AMQP10 = [sys.executable, "-m", "trio_amqp10"]
ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "error", "COLUMNS": "200"}
SECONDS = 30

_names = count()
_quick: list[str] = []


@pytest.fixture(scope="session", autouse=True)
def quick_start() -> Iterator[None]:
    """The server that forks commands, for as long as there are tests."""
    with forking(environment=ENVIRONMENT) as _quick[:]:
        yield


def amqp10(*arguments: str, stdin: bytes = b"", **variables: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end, with these variables ``AMQP10_...``."""
    return subprocess.run(
        [*_quick, *arguments],
        input=stdin,
        capture_output=True,
        timeout=SECONDS,
        env=ENVIRONMENT | variables,
        check=False,
    )


def done(*arguments: str, stdin: bytes = b"", **variables: Any) -> bytes:
    """Run a command that has to succeed, and say nothing on stderr; its stdout."""
    result = amqp10(*arguments, stdin=stdin, **variables)
    assert result.stderr == b""
    assert result.returncode == 0
    return result.stdout


def failed(*arguments: str, stdin: bytes = b"", code: int = 1, **variables: Any) -> str:
    """Run a command that has to fail with one line on stderr; that line."""
    result = amqp10(*arguments, stdin=stdin, **variables)
    assert result.returncode == code
    lines = result.stderr.decode().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


def start(*arguments: str, **options: object) -> subprocess.Popen[bytes]:
    """Start a command; whoever starts it ends it."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([*_quick, *arguments], env=ENVIRONMENT, **pipes)  # type: ignore[call-overload, no-any-return]


def misused(*arguments: str, **variables: Any) -> str:
    """Run a command whose command line is wrong; what it says about that."""
    result = amqp10(*arguments, **variables)
    assert result.returncode == 2
    assert result.stdout == b""
    return result.stderr.decode().splitlines()[-1].removeprefix("Error: ")


def interrupt(process: subprocess.Popen[bytes], sig: signal.Signals = signal.SIGTERM) -> tuple[bytes, bytes]:
    """Send a signal, and wait for the end."""
    process.send_signal(sig)
    return process.communicate(timeout=SECONDS)


def read_terminal(ours: int) -> bytes:
    """All that was written to it, up to the end of the process."""
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:
        pass  # the terminal is gone with the process
    os.close(ours)
    return shown


def next_listener(server: subprocess.Popen[bytes]) -> str:
    """The URL of the listener that it reports next."""
    assert server.stdout is not None
    return server.stdout.readline().decode().removeprefix("listening ").strip()


@contextmanager
def server_of(
    *arguments: str, listen: str = "amqp://127.0.0.1:0"
) -> Generator[tuple[str, subprocess.Popen[bytes]]]:
    """``amqp10 serve`` on a free port: its URL and its process, which has to end well."""
    process = start("serve", "--listen", listen, *arguments)
    try:
        yield next_listener(process), process
        interrupt(process)
        assert process.returncode == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


@contextmanager
def serving(*arguments: str, listen: str = "amqp://127.0.0.1:0") -> Generator[str]:
    """``amqp10 serve`` on a free port; its URL."""
    with server_of(*arguments, listen=listen) as (url, _):
        yield url


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as served:
        yield served


@pytest.fixture
def queue(url: str) -> str:
    """A queue that no other test uses."""
    return f"{url}/queue-{next(_names)}"


@pytest.fixture
def users(tmp_path: Path) -> str:
    """A file of users with one user."""
    file = str(tmp_path / "users")
    added = without_a_process.done(
        "passwd", file, "ada", "--stdin", "--iterations", "4096", stdin=b"enigma\n"
    )
    assert added == b"added ada\n"
    return file


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an authority, and certificates that it signed."""
    directory = tmp_path_factory.mktemp("tls")
    without_a_process.made(directory)
    return directory
