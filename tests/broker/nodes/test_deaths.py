"""Exactly once between a program that reconnects and a container that dies: at any commit, or before any octet.

``CUTS=1`` has it die before every octet of both conversations; the ordinary run takes a few of these, and
all commits.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, TypeAlias

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.mortal import LIMITS, House
from trio_amqp10.amqp10.server.link_store import TERMINI, UNSETTLED
from trio_amqp10.testing import Cut, Line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.whole

COUNT: Final = 10
STEP = int(os.environ.get("CUTS", "97"))
BODIES = [b"%03d" % n + bytes(700 if n % 5 == 2 else 5) for n in range(COUNT)]
SOON = amqp.Backoff(initial=0.01, maximum=0.01, jitter=False)

Work: TypeAlias = "Callable[[House, amqp.Connection], Awaitable[list[bytes]]]"


async def produce(house: House, conn: amqp.Connection) -> list[bytes]:
    """Send all, some of it one by one, and return what the queue holds of it."""
    async with conn.open_sender("q", guarantee="exactly-once") as sender:
        assert sender.remote.target.durable == amqp.TerminusDurability.UNSETTLED_STATE
        for body in BODIES[:5]:
            await sender.send(body)
        deliveries = [await sender.transmit(body) for body in BODIES[5:]]
        for delivery in deliveries:
            assert await delivery.outcome() == amqp.Accepted()
            await delivery.wait_settled()
    return await held(house, "q")


async def held(house: House, address: str) -> list[bytes]:
    """What a queue holds, which is taken from it."""
    bodies: list[bytes] = []
    async with (
        house.container.connect() as other,
        other.open_receiver(address, guarantee="at-most-once") as reader,
    ):
        with trio.move_on_after(1):
            while True:
                bodies.append((await reader.receive()).message.body)
    return bodies


async def consume(house: House, conn: amqp.Connection) -> list[bytes]:
    """Take all from the queue, and return what was taken, in order."""
    return await take(house, conn, amqp.Delivery.accept)


async def judge(house: House, conn: amqp.Connection) -> list[bytes]:
    """The same, but every third is rejected, and each of those has to be among the dead letters, once."""

    def decide(delivery: amqp.Delivery) -> None:
        (delivery.reject if delivery.message.body in BODIES[::3] else delivery.accept)()

    taken = await take(house, conn, decide)
    assert await held(house, "dead") == BODIES[::3]
    return taken


async def take(house: House, conn: amqp.Connection, decide: Callable[[amqp.Delivery], object]) -> list[bytes]:
    taken: list[bytes] = []
    deliveries: list[amqp.Delivery] = []
    async with conn.open_receiver("q", guarantee="exactly-once", credit=7) as receiver:
        assert receiver.remote.source.durable == amqp.TerminusDurability.UNSETTLED_STATE
        while len(taken) < COUNT:
            delivery = await receiver.receive()
            taken.append(delivery.message.body)
            decide(delivery)
            deliveries.append(delivery)
            if len(taken) <= 5:
                await delivery.wait_settled()
        for delivery in deliveries:
            await delivery.wait_settled()
        with trio.move_on_after(1):
            taken.append((await receiver.receive()).message.body)  # nothing may come again
    assert len(house.queue) == 0
    return taken


async def once(work: Work, monkeypatch: pytest.MonkeyPatch, house: House) -> list[bytes]:
    if work is not produce:
        await house.stock(BODIES)
    async with house.open(monkeypatch):
        dialling = amqp.open_connection(
            "amqp://127.0.0.1:1", container_id="program", limits=LIMITS, reconnect=SOON, idle_timeout=None
        )
        async with dialling as conn:
            result = await work(house, conn)
        async with house.container.connect(idle_timeout=None):
            await trio.sleep(
                301
            )  # where it died as the link was closed, it waits for a program that does not come
            await wait_all_tasks_blocked()
        assert not house.disk.rows(TERMINI)
        assert not house.disk.rows(UNSETTLED)
    return result


def run(work: Work, monkeypatch: pytest.MonkeyPatch, house: House) -> list[bytes]:
    return trio.run(once, work, monkeypatch, house, clock=MockClock(autojump_threshold=0))


WORKS = [produce, consume, judge]


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("done", [False, True])
def test_exactly_once_survives_the_death_of_the_container_at_any_commit(
    work: Work, done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = House()
    assert run(work, monkeypatch, whole) == BODIES
    commits = whole.disk.commits
    assert commits > 6
    deaths = 0
    for last in range(1, commits + 1):
        house = House(last, done=done)
        assert run(work, monkeypatch, house) == BODIES, (
            f"lost, doubled or out of order, by a death at commit {last}"
        )
        deaths += house.lives - 1
    assert deaths > commits // 2  # what goes together in a commit is chance, to some extent


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("way", ["there", "back"])
def test_exactly_once_survives_the_death_of_the_container_before_any_octet(
    work: Work, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = House(there=Line(), back=Line())
    assert run(work, monkeypatch, whole) == BODIES
    there, back = whole.octets
    for offset in range(0, there if way == "there" else back, STEP):
        cut = Line(cut=Cut(offset, "reset"))
        house = House(there=cut, back=Line()) if way == "there" else House(there=Line(), back=cut)
        assert run(work, monkeypatch, house) == BODIES, (
            f"lost, doubled or out of order, by a death before octet {offset} {way}"
        )
