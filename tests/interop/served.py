"""``amqp10 serve`` with a store, that is killed and started again at the same port."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from tests.ports import free_port

from .peers import Process

if TYPE_CHECKING:
    from pathlib import Path


class Served:
    """A container in a process, which speaks AMQP 1.0 and 0-9-1.

    Args:
        store: the file of its messages.
        user: ``name:password`` of the only user; None to let everyone in.
        options: further options of the command.
    """

    def __init__(self, store: Path, *, user: str | None, options: tuple[str, ...] = ()) -> None:
        self.port = free_port()
        listen = ["--listen", f"amqp://127.0.0.1:{self.port}", "--dialect", "0-9-1"]
        login: list[str] = [] if user is None else ["--user", user]
        self.url = f"amqp://{'' if user is None else user + '@'}127.0.0.1:{self.port}"
        self.command = [
            sys.executable,
            "-m",
            "trio_amqp10",
            "serve",
            *listen,
            *login,
            "--store",
            str(store),
            *options,
        ]
        self.start()

    def start(self) -> None:
        self.process = Process(self.command)
        self.process.read_until(b"listening ")

    def restart(self) -> None:
        self.end()
        self.start()

    def end(self) -> None:
        self.process.end(signal.SIGKILL)
