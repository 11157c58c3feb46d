"""The scenarios of the table for a client in Python: each is written once, for any client that has these methods.

A program makes a class of ``Client`` and calls ``main``: ``PROGRAM URL ADDRESS BARE-URL``. It writes one line of JSON for each
scenario; before the last one it writes ``restart`` and waits for a line. Runs without this project.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MESSAGES = 200
LARGE = 1024 * 1024


@dataclass
class Got:
    """A message that was received: its body, the properties it came with, and what settles it."""

    body: bytes
    properties: dict[str, Any]
    accept: Callable[[], object]
    requeue: Callable[[], object]
    redelivered: bool = False
    first: bool = False
    """Whether it is sure that the message was with no other receiver before (AMQP 1.0, 3.2.1)."""


@dataclass
class AbsentError(Exception):
    """The client has no such thing; the table says why."""

    why: str = field(default="")


class Client(ABC):
    """A client on one connection; ``url`` has the user and the password, or neither."""

    waits_for_outcomes = True
    """Whether ``send`` returns when the broker has taken the message."""
    only_releases = False
    """Whether a message that is put back does not count as failed, and so need not be marked (AMQP 1.0, 3.4.5)."""
    heartbeat = 1
    """Seconds, of which two go by in silence."""

    @abstractmethod
    def __init__(self, url: str, heartbeat: int = 0) -> None: ...
    @abstractmethod
    def declare(self, queue: str) -> None:
        """Make sure that the durable queue exists, or attach to it."""

    @abstractmethod
    def send(self, queue: str, body: bytes, properties: dict[str, Any]) -> None: ...
    @abstractmethod
    def get(self, queue: str) -> Got:
        """Wait for the next message, unsettled."""

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Do nothing for so long, as a program that waits does."""

    @abstractmethod
    def close(self) -> None: ...

    def properties(self, number: int) -> dict[str, Any]:
        """Every property that a message can have, with values that depend on the number."""
        raise NotImplementedError


def properties_091(number: int) -> dict[str, Any]:
    """The fourteen properties of 0-9-1, but for cluster-id, and a header of each type that all clients have."""
    return {
        "content_type": "text/plain",
        "content_encoding": "utf-8",
        "headers": {
            "text": f"t{number}",
            "number": number,
            "large": 2**40 + number,
            "negative": -1 - number,
            "true": True,
            "half": number + 0.5,
            "list": [1, "x", [True]],
            "table": {"deep": {"n": number}},
            "none": None,
        },
        "delivery_mode": 1 + number % 2,
        "priority": number % 10,
        "correlation_id": f"c{number}",
        "reply_to": f"r{number}",
        "expiration": str(600_000 + number),
        "message_id": f"m{number}",
        "type": f"y{number}",
        "user_id": "guest",
        "app_id": f"a{number}",
    }


class Client091(Client):
    """A client of 0-9-1 that has every property."""

    def properties(self, number: int) -> dict[str, Any]:
        return properties_091(number)


class Scenarios:
    """What is tried, in this order; a method is a scenario."""

    def __init__(self, client: type[Client], url: str, address: str, bare: str) -> None:
        self.make = client
        self.url = url
        self.bare = bare
        self.address = address

    def queue(self, name: str, client: Client) -> str:
        queue = self.address.replace("NAME", name)
        client.declare(queue)
        return queue

    def with_password(self) -> None:
        self.make(self.url).close()

    def without_password(self) -> None:
        self.make(self.bare).close()

    def wrong_password(self) -> None:
        try:
            client = self.make(self.url.replace(":guest@", ":wrong@"))
            client.declare(self.address.replace("NAME", "wrong"))
        except Exception:
            return
        raise AssertionError("the client was let in")

    def declare(self) -> None:
        client = self.make(self.url)
        for _ in range(2):
            self.queue("declare", client)
        client.close()

    def properties(self) -> None:
        client = self.make(self.url)
        queue = self.queue("properties", client)
        sent = [(b"body %d" % number, client.properties(number)) for number in range(MESSAGES)]
        for body, properties in sent:
            client.send(queue, body, properties)
        for body, properties in sent:
            got = client.get(queue)
            assert got.body == body, f"{got.body!r} instead of {body!r}"
            found = {name: got.properties.get(name) for name in properties}
            wrong = {
                name: (found[name], properties[name])
                for name in properties
                if found[name] != properties[name]
            }
            assert not wrong, f"came and was sent: {wrong}"
            got.accept()
        client.close()

    def outcomes(self) -> None:
        client = self.make(self.url)
        if not client.waits_for_outcomes:
            raise AbsentError
        queue = self.queue("outcomes", client)
        for _ in range(MESSAGES):
            client.send(queue, b"x", {})
        other = self.make(self.url)
        other.declare(queue)
        for _ in range(MESSAGES):
            other.get(queue).accept()
        other.close()
        client.close()

    def requeue(self) -> None:
        client = self.make(self.url)
        queue = self.queue("requeue", client)
        client.send(queue, b"again", {})
        first = client.get(queue)
        assert not first.redelivered
        first.requeue()
        second = client.get(queue)
        assert second.body == b"again"
        marked = second.redelivered or (first.first and not second.first) or self.make.only_releases
        assert marked, "it is not marked as delivered before"
        second.accept()
        client.close()

    def large(self) -> None:
        client = self.make(self.url)
        queue = self.queue("large", client)
        body = bytes(range(256)) * (LARGE // 256)
        client.send(queue, body, {})
        got = client.get(queue)
        assert got.body == body
        got.accept()
        client.close()

    def idle(self) -> None:
        client = self.make(self.url, heartbeat=self.make.heartbeat)
        queue = self.queue("idle", client)
        client.wait(2.5 * self.make.heartbeat)
        client.send(queue, b"still here", {})
        client.get(queue).accept()
        client.close()

    def restart(self) -> None:
        client = self.make(self.url)
        queue = self.queue("restart", client)
        client.send(queue, b"kept", {"delivery_mode": 2, "durable": True})
        print("restart", flush=True)
        sys.stdin.readline()
        deadline = time.monotonic() + 20
        while True:
            try:
                again = self.make(self.url)
                break
            except Exception:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
        again.declare(queue)
        got = again.get(queue)
        assert got.body == b"kept", f"{got.body!r} came instead of b'kept'"
        got.accept()
        again.close()


ORDER = (
    *("with_password", "without_password", "wrong_password", "declare", "properties"),
    *("outcomes", "requeue", "large", "idle", "restart"),
)


def main(client: type[Client]) -> None:
    """Run all scenarios in this process."""
    scenarios = Scenarios(client, *sys.argv[1:4])
    for name in ORDER:
        try:
            getattr(scenarios, name)()
            found = {"scenario": name, "found": "yes"}
        except AbsentError as absent:
            found = {"scenario": name, "found": "absent", "why": absent.why}
        except Exception as fault:
            traceback.print_exc()
            found = {"scenario": name, "found": "no", "why": f"{type(fault).__name__}: {fault}"[:500]}
        print(json.dumps(found), flush=True)
