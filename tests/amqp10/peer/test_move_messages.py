"""Messages moved from one container to another: each once, wherever the mover, the source or the target is lost."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from tests.broker.nodes.test_message_store import HeldStore

if TYPE_CHECKING:
    from trio.testing import MockClock

COUNT = 60


def containers() -> tuple[amqp.Container, amqp.Container]:
    source, target = amqp.Container("source"), amqp.Container("target")
    source.add_queue("out")
    target.add_queue("in")
    target.add_queue("moved", exclusive=True)
    return source, target


async def fill(source: amqp.Container, count: int = COUNT) -> None:
    async with source.connect() as conn, conn.open_sender("out") as sender:
        for number in range(count):
            await sender.send(amqp.Message(number, message_id=f"id-{number}", subject="s"))


async def arrived(target: amqp.Container) -> list[Any]:
    async with target.connect() as conn, conn.open_receiver("in", credit=0) as receiver:
        receiver.grant(10_000)
        return [delivery.message.body for delivery in await receiver.drain()]


async def move(source: amqp.Container, target: amqp.Container, seconds: float = 5, **options: Any) -> None:
    with trio.move_on_after(seconds):
        async with source.connect() as here, target.connect() as there:
            await amqp.move_messages(here, "out", there, "in", **({"ledger": "moved"} | options))


async def test_messages_are_moved_in_order_with_all_that_they_say(autojump_clock: MockClock) -> None:
    source, target = containers()
    await fill(source)
    await move(source, target, batch=7)
    assert await arrived(target) == list(range(COUNT))
    async with source.connect() as conn, conn.open_receiver("out", credit=0) as receiver:
        receiver.grant(1)
        assert await receiver.drain() == []


@pytest.mark.parametrize("point", ["_commit", "_last_entry", "accept"])
@pytest.mark.parametrize("turn", [1, 2, 4])
async def test_mover_that_is_lost_doubles_nothing(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock, point: str, turn: int
) -> None:
    """It is torn away just behind a step: the commit, the look into the ledger, the first outcome."""
    from trio_amqp10.amqp10.peer import move_messages as module

    source, target = containers()
    await fill(source)
    calls = 0

    class LostError(Exception):
        pass

    def tear() -> None:
        nonlocal calls
        calls += 1
        if calls == turn:
            raise LostError

    if point == "accept":
        plain = amqp.Delivery.accept

        def accept(self: amqp.Delivery, **options: Any) -> None:
            plain(self, **options)
            if sys._getframe(1).f_globals["__name__"] == module.__name__:  # and not a container's
                tear()

        monkeypatch.setattr(amqp.Delivery, "accept", accept)
    else:
        step = getattr(module, point)

        async def torn(*args: Any) -> Any:
            done = await step(*args)
            tear()
            return done

        monkeypatch.setattr(module, point, torn)
    with pytest.raises(LostError):
        await move(source, target, batch=7)
    monkeypatch.undo()
    await move(source, target, batch=5)
    assert sorted(await arrived(target)) == list(range(COUNT))


async def move_until_lost(here: amqp.Connection, there: amqp.Connection) -> None:
    with contextlib.suppress(amqp.AmqpError, trio.BrokenResourceError, trio.ClosedResourceError):
        await amqp.move_messages(here, "out", there, "in", ledger="moved", batch=4)


@pytest.mark.parametrize("which", ["source", "target"])
async def test_connection_that_is_lost_doubles_nothing(autojump_clock: MockClock, which: str) -> None:
    source, target = containers()
    await fill(source)
    for frames in range(1, 40, 3):
        async with source.connect() as here, target.connect() as there, trio.open_nursery() as nursery:
            nursery.start_soon(move_until_lost, here, there)
            for _ in range(frames):
                await trio.lowlevel.checkpoint()
            await (here if which == "source" else there).pump.abort()
            await trio.sleep(1)
            nursery.cancel_scope.cancel()
    await move(source, target, 60)
    counts = Counter(await arrived(target))
    assert [number for number, times in counts.items() if times > 1] == []
    assert sorted(counts) == list(range(COUNT))


@pytest.mark.parametrize("wait", [0.0, 0.5, 2.0])
async def test_commit_that_is_under_way_when_the_next_program_begins_doubles_nothing(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock, wait: float
) -> None:
    from trio_amqp10.amqp10.peer import move_messages as module

    store = HeldStore()
    source, target = amqp.Container("source"), amqp.Container("target", store=store)
    source.add_queue("out")
    target.add_queue("in", durable=True)
    target.add_queue("moved", durable=True, exclusive=True)
    await fill(source, 7)
    commit = module._commit

    async def held(*args: Any) -> None:
        store.holding = True
        await commit(*args)

    monkeypatch.setattr(module, "_commit", held)
    await move(source, target, 1)
    assert store.held
    monkeypatch.undo()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(move, source, target)
        await trio.sleep(wait)
        await store.write_all()
    assert sorted(await arrived(target)) == list(range(7))


async def test_source_that_dies_before_it_has_written_what_it_settled_doubles_nothing(
    autojump_clock: MockClock,
) -> None:
    store = HeldStore()
    _, target = containers()
    source = amqp.Container("source", store=store)
    source.add_queue("out", durable=True)
    await fill(source, 6)
    store.holding = True
    await move(source, target, 1, batch=3)  # the source dies with what is held
    store.held.clear()
    store.holding = False
    source = amqp.Container("source", store=store)
    source.add_queue("out", durable=True)
    await move(source, target)
    assert sorted(await arrived(target)) == list(range(6))


async def test_message_without_an_id_is_not_moved(autojump_clock: MockClock) -> None:
    source, target = containers()
    async with source.connect() as conn, conn.open_sender("out") as sender:
        await sender.send("nameless")
    with pytest.raises(amqp.LocalProtocolError, match="without a message_id"):
        await move(source, target)
    assert await arrived(target) == []


async def test_second_program_is_refused(autojump_clock: MockClock) -> None:
    source, target = containers()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(move, source, target)
        await trio.sleep(1)
        with pytest.raises(amqp.LinkRefusedError):
            await move(source, target)


async def test_connection_that_comes_back_is_refused(autojump_clock: MockClock) -> None:
    source, target = containers()
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(source.serve, "amqp://127.0.0.1:0")
        async with amqp.open_connection(listener.url, reconnect=True) as here, target.connect() as there:
            with pytest.raises(amqp.LocalProtocolError, match="without reconnect"):
                await amqp.move_messages(here, "out", there, "in", ledger="moved")
        nursery.cancel_scope.cancel()
