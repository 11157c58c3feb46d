from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio
from trio.testing import wait_all_tasks_blocked

from trio_amqp10.kombu.window import BUFFERED, Source, Window, settle
from trio_amqp10.testing import open_container

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractAsyncContextManager

from contextlib import asynccontextmanager

import pytest


class Bench:
    """Some queues of ten messages, consumed on one window."""

    def __init__(self, connection: Any, nursery: trio.Nursery) -> None:
        self.window = Window()
        self.came: list[Any] = []
        self.lost: list[Exception] = []
        self._connection = connection
        self._nursery = nursery
        self._stack: list[Any] = []

    async def source(
        self, address: str, *, bounded: bool = True, messages: int = 10, guarantee: str | None = None
    ) -> Source:
        async with self._connection.open_sender(address) as sender:
            for number in range(messages):
                await sender.send(f"{address} {number}")
        opening = self._connection.open_receiver(
            address, credit=0, guarantee=guarantee or ("at-least-once" if bounded else "at-most-once")
        )
        receiver = await opening.__aenter__()
        self._stack.append(opening)
        made = Source(
            receiver,
            self.window if bounded else None,
            lambda _, delivery: self.came.append(delivery),
            lambda _, failure: self.lost.append(failure),
        )
        self._nursery.start_soon(made.run)
        return made

    async def close(self) -> None:
        for opening in self._stack:
            await opening.__aexit__(None, None, None)

    def bodies(self) -> list[str]:
        return [delivery.message.body for delivery in self.came]


@asynccontextmanager
async def _bench() -> AsyncGenerator[Bench]:
    async with (
        open_container() as container,
        container.connect() as connection,
        trio.open_nursery() as nursery,
    ):
        made = Bench(connection, nursery)
        yield made
        await made.close()
        nursery.cancel_scope.cancel()


@pytest.fixture
def bench() -> Callable[[], AbstractAsyncContextManager[Bench]]:
    return _bench


async def test_no_more_messages_come_than_the_window_has_room_for(bench: Any) -> None:
    async with bench() as made:
        source = await made.source("q")
        made.window.resize(3)
        source.open(True)
        await wait_all_tasks_blocked(0.01)
        assert made.bodies() == ["q 0", "q 1", "q 2"]
        settle(made.window, made.came[0].accept)
        await wait_all_tasks_blocked(0.01)
        assert made.bodies()[3:] == ["q 3"]


async def test_links_share_the_window_and_lose_no_message(bench: Any) -> None:
    async with bench() as made:
        sources = [await made.source(name) for name in ("a", "b")]
        made.window.resize(2)
        for source in sources:
            source.open(True)
        seen: list[str] = []
        while len(seen) < 20:
            await wait_all_tasks_blocked(0.01)
            assert 0 < made.window.unsettled <= 2
            seen += made.bodies()
            taken, made.came = made.came, []
            for delivery in taken:
                settle(made.window, delivery.accept)
        assert sorted(seen) == sorted(f"{name} {number}" for name in "ab" for number in range(10))
        assert [one for one in seen if one[0] == "a"] == [f"a {number}" for number in range(10)]


async def test_unsettled_messages_of_a_link_that_asked_for_settled_ones_are_accepted_when_they_come(
    bench: Any,
) -> None:
    async with bench() as made:
        source = await made.source("q", bounded=False, guarantee="at-least-once")  # as such a peer has it
        source.open(True)
        await wait_all_tasks_blocked(0.01)
        assert len(made.came) == 10
        assert all(delivery.settled for delivery in made.came)


class BufferingReceiver:
    """A link, as far as a window sees it: two messages have come in one read."""

    def __init__(self) -> None:
        self.buffered = 2
        self.credit = 0
        self.granted: list[int] = []

    def set_credit(self, credit: int) -> None:
        self.granted.append(credit)


def test_messages_that_have_come_together_take_room() -> None:
    window, receiver = Window(), BufferingReceiver()
    made: Any = receiver
    source = Source(made, window, lambda *_: None, lambda *_: None)
    window.resize(2)
    source.open(True)
    for _ in range(2):
        receiver.buffered -= 1
        assert window.takes(source)
    assert receiver.granted == []
    window.settled()
    assert receiver.granted == [1]


async def test_larger_window_brings_more(bench: Any) -> None:
    async with bench() as made:
        source = await made.source("q")
        made.window.resize(1)
        source.open(True)
        await wait_all_tasks_blocked(0.01)
        made.window.resize(4)
        await wait_all_tasks_blocked(0.01)
        assert len(made.came) == 4


async def test_closed_source_brings_nothing(bench: Any) -> None:
    async with bench() as made:
        source = await made.source("q")
        await wait_all_tasks_blocked(0.01)
        assert made.came == []
        source.open(True)
        source.open(False)
        await wait_all_tasks_blocked(0.01)
        assert len(made.came) <= 10


async def test_source_without_a_bound_is_bounded_by_its_buffer(bench: Any) -> None:
    async with bench() as made:
        source = await made.source("q", bounded=False, messages=BUFFERED + 200)
        source.open(True)
        await wait_all_tasks_blocked(0.05)
        assert len(made.came) == BUFFERED
        asked = [source.take() for _ in range(200)]
        assert sum(asked) == 1
        source.adjust()
        await wait_all_tasks_blocked(0.05)
        assert len(made.came) == BUFFERED + 200


async def test_end_of_the_link_is_reported(bench: Any) -> None:
    async with bench() as made:
        source = await made.source("q")
        source.open(True)
        await made.close()
        made._stack.clear()
        await wait_all_tasks_blocked(0.01)
        assert [type(one) for one in made.lost] == [trio.ClosedResourceError]


async def test_end_of_a_link_that_brought_nothing_is_reported_when_messages_are_wanted(bench: Any) -> None:
    async with bench() as made:
        source = await made.source("q")
        await made.close()
        made._stack.clear()
        await wait_all_tasks_blocked(0.01)
        assert isinstance(source.failure, trio.ClosedResourceError)
        made.lost.clear()
        source.open(True)
        assert made.lost == [source.failure]
