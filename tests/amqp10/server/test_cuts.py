"""Exactly once between a reconnecting program and a container, for every cut.

``CUTS=1`` cuts before every octet of both conversations, in both directions, with EOF and with reset; the
ordinary run takes a few of these. The engine's own test of this is ``tests/amqp10/engine/test_exactly_once.py``.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio
from trio.testing import MockClock

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.listen import Acceptor
from trio_amqp10.net import dialling_base
from trio_amqp10.testing import Cut, Line, open_network

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from trio_amqp10.net.urls import Url

COUNT: Final = 20
STEP = int(os.environ.get("CUTS", "199"))
LIMITS = amqp.Limits(max_frame_size=512)
BODIES = [b"%03d" % n + bytes(700 if n % 5 == 2 else 5) for n in range(COUNT)]
SOON = amqp.Backoff(initial=0.01, maximum=0.01, jitter=False)


class Wire:
    """Networks from a program to a container, of which only the first breaks."""

    def __init__(self, container: amqp.Container, there: Line, back: Line) -> None:
        self.container = container
        self.lines = [(there, back)]
        self.octets = (0, 0)

    @asynccontextmanager
    async def open(self, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[None]:
        acceptor = Acceptor(container_id="container", sasl=amqp.sasl.Server(), limits=LIMITS)
        networks: list[Any] = []
        async with trio.open_nursery() as nursery:

            async def hold(there: Line, back: Line, task_status: Any) -> None:
                async with open_network(there=there, back=back) as network:
                    networks.append(network)
                    nursery.start_soon(acceptor.run, network.far, self.container.handle)
                    task_status.started(network.near)
                    await trio.sleep_forever()

            async def connect(_url: Url) -> trio.abc.Stream:
                there, back = self.lines.pop() if self.lines else (Line(), Line())

                async def start(task_status: Any) -> None:
                    await hold(there, back, task_status)

                stream: trio.abc.Stream = await nursery.start(start)
                return stream

            monkeypatch.setattr(dialling_base, "connect", connect)
            yield
            self.octets = (networks[0].there.octets, networks[0].back.octets)
            nursery.cancel_scope.cancel()


async def produce(container: amqp.Container, conn: amqp.Connection) -> list[bytes]:
    """Send all, and return what the queue holds of it."""
    async with conn.open_sender("q", guarantee="exactly-once") as sender:
        deliveries = [await sender.transmit(body) for body in BODIES]
        for delivery in deliveries:
            assert await delivery.outcome() == amqp.Accepted()
            await delivery.wait_settled()
    held: list[bytes] = []
    async with container.connect() as other, other.open_receiver("q", guarantee="at-most-once") as reader:
        with trio.move_on_after(1):
            while True:
                held.append((await reader.receive()).message.body)
    return held


async def consume(container: amqp.Container, conn: amqp.Connection) -> list[bytes]:
    """Take all from the queue, and return what was taken, in order."""
    for body in BODIES:
        await container.send("q", body)
    taken: list[bytes] = []
    deliveries: list[amqp.Delivery] = []
    async with conn.open_receiver("q", guarantee="exactly-once", credit=7) as receiver:
        while len(taken) < COUNT:
            delivery = await receiver.receive()
            taken.append(delivery.message.body)
            delivery.accept()
            deliveries.append(delivery)
        for delivery in deliveries:
            await delivery.wait_settled()
        with trio.move_on_after(1):
            taken.append((await receiver.receive()).message.body)  # nothing may come again
    assert len(container.nodes["q"]) == 0  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return taken


async def once(
    work: Callable[[amqp.Container, amqp.Connection], Awaitable[list[bytes]]],
    monkeypatch: pytest.MonkeyPatch,
    there: Line,
    back: Line,
) -> tuple[list[bytes], tuple[int, int]]:
    container = amqp.Container("container")
    container.add_queue("q")
    wire = Wire(container, there, back)
    async with wire.open(monkeypatch):
        dialling = amqp.open_connection(
            "amqp://127.0.0.1:1", container_id="program", limits=LIMITS, reconnect=SOON, idle_timeout=None
        )
        async with dialling as conn:
            result = await work(container, conn)
    return result, wire.octets


@pytest.mark.parametrize("work", [produce, consume])
@pytest.mark.parametrize("how", ["eof", "reset"])
@pytest.mark.parametrize("way", ["there", "back"])
def test_exactly_once_survives_a_cut_before_any_octet(
    work: Any, how: Any, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(there: Line, back: Line) -> tuple[list[bytes], tuple[int, int]]:
        return trio.run(once, work, monkeypatch, there, back, clock=MockClock(autojump_threshold=0))

    whole, (there, back) = run(Line(), Line())
    assert whole == BODIES
    for offset in range(0, (there if way == "there" else back) + 1, STEP):
        cut = Line(cut=Cut(offset, how))
        result, _octets = run(cut, Line()) if way == "there" else run(Line(), cut)
        assert result == BODIES, f"lost, doubled or out of order, by a cut before octet {offset}"
