"""amqp-tools, the commands of rabbitmq-c, as a client of the table: each call is a command."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

from scenarios import AbsentError, Client, Got, main

TREE = Path(os.environ["AMQP_TOOLS"])
LIBRARIES = [str(each.parent) for each in TREE.glob("usr/lib/*/librabbitmq.so.4")]


class Tools(Client):
    waits_for_outcomes = False

    def __init__(self, url: str, heartbeat: int = 0) -> None:
        if heartbeat:
            raise AbsentError
        self.url = url
        self.run("amqp-declare-queue", "--queue", f"clients-amqptools-{os.getpid()}")

    def run(
        self, command: str, *arguments: str, body: bytes | None = None, fine: tuple[int, ...] = (0,)
    ) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(
            [str(TREE / "usr/bin" / command), "--url", self.url, *arguments],
            env={"LD_LIBRARY_PATH": ":".join(LIBRARIES)},
            input=body,
            stdin=subprocess.DEVNULL if body is None else None,
            capture_output=True,
            timeout=20,
            check=False,
        )
        assert done.returncode in fine, (
            f"{command} ended with {done.returncode}: {done.stderr.decode()[-300:]}"
        )
        return done

    def declare(self, queue: str) -> None:
        self.run("amqp-declare-queue", "--durable", "--queue", queue)

    def send(self, queue: str, body: bytes, properties: dict[str, Any]) -> None:
        options = [
            f"--{option}={properties[name]}"
            for option, name in (("content-type", "content_type"), ("content-encoding", "content_encoding"))
            if name in properties
        ]
        options += [f"--header={name}: {value}" for name, value in properties.get("headers", {}).items()]
        durable = ["--persistent"] if properties.get("delivery_mode") == 2 else []
        self.run("amqp-publish", "--routing-key", queue, *options, *durable, body=body)

    def get(self, queue: str) -> Got:
        deadline = time.monotonic() + 10
        while (done := self.run("amqp-get", "--queue", queue, fine=(0, 2))).returncode:
            assert time.monotonic() < deadline, "no message came in 10 s"
            time.sleep(0.05)
        return Got(done.stdout, {}, lambda: None, self._requeue)

    def _requeue(self) -> None:
        raise AbsentError

    def properties(self, number: int) -> dict[str, Any]:
        raise AbsentError

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def close(self) -> None:
        pass


if __name__ == "__main__":
    main(Tools)
