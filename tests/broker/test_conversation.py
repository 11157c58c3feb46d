"""One connection of a dialect with channels, from the handshake to the end."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import wait_all_tasks_blocked

from tests.amqp091.server.script import dialled, opened
from trio_amqp10.amqp091 import spec
from trio_amqp10.container import Container

if TYPE_CHECKING:
    import pytest


async def test_client_that_leaves_during_the_handshake_is_a_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "trio_amqp10.listen")
    container = Container()
    async with dialled(container) as client:
        await client.log_in()
        await client.stream.aclose()
        await wait_all_tasks_blocked()
    assert "did not complete the handshake" in caplog.text
    assert container.connected == ()


async def test_client_is_connected_once_it_is_admitted_and_until_it_leaves() -> None:
    container = Container()
    async with dialled(container) as client:
        await client.log_in()
        assert not container.connected
        await client.ask(spec.ConnectionOpen(), 0)
        peer = container.connected[0]
        await client.stream.aclose()
        await wait_all_tasks_blocked()
        assert not container.connected
        assert peer.closed


async def test_permission_is_asked_before_the_open_is_answered() -> None:
    go = trio.Event()

    async def authorise(*_: Any) -> bool:
        await go.wait()
        return True

    container = Container(authorise=authorise)
    async with dialled(container) as client:
        await client.log_in()
        await client.say(spec.ConnectionOpen(), channel=0)
        with trio.move_on_after(0.1) as early:
            await client.hear()
        assert early.cancelled_caught
        go.set()
        answer = await client.hear()
        assert answer is not None
        assert answer.name == "connection.open-ok"


async def test_client_without_permission_is_refused_and_forgotten() -> None:
    container = Container(authorise=lambda *_: False)
    async with dialled(container) as client:
        await client.log_in()
        assert await client.refused(spec.ConnectionOpen(), 0) == 530
        await wait_all_tasks_blocked()
        assert container.connected == ()


async def test_what_was_said_before_the_close_is_done_first() -> None:
    container = Container()
    queue = container.add_queue("q")
    async with opened(container) as client:
        await client.publish("", "q", b"last words")
        closed = await client.ask(spec.ConnectionClose(reply_code=200), 0)
        assert closed.name == "connection.close-ok"
    assert queue.statistics()["messages"] == 1
