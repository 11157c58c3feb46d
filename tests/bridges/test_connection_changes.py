"""The changes of a connection, told to programs of asyncio and to programs without async."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10 import aio, blocking
from trio_amqp10.bridges.blocking_bridge import inner_of
from trio_amqp10.testing import Cut, Line, running_container, running_proxy

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

SECONDS = 60
AT_ONCE = amqp.Backoff(initial=0.01)


@contextmanager
def cut_once() -> Generator[str]:
    """A URL whose first connection is cut after some messages."""
    with (
        running_container(["orders"]) as url,
        running_proxy(url, there=[Line(cut=Cut(at=900, how="reset")), Line()]) as cut,
    ):
        yield cut


@pytest.fixture(name="url")
def _url() -> Generator[str]:
    with cut_once() as url:
        yield url


def run(main: Any) -> Any:
    return asyncio.run(asyncio.wait_for(main, SECONDS))


async def send_until_lost(conn: aio.Connection) -> None:
    async with conn.open_sender("orders") as sender:
        for number in range(20):
            await sender.send(number)


def is_watched(conn: Any) -> int:
    """The iterators in trio that there are."""
    inner: Any = inner_of(conn)
    return len(inner.recovery._watchers)


@pytest.mark.parametrize("is_guest", [False, True])
def test_asyncio_iterates_over_losses_and_restores(url: str, is_guest: bool) -> None:
    async def main() -> list[str]:
        async with aio.connect(url, reconnect=AT_ONCE) as conn:
            changes = conn.changes()
            await send_until_lost(conn)
            lost, restored = await anext(changes), await anext(changes)
            assert isinstance(lost.reason, amqp.ConnectionClosedError)
            assert restored.url is not None
        return [lost.kind, restored.kind, *[each.kind async for each in changes]]

    async def as_guest() -> list[str]:
        async with aio.guest_mode():
            return await main()

    assert run(as_guest() if is_guest else main()) == ["lost", "restored", "stopped"]


def test_task_that_waits_for_a_change_ends_with_the_connection(url: str) -> None:
    async def main() -> list[str]:
        async with aio.connect(url, reconnect=AT_ONCE) as conn:
            watching = asyncio.create_task(kinds(conn.changes(attempts=True)))
            await asyncio.sleep(0)
        return await watching

    async def kinds(changes: aio.Changes) -> list[str]:
        return [each.kind async for each in changes]

    assert run(main()) == ["stopped"]


def test_cancelled_step_loses_no_change(url: str) -> None:
    async def main() -> list[str]:
        async with aio.connect(url, reconnect=AT_ONCE) as conn:
            changes = conn.changes()
            await send_until_lost(conn)
            held = inner_changes(changes)
            step = asyncio.ensure_future(changes.__anext__())
            await asyncio.sleep(0)
            stand_still_until(lambda: all(each.kind != "lost" for each in tuple(held._changes)))
            step.cancel()
            await asyncio.wait([step])
            assert step.cancelled()
            return [(await anext(changes)).kind for _ in range(2)]

    assert run(main()) == ["lost", "restored"]


def stand_still_until(condition: Callable[[], bool]) -> None:
    """Let the loop get no result meanwhile."""
    while not condition():
        time.sleep(0.001)


def inner_changes(changes: aio.Changes) -> Any:
    return changes._changes._made[0][0]


def test_iterator_is_dropped_in_the_thread_of_trio() -> None:
    names: list[str] = []

    async def main(url: str) -> None:
        async with aio.connect(url, reconnect=AT_ONCE) as conn:
            changes = conn.changes()
            await conn._bridge.run_sync(int)
            weakref.finalize(inner_changes(changes), lambda: names.append(threading.current_thread().name))
            del changes
            gc.collect()
            await conn._bridge.run_sync(int)

    with running_container() as url:
        run(main(url))
    assert names == ["amqp"]


def test_iterator_that_is_left_early_leaves_nothing(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url, reconnect=AT_ONCE) as conn:
            waiting = [asyncio.create_task(one_of(conn.changes())) for _ in range(5)]
            cancelled = [asyncio.create_task(one_of(conn.changes())) for _ in range(5)]
            await conn._bridge.run_sync(int)
            assert is_watched(conn) == 10
            for task in cancelled:
                task.cancel()
            await asyncio.wait(cancelled)
            await send_until_lost(conn)
            assert [each.kind for each in await asyncio.gather(*waiting)] == ["lost"] * 5
            del waiting, cancelled, task
            gc.collect()
            await conn._bridge.run_sync(int)
            assert is_watched(conn) == 0
            assert conn._bridge.portal.active.keys() == {conn._block._block}

    async def one_of(changes: aio.Changes) -> amqp.Change:
        async for change in changes:
            return change
        raise AssertionError

    run(main())


def test_connection_that_is_not_restored_has_no_changes() -> None:
    async def main(url: str) -> None:
        async with aio.connect(url) as conn:
            with pytest.raises(amqp.LocalProtocolError, match="reconnect=True"):
                await anext(conn.changes())
        assert [each async for each in conn.changes()] == []  # closed

    with running_container() as url:
        run(main(url))


def test_iterator_may_outlive_its_loop() -> None:
    async def main(url: str) -> aio.Changes:
        async with aio.guest_mode(), aio.connect(url, reconnect=AT_ONCE) as conn:
            return conn.changes()

    with running_container() as url:
        changes = run(main(url))
    del changes
    gc.collect()


def test_thread_iterates_over_losses_and_restores(url: str) -> None:
    found: list[str] = []
    with blocking.connect(url, reconnect=AT_ONCE) as conn:
        changes = conn.changes()
        thread = threading.Thread(target=lambda: found.extend(each.kind for each in changes))
        thread.start()
        with conn.open_sender("orders") as sender:
            for number in range(20):
                sender.send(number)
        assert is_watched(conn) == 1
    thread.join(SECONDS)
    assert found == ["lost", "restored", "stopped"]
    assert list(changes) == []
