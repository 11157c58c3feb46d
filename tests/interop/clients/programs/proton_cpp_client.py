"""Qpid Proton for C++ as a client of the table: a process for each connection, which ``proton_cpp_client.cpp`` runs."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from scenarios import Client, Got, main

TREE = Path(os.environ["PROTON_CPP"])
LIBRARIES = [str(each.parent) for each in TREE.glob("usr/lib/*/libqpid-proton-cpp.so.12")]


class ProtonCpp(Client):
    only_releases = True
    heartbeat = 2  # it announces half of it, and a container takes no less than a second

    def __init__(self, url: str, heartbeat: int = 0) -> None:
        parts = urlsplit(url)
        self.child = subprocess.Popen(
            [str(TREE / "client")],
            env={"LD_LIBRARY_PATH": ":".join(LIBRARIES)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        user, password = unquote(parts.username or "-"), unquote(parts.password or "-")
        mechanism = "PLAIN" if parts.username else "ANONYMOUS"
        try:
            self.ask(f"connect {parts.hostname}:{parts.port} {mechanism} {user} {password} {heartbeat}")
        except BaseException:
            self.end()
            raise

    def ask(self, line: str) -> list[str]:
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        how, *words = self.child.stdout.readline().split() or ["error", "the process has ended"]
        if how != "ok":
            raise ConnectionError(" ".join(words))
        return words

    def properties(self, number: int) -> dict[str, Any]:
        """The process has the values."""
        return {"number": number}

    def declare(self, queue: str) -> None:
        self.ask(f"attach {queue}")

    def send(self, queue: str, body: bytes, properties: dict[str, Any]) -> None:
        [outcome] = self.ask(f"send {queue} {body.hex()} {properties.get('number', -1)}")
        assert outcome == "accepted", outcome

    def get(self, queue: str) -> Got:
        body, number, count, first = self.ask(f"get {queue}")
        return Got(
            bytes.fromhex(body),
            {"number": int(number)},
            lambda: self.ask("accept"),
            lambda: self.ask("modify"),
            int(count) > 0,
            first == "1",
        )

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def close(self) -> None:
        self.ask("close")
        self.end()

    def end(self) -> None:
        self.child.kill()
        self.child.communicate()


if __name__ == "__main__":
    main(ProtonCpp)
