"""An answer that comes later arrives at the client without other traffic."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
from trio.testing import MockClock

from tests.container.served import served
from trio_amqp10.container import Container
from trio_amqp10.sasl import Server

from .late_answers import SLOW
from .protocols import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio_amqp10 import Message
    from trio_amqp10.broker.rights.access import Access

    from .late_answers import LateScript, Request

LATER = 5.0


@pytest.fixture
def mock_clock() -> MockClock:
    return MockClock(autojump_threshold=0)


class Directory:
    """Answers each question later, as a directory in the network does; all are granted while ``open``."""

    def __init__(self, *, grants: bool) -> None:
        self.opening = True
        self._grants = grants

    async def __call__(self, access: Access) -> bool:
        if self.opening or access.action == "open":
            return True
        await trio.sleep(LATER)
        return self._grants


def container(directory: Directory | None = None, **options: object) -> Container:
    made = Container("c", authorise=directory, **options)  # type: ignore[arg-type]
    made.add_queue("q")

    @made.function(SLOW)
    async def slow(message: Message) -> None:
        _ = message
        await trio.sleep(LATER)

    return made


@asynccontextmanager
async def dialled(script: LateScript, made: Container) -> AsyncGenerator[trio.abc.Stream]:
    if made.broker is None:
        made.add_broker()
    async with served(script.dialect(made), Server()) as stream:
        await script.open(stream)
        yield stream


async def answered(stream: trio.abc.Stream, request: Request, expected: bytes) -> float:
    """Send a request and nothing else until these octets arrive; seconds that it took."""
    began, heard = trio.current_time(), b""
    if request.before:
        await stream.send_all(request.before)
    await stream.send_all(request.octets)
    with trio.fail_after(10 * LATER):
        while expected not in heard:
            data = await stream.receive_some()
            assert data, heard
            heard += bytes(data)
    return trio.current_time() - began


ASKS = [(name, asked) for name, protocol in PROTOCOLS.items() for asked in protocol.late.asks]


@pytest.mark.parametrize("grants", [True, False])
@pytest.mark.parametrize(("name", "asked"), ASKS)
async def test_permission_that_comes_later_is_answered(
    name: str, asked: str, grants: bool, mock_clock: MockClock
) -> None:
    _ = mock_clock
    script = PROTOCOLS[name].late
    directory = Directory(grants=grants)
    async with dialled(script, container(directory)) as stream:
        for _ in range(20):
            await trio.testing.wait_all_tasks_blocked()
        directory.opening = False
        request = script.asks[asked]
        seconds = await answered(stream, request, request.granted if grants else script.refused)
    assert seconds >= LATER


@pytest.mark.parametrize("name", [name for name, each in PROTOCOLS.items() if each.late.function])
async def test_function_that_returns_later_is_answered(name: str, mock_clock: MockClock) -> None:
    _ = mock_clock
    script = PROTOCOLS[name].late
    assert script.function is not None
    async with dialled(script, container()) as stream:
        assert await answered(stream, script.function, script.function.granted) >= LATER
