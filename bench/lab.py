"""What the rows measure with: how much, which peers are there, and the servers that several rows share."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

import trio

from tests.interop import rabbitmq
from tests.interop.peers import PEERS, is_missing
from trio_amqp10 import amqp091
from trio_amqp10.tools.cli.certs import CertsOptions, certs

from .processes import Server

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from .job import Job

_names = count(1)


class Lab:
    """``with`` one, rows are measured.

    Args:
        scale: a fraction of the messages of a complete measurement, or of links, connections and depth.
        without: peers that are not asked, even if they are there.
    """

    def __init__(self, scale: float = 1.0, *, without: frozenset[str] = frozenset()) -> None:
        self.scale = scale
        self._without = without
        self._stack = ExitStack()
        self._rabbitmq: Server | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, failure, trace)

    def missing(self, peer: str) -> str | None:
        """Why a peer is left out, in words, or None."""
        if peer in self._without:
            return f"{peer} is left out, as was asked for"
        return is_missing(peer)

    def has(self, peer: str) -> bool:
        """Whether a peer is to be measured."""
        return self.missing(peer) is None

    def count(self, whole: int, least: int = 40) -> int:
        """So many at this scale; the same at each where ``whole`` is less than ``least``."""
        return max(min(whole, least), round(whole * self.scale))

    def points(self, whole: Sequence[int]) -> Sequence[int]:
        """Of a curve: all of it in a complete measurement, otherwise its ends."""
        return whole if self.scale == 1 else (whole[0], whole[-1])

    def rabbitmq(self) -> Server:
        """RabbitMQ 4 as it comes, with a scheduler for each processor; one for all rows."""
        if self._rabbitmq is None:
            broker = rabbitmq.start(4, peers=PEERS, schedulers=None)
            self._stack.callback(broker.stop)
            self._rabbitmq = Server(broker.url, broker.processes[-1].pid)
        return self._rabbitmq

    def secured(self, job: Job) -> Job:
        """The same over TLS, with a certificate that is made here."""
        folder = Path(self._stack.enter_context(TemporaryDirectory()))
        certs(
            CertsOptions(
                directory=str(folder), hosts=("127.0.0.1", "localhost"), clients=(), days=1, renew=False
            )
        )
        both = folder / "both.pem"
        both.write_bytes((folder / "server-key.pem").read_bytes() + (folder / "server.pem").read_bytes())
        return replace(job, certfile=str(both), cafile=str(folder / "ca.pem"))


def new_queue(server: Server, *, kind: str | None = None, durable: bool = True) -> str:
    """Declare a queue by 0-9-1, and give its name; ``kind`` as RabbitMQ's ``x-queue-type``."""
    name = f"bench-{next(_names)}"
    arguments: dict[str, Any] = {} if kind is None else {"x-queue-type": kind}

    async def declare() -> None:
        async with amqp091.open_connection(server.url) as connection, connection.open_channel() as channel:
            await channel.declare_queue(name, durable=durable, arguments=arguments)

    trio.run(declare)
    return name


def delete_queue(server: Server, name: str) -> None:
    """So that what is left in it costs nobody anything."""

    async def delete() -> None:
        async with amqp091.open_connection(server.url) as connection, connection.open_channel() as channel:
            await channel.delete_queue(name)

    trio.run(delete)
