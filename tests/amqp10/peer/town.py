"""Peers at URLs that come and go, for tests of connections that come back."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.net import dialling_base

from .helpers import Node, acceptor

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    import pytest

    from trio_amqp10.amqp10.peer.connection import Connection
    from trio_amqp10.net.urls import Url

EVEN = amqp.Backoff(initial=1, factor=2, maximum=5, jitter=False)
URL = "amqp://127.0.0.1:1"


class Still(Node):
    """A node whose sources stay attached when they have nothing to send any more."""

    async def send(self, link: amqp.IncomingSender) -> None:
        async with link.accept() as sender:
            try:
                for body in self.bodies:
                    self.outcomes.append(await sender.transmit(body))
            except trio.BrokenResourceError:
                return
            while not sender.closed:
                await sender.wait()


class Town:
    """Peers at URLs, which can be up or down; every connection to them is in memory.

    Attributes:
        handle: what answers at every URL that is up.
        up: whether anybody answers.
        closed: URLs at which nobody answers even so.
        dialled: when and where to, each time that somebody tried.
        conns: the peers' ends, newest last.
        streams: both ends of every transport, ours first.
        options: of whoever accepts.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, handle: Any = None, **options: Any) -> None:
        self.handle: Any = handle or amqp.Container("town").handle
        self.up = True
        self.closed: set[str] = set()
        self.dialled: list[tuple[float, str]] = []
        self.conns: list[Connection] = []
        self.streams: list[tuple[Any, Any]] = []
        self.options = options
        self.answer: Callable[[trio.abc.Stream], Any] | None = None
        self._began = 0.0
        self._monkeypatch = monkeypatch

    @property
    def times(self) -> list[float]:
        """When somebody dialled."""
        return [time for time, _ in self.dialled]

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Town]:
        self._began = trio.current_time()
        async with trio.open_nursery() as nursery:

            async def connect(url: Url) -> trio.abc.Stream:
                await trio.lowlevel.checkpoint()
                self.dialled.append((round(trio.current_time() - self._began, 3), str(url)))
                if not self.up or str(url) in self.closed:
                    raise OSError("nobody there")
                ours, theirs = memory_stream_pair()
                self.streams.append((ours, theirs))
                if self.answer is None:
                    nursery.start_soon(acceptor(**self.options).run, theirs, self._handle)
                else:
                    nursery.start_soon(self.answer, theirs)
                return ours

            self._monkeypatch.setattr(dialling_base, "connect", connect)
            yield self
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    async def _handle(self, conn: Connection) -> None:
        self.conns.append(conn)
        await self.handle(conn)

    async def lose(self) -> None:
        """The transport that there is breaks, once all that was said has been read."""
        await wait_all_tasks_blocked()
        conn = self.conns[-1]
        conn.pump.cancel()
        await conn.pump.finished.wait()
        await wait_all_tasks_blocked()

    async def go_down(self) -> None:
        """It breaks, and nobody answers any more."""
        self.up = False
        await self.lose()


@asynccontextmanager
async def visiting(
    monkeypatch: pytest.MonkeyPatch, handle: Any = None, **options: Any
) -> AsyncGenerator[tuple[Town, Connection]]:
    """A town that is up, and a connection to it that comes back."""
    async with (
        Town(monkeypatch, handle).open() as town,
        amqp.open_connection(URL, **{"reconnect": EVEN, **options}) as conn,
    ):
        yield town, conn
