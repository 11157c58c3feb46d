"""A container that dies at a commit of its store, or between two, and restarts.

Nothing that it does when it dies gets anywhere: not to its store, and not to its peers.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.listen import Acceptor
from trio_amqp10.broker.stores import MemoryStore
from trio_amqp10.net import dialling_base
from trio_amqp10.testing import Line, open_network

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable

    import pytest

    from trio_amqp10.broker.stores.base import Batch, Cell, Done, Found, Page, PartTotals, Row, StoreTable
    from trio_amqp10.net.urls import Url

T = TypeVar("T")

LIMITS = amqp.Limits(max_frame_size=512)


class Disk(MemoryStore):
    """The rows that survive.

    Attributes:
        commits: how many there were.
        held: the list that takes callbacks of commits instead of calling them; None for a disk that calls them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.commits = 0
        self.held: list[Callable[[], object]] | None = None

    def write(self, batch: Batch, done: Done) -> None:
        held = self.held
        if held is None:
            super().write(batch, done)
        else:
            super().write(batch, lambda failure: held.append(partial(done, failure)))


async def answered_after_commit(disk: Disk, ask: Callable[[], Awaitable[T]]) -> T:
    """Return the answer to a request, which comes when the disk has its commit, and not before."""
    held = disk.held = []
    heard: list[T] = []

    async def hear() -> None:
        heard.append(await ask())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear)
        await wait_all_tasks_blocked()
        assert heard == []
        held.pop()()
    disk.held = None
    return heard[0]


class Mortal:
    """The store of one life of a container.

    Args:
        disk: the rows that it writes to.
        last: the number of commits after which it dies; None for never.
        done: whether the last commit is on the disk, without its callback; otherwise it is lost.
        die: called when it dies.
    """

    def __init__(self, disk: Disk, last: int | None, *, done: bool, die: Callable[[], object]) -> None:
        self._disk = disk
        self._last = last
        self._done = done
        self._die = die
        self.dead = False

    def die_at(self, last: int | None, *, done: bool) -> None:
        """Change when it dies, as above."""
        self._last, self._done = last, done

    def rows(self, table: StoreTable) -> list[Row]:
        return self._disk.rows(table)

    def totals(self, table: StoreTable) -> dict[Cell, PartTotals]:
        return self._disk.totals(table)

    def last_key(self, table: StoreTable) -> int:
        return self._disk.last_key(table)

    def pick(self, table: StoreTable, keys: Iterable[int]) -> list[Row]:
        return self._disk.pick(table, keys)

    def read(self, page: Page) -> list[Row]:
        return self._disk.read(page)

    def fetch(self, page: Page, found: Found) -> None:
        self._disk.fetch(page, found)

    def write(self, batch: Batch, done: Done) -> None:
        if self.dead:  # Its connections are cut, so an acceptance that it sends now reaches no peer.
            trio.lowlevel.current_trio_token().run_sync_soon(done, None)
            return
        self._disk.commits += 1
        if self._last is None or self._disk.commits < self._last:
            self._disk.write(batch, done)
            return
        self.dead = True
        if self._done:
            self._disk.write(batch, lambda _failure: None)
        self._die()

    def close(self) -> None:
        """Do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class House:
    """The present container, and the lines to it.

    Args:
        last, done: when its first life ends; see ``Mortal``.
        there, back: the lines of the first connection, in both directions. A cut of these ends the first life too.
    """

    def __init__(
        self,
        last: int | None = None,
        *,
        done: bool = False,
        there: Line | None = None,
        back: Line | None = None,
    ) -> None:
        self.disk = Disk()
        self.lives = 0
        self.octets = (0, 0)
        self._last = last
        self._done = done
        self._lines = [] if there is None or back is None else [(there, back)]
        self._alive: list[tuple[Any, trio.CancelScope]] = []
        self._begin()

    def _begin(self) -> None:
        self.lives += 1
        last = self._last if self.lives == 1 else None
        self.store = Mortal(self.disk, last, done=self._done, die=self.die)
        self.container = amqp.Container("house", store=self.store)
        self.container.add_queue("dead", durable=True)
        self.queue = self.container.add_queue("q", durable=True, dead_letter="dead")

    async def stock(self, bodies: list[bytes]) -> None:
        """Put messages with these bodies into the queue before the first life."""
        before = amqp.Container("house", store=self.disk)
        before.add_queue("q", durable=True)
        for body in bodies:
            await before.send("q", body)
        await before.flush()
        self.disk.commits = self.lives = 0
        self._begin()

    def die(self) -> None:
        """End this life, with its connections, and begin the next."""
        self.store.dead = True
        alive, self._alive = self._alive, []
        for network, scope in alive:
            network.cut("reset")
            scope.cancel()
        self._begin()

    @asynccontextmanager
    async def open(self, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[None]:
        """Connect every client that dials to the present container."""
        first: list[Any] = []
        async with trio.open_nursery() as nursery:

            async def die_of(network: Any) -> None:
                await network._was_cut.wait()
                if any(each is network for each, _ in self._alive):
                    self.die()

            async def live(there: Line, back: Line, task_status: Any) -> None:
                acceptor = Acceptor(container_id="house", sasl=amqp.sasl.Server(), limits=LIMITS)
                async with open_network(there=there, back=back) as network:
                    first.append(network)
                    with trio.CancelScope() as scope:
                        self._alive.append((network, scope))
                        nursery.start_soon(die_of, network)
                        task_status.started(network.near)
                        await acceptor.run(network.far, self.container.handle)

            async def connect(_url: Url) -> trio.abc.Stream:
                there, back = self._lines.pop() if self._lines else (Line(), Line())
                stream: trio.abc.Stream = await nursery.start(live, there, back)
                return stream

            monkeypatch.setattr(dialling_base, "connect", connect)
            yield
            self.octets = (first[0].there.octets, first[0].back.octets)
            nursery.cancel_scope.cancel()
