"""Each public call of each client ends in bounded time with its result or its named error, wherever the connection is lost.

The connection comes back. It is lost before the client knows of it, long before the call, or while the call is in flight: after
some octets of what the call writes, or of what it reads, or with an answer in one read.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.container.served import redialled

from .loss_scripts import LOSS_SCRIPTS, LossScript, Stage, container_with_queue, waiting_methods
from .protocols import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytestmark = pytest.mark.whole

_LONG: Final = 600.0
"""Seconds of virtual time: more than any wait that a loss may cause."""

_NAMES: Final = {"1.0": "1.0", "0-9-1": "AMQP 0-9-1", "10.3": "AMQ Protocol 10.3", "amqp-fast": "AMQP/Fast"}
"""The names of the protocols for a ``FrameSplitter``."""

_CALLS: Final = [
    pytest.param(protocol, name, id=f"{protocol} {name}")
    for protocol, script in LOSS_SCRIPTS.items()
    for name in script.calls
]


def test_every_public_call_that_waits_has_an_entry() -> None:
    assert {name for name, entry in PROTOCOLS.items() if entry.calls_at_loss is not None} == set(LOSS_SCRIPTS)
    for protocol, script in LOSS_SCRIPTS.items():
        named = {name.partition(" ")[0] for name in script.calls}
        asked = {
            f"{cls.__name__}.{method}"
            for cls in script.classes
            for method in waiting_methods(cls) - script.plumbing
        }
        assert asked - named == set(), protocol


@asynccontextmanager
async def staged(script: LossScript, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Stage]:
    container = container_with_queue()
    async with redialled(script.serve(container), monkeypatch) as server:
        stage = Stage(container=container, server=server)
        async with script.stage(stage):
            await wait_all_tasks_blocked()
            yield stage


async def made(script: LossScript, name: str, stage: Stage) -> None:
    """Make the call, which has to end with what the script expects of it."""
    call = script.calls[name]
    with trio.fail_after(_LONG):
        try:
            result = await call.run(stage)
        except call.errors:
            return
        assert call.expected(result), result


async def cut_at(
    script: LossScript, name: str, monkeypatch: pytest.MonkeyPatch, written: int | None, read: int | None
) -> None:
    async with staged(script, monkeypatch) as stage:
        stream = stage.server.streams[-1]
        if written is not None:
            stream.limit_writing(written)
        if read is not None:
            stream.limit_reading(read)
        await made(script, name, stage)


@pytest.mark.parametrize(("protocol", "name"), _CALLS)
async def test_call_ends_when_the_connection_is_lost_in_the_read_that_has_an_answer(
    protocol: str, name: str, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    script = LOSS_SCRIPTS[protocol]
    async with staged(script, monkeypatch) as stage:
        stream = stage.server.streams[-1]
        stream.read_frames(_NAMES[protocol])
        await made(script, name, stage)
        frames = stream.frames
    for number in range(frames):
        async with staged(script, monkeypatch) as stage:
            stage.server.streams[-1].read_frames(_NAMES[protocol], spoiled=number)
            await made(script, name, stage)


@pytest.mark.parametrize("protocol", ["0-9-1", "10.3"])
async def test_committed_transaction_ends_without_error_when_the_connection_is_lost_with_the_answer(
    protocol: str, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    async with staged(LOSS_SCRIPTS[protocol], monkeypatch) as stage:
        async with stage.connection.open_transaction() as transaction:
            await transaction.publish("", "q", b"committed")
            await wait_all_tasks_blocked()
            stage.server.streams[-1].read_frames(_NAMES[protocol], spoiled=0)
        queue: Any = stage.container.nodes["q"]
        assert len(queue) == 1


@pytest.mark.parametrize(("protocol", "name"), _CALLS)
async def test_call_ends_with_its_result_or_its_error(
    protocol: str, name: str, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    script = LOSS_SCRIPTS[protocol]
    async with staged(script, monkeypatch) as stage:  # nothing is lost: how much is written and read
        stream = stage.server.streams[-1]
        written, read = stream.written, stream.read
        await made(script, name, stage)
        written, read = stream.written - written, stream.read - read

    async with staged(script, monkeypatch) as stage:  # before the client knows
        stage.server.streams[-1].break_silently()
        await made(script, name, stage)

    async with staged(script, monkeypatch) as stage:  # after it knows, and for a while nobody answers
        stage.server.accepts = False
        await stage.server.sever()
        await wait_all_tasks_blocked()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(made, script, name, stage)
            await trio.sleep(20)
            stage.server.accepts = True

    for octets in sorted({0, 1, written // 3, written // 2, written - 9, written - 1, written} - {-1}):
        if octets >= 0:
            await cut_at(script, name, monkeypatch, octets, None)
    for octets in sorted({0, 1, read // 3, read // 2, read - 9, read - 1}):
        if octets >= 0:
            await cut_at(script, name, monkeypatch, None, octets)
