"""All programs of the table against one server: each in one process, some at a time, and all together when the server restarts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.amqp10.peer.authority import authority
from tests.interop.peers import PEERS, is_missing
from tests.interop.served import Served

from .table import CLIENTS, SCENARIOS, Client

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from tests.interop.rabbitmq import Broker

PROGRAMS: Final = Path(__file__).with_name("programs")
AT_A_TIME: Final = 4
SECONDS: Final = 100.0
"""For a program, until it waits for the restart, and again from there on."""


@dataclass
class Server:
    """A server of both protocols.

    Attributes:
        name: in the table.
        url: with the user guest.
        bare: without a user, where everyone may connect.
        tls_url, tls_bare: the same with TLS.
        restart: ends the server at once and starts it again.
        address: of a queue by its name, for a client of AMQP 1.0.
        make_queue: makes a durable queue that a client of AMQP 1.0 attaches to.
    """

    name: str
    url: str
    bare: str
    tls_url: str
    tls_bare: str
    restart: Callable[[], object]
    address: str
    make_queue: Callable[[str], object]


@contextmanager
def container(folder: Path) -> Generator[Server]:
    """Run two containers: one that asks for a password, and one that does not."""
    # Each client tries a wrong password, all from one host: that must not block the user for the others.
    certificate = authority().issue().file
    locked = Served(
        folder / "store", user="guest:guest", options=("--max-failures", "1000"), certificate=certificate
    )
    opened = Served(folder / "other", user=None, certificate=certificate)
    urls = (locked.url, opened.url, locked.tls_url, opened.tls_url)
    try:
        yield Server("container", *urls, locked.restart, "{}", lambda _: None)
    finally:
        locked.end()
        opened.end()


def rabbitmq(broker: Broker) -> Server:
    """Return a running RabbitMQ 4 as a server of the table."""

    def make_queue(name: str) -> None:
        resource = f'rabbit_misc:r(<<"/">>, queue, <<"{name}">>)'
        broker.evaluate(f'rabbit_amqqueue:declare({resource}, true, false, [], none, <<"guest">>)')

    def restart() -> None:
        broker.evaluate("rabbit:stop()")
        broker.evaluate("rabbit:start()")

    tls_url = broker.tls_url.replace("//", "//guest:guest@")
    bare = broker.url.replace("guest:guest@", "")
    return Server("rabbitmq4", broker.url, bare, tls_url, broker.tls_url, restart, "/queues/{}", make_queue)


@dataclass
class Run:
    """One program, and what it reported."""

    client: Client
    child: subprocess.Popen[str]
    errors: Path
    lines: list[dict[str, str]] = field(default_factory=list)
    waits: threading.Event = field(default_factory=threading.Event)

    def read(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            if line == "restart\n":
                self.waits.set()
            elif line.startswith("{"):
                self.lines.append(json.loads(line))
        self.waits.set()

    def results(self) -> dict[str, dict[str, str]]:
        """What it found, by scenario; what it did not come to is a "no"."""
        found = {line["scenario"]: line for line in self.lines}
        tail = self.errors.read_text(errors="replace")[-1500:]
        missing = {"found": "no", "why": f"the program ended or hung before: {tail}"}
        return {name: found.get(name, missing) for name in SCENARIOS}


def command(client: Client) -> list[str]:
    """Return what runs the program of a client."""
    file = str(PROGRAMS / client.program)
    runners = {
        ".js": ["node"],
        ".rb": ["ruby"],
        ".php": ["php"],
        ".py": [str(PEERS / client.peer / "bin/python")],
    }
    runner = [sys.executable] if client.peer == "amqp-tools" else runners[Path(file).suffix]
    return [*runner, file]


def _start(client: Client, server: Server, folder: Path) -> Run:
    prefix = "clients-" + "".join(each for each in client.name if each.isalnum()) + "-NAME"
    if client.protocol == "1.0":
        for scenario in (*SCENARIOS, "wrong"):
            server.make_queue(prefix.replace("NAME", scenario))
        prefix = server.address.format(prefix)
    urls = (server.tls_url, server.tls_bare) if client.tls else (server.url, server.bare)
    errors = folder / f"{server.name}-{Path(client.program).stem}.txt"
    with errors.open("w") as output:
        child = subprocess.Popen(
            [*command(client), urls[0], prefix, urls[1]],
            env={
                **os.environ,
                "NODE_PATH": str(PEERS / client.peer / "node_modules"),
                "CAFILE": str(authority().cafile),
                "AMQP_TOOLS": str(PEERS / "amqp-tools"),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
        )
    return Run(client, child, errors)


def run(
    server: Server, folder: Path, clients: Sequence[Client] = CLIENTS
) -> dict[str, dict[str, dict[str, str]]]:
    """Run each client that is installed through all scenarios; blocks for about half a minute.

    Returns:
        What was found, by the name of the client and the scenario.
    """
    places, runs, readers = threading.Semaphore(AT_A_TIME), list[Run](), list[threading.Thread]()

    def until_restart(one: Run) -> None:
        if not one.waits.wait(SECONDS):
            one.child.kill()
        places.release()

    try:
        for client in clients:
            if is_missing(client.peer):
                continue
            places.acquire()
            runs.append(one := _start(client, server, folder))
            for target in (one.read, lambda one=one: until_restart(one)):
                readers.append(thread := threading.Thread(target=target, daemon=True))
                thread.start()
        for one in runs:
            if not one.waits.wait(2 * SECONDS):
                one.child.kill()
        server.restart()
        for one in runs:
            assert one.child.stdin is not None
            if one.child.poll() is None:
                one.child.stdin.write("\n")
                one.child.stdin.flush()
        for one in runs:
            one.child.wait(SECONDS)
    finally:
        for one in runs:
            one.child.kill()
            one.child.wait()
        for thread in readers:
            thread.join(10)
        for one in runs:
            for pipe in (one.child.stdin, one.child.stdout):
                assert pipe is not None
                pipe.close()
    return {one.client.name: one.results() for one in runs}
