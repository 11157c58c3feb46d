"""What a loop of asyncio keeps for its connections, and how results come to it; the calls are in ``tests/test_aio.py``."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10 import aio
from trio_amqp10.testing import running_container

if TYPE_CHECKING:
    from collections.abc import Iterator


SECONDS = 60


@pytest.fixture
def url() -> Iterator[str]:
    with running_container(["orders"]) as url:
        yield url


async def send(url: str) -> None:
    async with aio.connect(url) as conn, conn.open_sender("orders") as sender:
        for number in range(3):
            await sender.send(number)


def test_loop_that_watches_no_descriptors_is_woken_too(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise NotImplementedError

    monkeypatch.setattr(asyncio.SelectorEventLoop, "add_reader", refuse)  # as the loop of Windows
    asyncio.run(asyncio.wait_for(send(url), SECONDS))


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted in /proc")
def test_nothing_is_left_of_loops_that_are_over(url: str) -> None:
    def run() -> weakref.ref[asyncio.AbstractEventLoop]:
        with asyncio.Runner() as runner:
            runner.run(send(url))
            runner.run(send(url))
            return weakref.ref(runner.get_loop())

    counts = []
    for _ in range(3):
        loop = run()
        gc.collect()
        assert loop() is None
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts[0] == counts[2]


def test_loop_does_not_keep_the_context_of_its_first_connection(url: str) -> None:
    class Request:
        pass

    request: ContextVar[Request | None] = ContextVar("request", default=None)

    async def handle() -> weakref.ref[Request]:
        made = Request()
        request.set(made)
        await send(url)
        return weakref.ref(made)

    async def main() -> None:
        ended = await asyncio.create_task(handle())
        await asyncio.sleep(0)  # the callback that woke this task has the other
        gc.collect()
        assert ended() is None

    asyncio.run(main())
