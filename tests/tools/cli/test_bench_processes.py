"""``amqp10 bench`` measures how long a message takes when no other is on its way."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.tools.cli import bench as parent
from trio_amqp10.tools.cli.bench_processes import Side, send
from trio_amqp10.tools.cli.command_runner import Interrupts

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

COUNT, PROBES = 5, 2


@pytest.mark.parametrize("presettled", [False, True])
@pytest.mark.parametrize("dialect", ["1.0", "0-9-1"])
async def test_sender_sends_no_probe_before_the_queue_is_drained(dialect: str, presettled: bool) -> None:
    container = amqp.Container("bench")
    queue = container.add_queue("q")
    before: list[int] = []

    async def drained() -> None:
        async with container.connect() as connection, connection.open_receiver("q") as receiver:
            for _ in range(COUNT):
                (await receiver.receive()).accept()
        before.append(len(queue))

    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = await nursery.start(
            lambda task_status: container.serve(
                "amqp://127.0.0.1:0", dialects={"0-9-1": {}}, task_status=task_status
            )
        )
        side = Side(
            role="send",
            url=listeners[0].url,
            address="q",
            count=COUNT,
            probes=PROBES,
            size=64,
            presettled=presettled,
            credit=10,
            dialect=dialect,
        )
        await send(side, drained)
        assert before == [0]
        async with container.connect() as connection, connection.open_receiver("q") as receiver:
            bodies = [(await receiver.receive()).message.body for _ in range(PROBES)]
        assert all(int.from_bytes(body[:8]) for body in bodies)
        nursery.cancel_scope.cancel()


class Child:
    """A side that writes down when it is asked for what."""

    def __init__(self, role: str, asked: list[str]) -> None:
        self._role = role
        self._asked = asked

    async def read(self) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        self._asked.append(f"{self._role}: ready")
        return {"url": "amqp://127.0.0.1:1"}

    async def drained(self, *_: object) -> None:
        await trio.lowlevel.checkpoint()
        self._asked.append(f"{self._role}: drained")

    async def go_on(self) -> None:
        await trio.lowlevel.checkpoint()
        self._asked.append(f"{self._role}: go on")

    async def result(self) -> dict[str, float]:
        await trio.lowlevel.checkpoint()
        names = ("messages_per_second", "cpu_us", "latency_p50_us", "latency_p99_us")
        return dict.fromkeys(names, 1.0)


async def test_sender_goes_on_when_the_receiver_has_drained(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    @asynccontextmanager
    async def process(side: Side) -> AsyncGenerator[Child, None]:
        await trio.lowlevel.checkpoint()
        yield Child(side.role, asked)

    monkeypatch.setattr(parent, "_process", process)
    options = parent.BenchOptions(
        url=None, address="q", count=10, size=64, presettled=False, credit=5, json=True
    )
    await parent.bench(options, Interrupts(trio.CancelScope()))
    assert asked == ["receive: ready", "receive: drained", "send: go on"]
    assert '"latency_p50_us": 1' in capfd.readouterr().out
