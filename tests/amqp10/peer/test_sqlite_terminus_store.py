"""Links in a file: a program dies at any moment, and the next one goes on with its links (2.6.13, 3.5.5)."""

from __future__ import annotations

import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.engine.unsettled_state import SenderTerminus
from trio_amqp10.amqp10.peer.terminus_store import LinkKey
from trio_amqp10.broker.stores.sqlite_store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from trio_amqp10.amqp10.peer.connection import Connection

OTHERS = amqp.StoreTable("others", ("id",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "links.db"


def options(store: amqp.TerminusStore, **more: Any) -> dict[str, Any]:
    return {"name": "x", "store": store, "guarantee": "exactly-once", **more}


@asynccontextmanager
async def program(
    container: amqp.Container, path: Path
) -> AsyncGenerator[tuple[Connection, amqp.SqliteTerminusStore]]:
    """A program with its store; it dies where its block ends, and says nothing more to anybody."""
    with amqp.SqliteTerminusStore(path) as store:
        async with container.connect(container_id="program") as conn:
            yield conn, store
            conn.pump.cancel()
            await conn.pump.finished.wait()
    await wait_all_tasks_blocked()


def check_forgotten(path: Path) -> None:
    """The file knows no link, and nothing that one sent or received."""
    with amqp.SqliteTerminusStore(path) as store:
        assert not store._rows  # pyright: ignore[reportPrivateUsage]
        assert not store._known  # pyright: ignore[reportPrivateUsage]


async def test_message_that_was_transmitted_is_sent_by_the_next_program(path: Path) -> None:
    container = amqp.Container()
    container.add_queue("q", max_length=1)
    async with program(container, path) as (conn, store):
        sender = await conn.open_sender("q", **options(store)).__aenter__()
        await sender.send("settled")
        await sender.transmit("one", tag=b"mine")
        await sender.transmit(amqp.Message(b"two", subject="s"))
    async with program(container, path) as (conn, store):
        again = await conn.open_sender("q", **options(store)).__aenter__()
        deliveries = again.resumed
        assert [delivery.tag for delivery in deliveries] == [b"mine", (1).to_bytes(4, "big")]
        async with conn.open_receiver("q", guarantee="at-most-once", credit=10) as reader:
            for delivery in deliveries:
                assert await delivery.outcome() == amqp.Accepted()
            await again.send("three")
            await again.flush()
            got = [(await reader.receive()).message.body for _ in range(4)]
        assert got == ["settled", "one", b"two", "three"]
        assert not again.resumed
    async with program(container, path) as (conn, store), conn.open_sender("q", **options(store)) as last:
        assert not last.resumed
    check_forgotten(path)


async def test_outcome_that_a_program_gave_holds_when_it_dies_before_the_sender_settles(path: Path) -> None:
    container = amqp.Container()
    queue = container.add_queue("q")
    for body in ("one", "two"):
        await container.send("q", body)
    async with program(container, path) as (conn, store):
        receiver = await conn.open_receiver("q", **options(store)).__aenter__()
        done = await receiver.receive()
        await receiver.receive()
        done.accept()
        await store.flushed()  # and then it dies, before the sender is told
        conn.pump.cancel()
    assert len(queue) == 2
    async with program(container, path) as (conn, store):
        again = await conn.open_receiver("q", **options(store)).__aenter__()
        delivery = await again.receive()
        assert delivery.message.body == "two"
        delivery.accept()
        await delivery.wait_settled()
    assert len(queue) == 0


async def test_message_is_transmitted_while_other_links_have_the_file_written_all_the_time(
    path: Path,
) -> None:
    container = amqp.Container()
    queue = container.add_queue("q")
    async with program(container, path) as (conn, store):
        journal = store._journal  # pyright: ignore[reportPrivateUsage]
        written = 0

        def write(_failure: object = None) -> None:
            nonlocal written
            if written < 500:
                written += 1
                journal.note(OTHERS, written, (written,))
                journal.after(write)

        list(journal.rows(OTHERS))
        sender = await conn.open_sender("q", **options(store)).__aenter__()
        write()
        await sender.transmit("one")
        assert written < 250
        await journal.flushed()
    assert len(queue) == 1


@pytest.mark.parametrize("asked", [False, True])
def test_store_is_used_by_one_run_after_another(path: Path, asked: bool) -> None:
    async def leave() -> None:
        await store.open(LinkKey("a", "b", "first", role=False), SenderTerminus)

    async def write() -> None:
        with trio.fail_after(60):
            if asked:
                await store.flushed()
            await store.open(LinkKey("a", "b", "second", role=False), SenderTerminus)
            await store._journal.flushed()  # pyright: ignore[reportPrivateUsage]

    with amqp.SqliteTerminusStore(path) as store:
        trio.run(leave)
        trio.run(write)
    with amqp.SqliteTerminusStore(path) as store:
        assert len(store._known) == 2  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("died", range(12))
async def test_program_that_dies_at_any_moment_sends_nothing_twice(path: Path, died: int) -> None:
    container = amqp.Container()
    queue = container.add_queue("q")
    bodies = [f"body {n}" for n in range(10)]
    told: list[str] = []
    async with program(container, path) as (conn, store):
        sender = await conn.open_sender("q", **options(store)).__aenter__()
        for body in bodies:
            if len(told) == died:
                break
            await sender.transmit(body)
            told.append(body)
            if died % 3 == 0:
                await wait_all_tasks_blocked()
            elif died % 3 == 1:
                await trio.lowlevel.checkpoint()
    async with program(container, path) as (conn, store), conn.open_sender("q", **options(store)) as again:
        for delivery in again.resumed:
            await delivery.outcome()
        for body in bodies[len(told) :]:
            await again.send(body)
    assert len(queue) == len(bodies)


@pytest.mark.logs_errors
async def test_store_that_fails_leaves_the_other_end_to_wonder(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    container = amqp.Container()
    queue = container.add_queue("q")
    async with program(container, path) as (conn, store):
        sender = await conn.open_sender("q", **options(store)).__aenter__()

        def fail(_batch: Any, _done: Any) -> None:
            raise amqp.StoreError("the disk is gone")

        monkeypatch.setattr(store._store, "write", fail)  # pyright: ignore[reportPrivateUsage]
        delivery = await sender.transmit("one")
        await wait_all_tasks_blocked()
        assert delivery.state == amqp.Accepted()
        assert not delivery.settled  # what cannot be written down is not forgotten
    assert len(queue) == 1


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Stores write while it is open."""
    opened = threading.Event()
    opened.set()
    commit = SqliteStore._commit  # pyright: ignore[reportPrivateUsage]

    def held(store: SqliteStore, batch: Any) -> Any:
        assert opened.wait(60)
        return commit(store, batch)

    monkeypatch.setattr(SqliteStore, "_commit", held)
    return opened


@pytest.mark.parametrize("cancelled", [False, True])
async def test_connection_ends_when_its_slow_store_has_forgotten_all_its_links(
    path: Path, gate: threading.Event, cancelled: bool
) -> None:
    over, scope = trio.Event(), trio.CancelScope()
    container = amqp.Container()
    container.add_queue("q")

    async def use() -> None:
        with amqp.SqliteTerminusStore(path) as store, scope:
            async with (
                container.connect(container_id="program") as conn,
                conn.open_sender("q", **options(store)) as sender,
                conn.open_receiver("q", **options(store)) as receiver,
            ):
                await sender.send("one")
                await sender.flush()  # one that is not settled yet is not forgotten either
                (await receiver.receive()).accept()
                gate.clear()
        over.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(use)
        while gate.is_set():
            await wait_all_tasks_blocked()
        await wait_all_tasks_blocked()
        if cancelled:
            scope.cancel()
            await wait_all_tasks_blocked()
        assert not over.is_set()
        gate.set()
    check_forgotten(path)
