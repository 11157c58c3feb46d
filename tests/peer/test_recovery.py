"""Connections that come back: what waits, what is attached again, what is given up (2.4, 2.6.5)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.peer import dial

from .helpers import acceptor

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import pytest

    from trio_amqp10.peer.connection import Connection
    from trio_amqp10.peer.urls import Url


class Town:
    """Peers at URLs, which can be up or down; every connection to them is in memory.

    Attributes:
        container: what answers at every URL that is up.
        up: whether anybody answers.
        dialled: where to, each time that somebody tried.
        conns: the peers' ends, newest last.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.handle: Any = amqp.Container("town").handle
        self.up = True
        self.dialled: list[tuple[float, str]] = []
        self.conns: list[Connection] = []
        self.streams: list[trio.abc.Stream] = []
        self.sasl = amqp.sasl.Server()
        self._monkeypatch = monkeypatch

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Town]:
        async with trio.open_nursery() as nursery:

            async def connect(url: Url) -> trio.abc.Stream:
                await trio.lowlevel.checkpoint()
                self.dialled.append((trio.current_time(), str(url)))
                if not self.up:
                    raise OSError("nobody there")
                ours, theirs = memory_stream_pair()
                self.streams.append(theirs)
                nursery.start_soon(acceptor(sasl=self.sasl).run, theirs, self._handle)
                return ours

            self._monkeypatch.setattr(dial, "connect", connect)
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


EVEN = amqp.Backoff(initial=1, factor=2, maximum=5, jitter=False)
URL = "amqp://127.0.0.1:1"


# -- the connection -----------------------------------------------------------------------------


async def test_sends_wait_until_the_peer_is_back(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async with (
        Town(monkeypatch).open() as town,
        amqp.open_connection(URL, reconnect=EVEN) as conn,
        conn.open_sender("q") as sender,
        conn.open_receiver("q") as receiver,
    ):
        await sender.send("one")
        assert (await receiver.receive()).message.body == "one"
        town.up = False
        await town.lose()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.send, "two")
            await trio.sleep(10)
            assert conn.closed is False
            assert sender.closed is False
            town.up = True
        assert (await receiver.receive()).message.body == "one"  # which it had not settled
        second = await receiver.receive()
        assert second.message.body == "two"
        second.accept()
    assert [time for time, _ in town.dialled] == [0, 1, 3, 7, 12]
