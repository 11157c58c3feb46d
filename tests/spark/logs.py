"""A peer with numbered messages that it keeps, like the streams of RabbitMQ 4."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any, Self

import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.spec.messaging import Source

FILTER = amqp.Symbol("rabbitmq:stream-offset-spec")
CHUNK = 7
"""The messages of a block: ``last`` begins with the last block, not message."""


@dataclass
class Log:
    """Messages by number."""

    messages: dict[int, amqp.Message] = field(default_factory=dict[int, amqp.Message])
    end: int = 0
    times: dict[int, int] = field(default_factory=dict[int, int])
    """When messages came, in milliseconds since 1970."""

    def add(self, *bodies: bytes) -> None:
        for body in bodies:
            self.messages[self.end] = amqp.Message(
                body, annotations={"x-stream-offset": amqp.ULong(self.end)}
            )
            self.times[self.end] = time.time_ns() // 1_000_000
            self.end += 1

    def forget(self, below: int) -> None:
        for number in [each for each in self.messages if each < below]:
            del self.messages[number]

    def begin(self, spec: Any) -> int:
        first = min(self.messages, default=self.end)
        if isinstance(spec, amqp.Timestamp):
            return min((each for each in self.messages if self.times[each] >= spec), default=self.end)
        if spec == "first":
            return first
        return max(first, self.end - CHUNK) if spec == "last" else int(spec)


class LogServer:
    """A server of ``Logs`` at ``server.url``: ``with LogServer() as server``."""

    def __init__(self) -> None:
        self.logs: dict[str, Log] = {}
        self.attached = 0

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=trio.run, args=(self._main, ready), daemon=True)
        self._thread.start()
        assert ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._token.run_sync_soon(self._nursery.cancel_scope.cancel)
        self._thread.join(10)

    def address(self, name: str) -> str:
        """Return the address of a log, which is added if it does not exist."""
        self.logs.setdefault(name, Log())
        return name

    def fill(self, name: str, count: int) -> None:
        """Add messages whose bodies are their numbers."""
        log = self.logs[self.address(name)]
        log.add(*[b"%d" % number for number in range(log.end, log.end + count)])

    def renew(self, name: str) -> None:
        """Replace a log with an empty one at the same address."""
        self.logs[name] = Log()

    async def _main(self, ready: threading.Event) -> None:
        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as self._nursery:
            listeners: list[amqp.Listener] = await self._nursery.start(
                amqp.serve, self._converse, "amqp://127.0.0.1:0"
            )
            self.url = listeners[0].url
            ready.set()

    async def _converse(self, connection: amqp.Connection) -> None:
        async with trio.open_nursery() as nursery:
            async for link in connection.incoming_links():
                nursery.start_soon(self._send, link)

    async def _send(self, link: Any) -> None:
        asked: Source = link.remote.source
        log = self.logs[str(asked.address)]
        self.attached += 1
        try:
            async with link.accept(source=Source(address=asked.address, filter=asked.filter)) as sender:
                spec = (asked.filter or {})[FILTER].value
                at = log.begin(spec)
                while True:
                    await sender.wait_sendable()
                    if at not in log.messages and at < log.end:
                        at += 1
                    elif at < log.end:
                        sender.send_nowait(log.messages[at], settled=True)
                        at += 1
                    else:
                        sender.give_back()
                        await trio.sleep(0.01)
        except (amqp.AmqpError, trio.ClosedResourceError):
            return
