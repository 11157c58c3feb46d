"""A container that dies at any commit of a purge or a deletion: what was answered does not come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.container.management.test_moving import bodies
from tests.container.mortal import Disk, Mortal
from trio_amqp10.broker.nodes import message_store, stored_rest
from trio_amqp10.broker.stores import StoreError
from trio_amqp10.broker.stores import group_commit as journals
from trio_amqp10.container import Container
from trio_amqp10.container.management.errors import ManagementError

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 600


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read few messages at the start, and write few in a batch."""
    monkeypatch.setattr(stored_rest, "PAGE", 400)
    monkeypatch.setattr(message_store, "HEADS", 400)
    monkeypatch.setattr(journals, "_MOST_ROWS", 50)


class Hasty:
    """Turns that are over after each step."""

    def is_over(self) -> bool:
        return True

    def later(self, call: Callable[[], object]) -> None:
        trio.lowlevel.current_trio_token().run_sync_soon(call)


def opened(store: Any, kind: str) -> Container:
    container = Container(store=store, keeps_all=True)
    container.clock.turns = Hasty
    if kind == "declared":
        container.add_broker()
    elif kind == "queue":
        container.add_queue("q")
    return container


async def filled(kind: str) -> Disk:
    disk = Disk()
    before = opened(disk, kind)
    if kind == "declared":
        await before.management.declare_queue("q")
    elif kind == "created":
        await before.management.create_queue("q")
    for number in range(COUNT):
        await before.send("q", number)
    await before.flush()
    disk.commits = 0
    return disk


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("kind", ["queue", "created", "declared"])
@pytest.mark.parametrize("operation", ["purge", "delete"])
async def test_answered_deletion_stays_done_whenever_the_process_dies(
    operation: str, kind: str, done: bool
) -> None:
    died, last = True, 0
    while died:
        last += 1
        disk = await filled(kind)
        scope = trio.CancelScope()
        container = opened(Mortal(disk, last, done=done, die=scope.cancel), kind)
        container._recover()  # pyright: ignore[reportPrivateUsage]
        answered = False
        with scope:
            assert await getattr(container.management, operation)("q") == COUNT
            answered = True
            if operation == "delete" and kind != "queue":
                await container.management.create_queue("q")
            await container.send("q", "new")
            await container.flush()
        died = scope.cancelled_caught
        await wait_all_tasks_blocked()
        after = opened(disk, kind)
        async with after.connect():
            there = await bodies(after, "q") if "q" in after.nodes else []
        left = [body for body in there if body != "new"]
        assert left == sorted(set(left))
        if answered:
            assert left == []
        if not died:
            assert there == ["new"]
    assert last > 3


@pytest.mark.parametrize("operation", ["purge", "delete"])
async def test_answer_waits_for_the_commit(operation: str) -> None:
    disk = await filled("queue")
    container = opened(disk, "queue")
    container._recover()  # pyright: ignore[reportPrivateUsage]
    held = disk.held = []
    answers: list[int] = []

    async def ask() -> None:
        answers.append(await getattr(container.management, operation)("q"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        assert answers == []
        assert held
        disk.held = None
        held.pop()()
    assert answers == [COUNT]


@pytest.mark.logs_errors
@pytest.mark.parametrize("operation", ["purge", "delete"])
async def test_deletion_that_cannot_be_stored_is_reported(operation: str) -> None:
    disk = await filled("queue")
    container = opened(disk, "queue")
    container._recover()  # pyright: ignore[reportPrivateUsage]
    disk.failure = StoreError("the disk is broken")
    with pytest.raises(
        ManagementError, match="may be there again after a restart: the disk is broken"
    ) as why:
        await getattr(container.management, operation)("q")
    assert why.value.reason == "store-failed"


@pytest.mark.parametrize("operation", ["purge", "delete"])
async def test_purge_waits_while_the_journal_is_crowded(operation: str) -> None:
    disk = await filled("queue")
    container = opened(disk, "queue")
    container._recover()  # pyright: ignore[reportPrivateUsage]
    sizes: list[int] = []
    write = disk.write

    def count_rows(batch: Any, done: Any) -> None:
        sizes.append(sum(map(len, batch.values())))
        write(batch, done)

    disk.write = count_rows  # type: ignore[method-assign]
    held: list[Callable[[], object]] = []
    disk.held = held
    answers: list[int] = []

    async def ask() -> None:
        answers.append(await getattr(container.management, operation)("q"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        while not answers:
            await wait_all_tasks_blocked()
            if held:
                held.pop()()
    assert answers == [COUNT]
    assert sum(sizes) > 400
    assert max(sizes) <= 60
