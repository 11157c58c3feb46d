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
        certificate: a file with the certificate for ``localhost`` and its key; with it, ``tls_url`` is served too.
    """

    def __init__(
        self,
        store: Path,
        *,
        user: str | None,
        options: tuple[str, ...] = (),
        certificate: Path | None = None,
    ) -> None:
        self.port = free_port()
        listen = ["--listen", f"amqp://127.0.0.1:{self.port}", "--dialect", "0-9-1"]
        login: list[str] = [] if user is None else ["--user", user]
        name = "" if user is None else user + "@"
        self.url = f"amqp://{name}127.0.0.1:{self.port}"
        self.last = b"listening amqp"
        if certificate is not None:
            tls_port = free_port()
            self.tls_url = f"amqps://{name}localhost:{tls_port}"
            listen += ["--listen", f"amqps://127.0.0.1:{tls_port}", "--tls-cert", str(certificate)]
            self.last = b"listening amqps"
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
        self.process.read_until(self.last)

    def restart(self) -> None:
        self.end()
        self.start()

    def end(self) -> None:
        self.process.end(signal.SIGKILL)
