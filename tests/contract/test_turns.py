"""A peer that asks for much work with few octets does not have all others wait: turns are bounded, and long work is cut.

What is measured is the processor time of the thread: that other programs are busy does not matter.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from tests.container.clients import Fields
from tests.longest_run import measured_runs
from trio_amqp10.container import Container

from .protocols import PROTOCOLS
from .turn_scripts import KINDS, Stage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.longest_run import LongestRun

    from .turn_scripts import Attack

pytestmark = pytest.mark.whole

LONGEST = 0.010
"""Seconds of work without a pause; a turn is a tenth, and the rest is for a machine that is busy otherwise."""
PING = 0.015
"""Seconds of work of all tasks while a message is sent, confirmed and received: some eight passes of the scheduler."""
DRAFT = "1.0-draft-2010"

ATTACKS = [
    pytest.param(name, kind, attack, id=f"{name}, {kind}")
    for name, protocol in PROTOCOLS.items()
    for kind, attack in protocol.turn_attacks.items()
    if attack is not None
]


@asynccontextmanager
async def served(name: str, kind: str) -> AsyncGenerator[tuple[Stage, int]]:
    """The stage of an attack, and the port of clients of 1.0."""
    container = Container()
    container.add_broker()
    container.add_queue("ping")
    container.add_queue("warm")
    async with trio.open_nursery() as nursery:
        url = "amqp://127.0.0.1:0"
        (all_others,) = await nursery.start(partial(container.serve, url, dialects="all"))
        (draft,) = await nursery.start(partial(container.serve, url, dialects=[DRAFT]))
        stage = Stage(container, draft.port if name == DRAFT else all_others.port)
        KINDS[kind](stage)
        yield stage, all_others.port
        nursery.cancel_scope.cancel()


async def ping_during(attack: Attack, stage: Stage, port: int, runs: LongestRun) -> list[float]:
    """Send a message and receive it, again and again until the attack is over: the work of all tasks for each."""
    over = trio.Event()
    pings: list[float] = []

    async def run() -> None:
        runs.ignore()
        await attack(stage)
        over.set()

    async with (
        amqp.open_connection(f"amqp://127.0.0.1:{port}", sasl=amqp.sasl.Anonymous()) as connection,
        connection.open_sender("ping") as sender,
        connection.open_receiver("ping") as receiver,
        trio.open_nursery() as nursery,
    ):
        await trio.lowlevel.checkpoint()  # what was made before this is not measured
        runs.reset()
        nursery.start_soon(run)
        while not over.is_set():
            before = runs.spent
            await sender.send(amqp.Message("ping"))
            (await receiver.receive()).accept()
            pings.append(runs.spent - before)
            await trio.sleep(0.001)
    return pings


def test_every_protocol_has_a_word_on_every_attack() -> None:
    assert all(protocol.turn_attacks.keys() == KINDS.keys() for protocol in PROTOCOLS.values())


async def measure(name: str, kind: str, attack: Attack) -> tuple[float, str, float]:
    """Seconds of the longest run, the task that had it, and the work of a usual ping."""
    async with served(name, kind) as (stage, port):
        # What a process does once, such as to import what is used first, is not measured.
        await PROTOCOLS[name].client.send(stage.port, "warm", Fields(body=b"x"))
        with measured_runs() as runs:
            pings = await ping_during(attack, stage, port, runs)
            return runs.longest, runs.task, median(pings)


@pytest.mark.parametrize(("name", "kind", "attack"), ATTACKS)
async def test_attack_has_nobody_wait_for_long(name: str, kind: str, attack: Attack) -> None:
    for _attempt in range(3):  # work takes longer while other programs use the memory and its caches
        longest, task, ping = await measure(name, kind, attack)
        if longest < LONGEST and ping < PING:
            return
    assert longest < LONGEST, f"{task} ran for {1000 * longest:.1f} ms without a pause"
    assert ping < PING
