"""Stores: rows that come back, batches that are written whole or not at all, and files that cannot be used."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.lowlevel
import trio.testing

import trio_amqp10 as amqp
from trio_amqp10 import SqliteStore, StoreError, StoreFullError, StoreTable

from .rows import THINGS, row, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


async def test_sqlite_store_writes_nothing_when_one_row_cannot_be(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store") as store:
        list(store.rows(THINGS))
        failure = await write(store, {THINGS: {1: row(1), 2: (2, object(), b"")}})
        assert failure is not None
        assert "failed" in str(failure)
        assert await write(store, {THINGS: {3: row(3)}}) is None
    with SqliteStore(tmp_path / "store") as store:
        assert list(store.rows(THINGS)) == [row(3)]


async def test_sqlite_store_reports_keys_of_two_types_and_goes_on(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store") as store:
        list(store.rows(THINGS))
        failure = await write(store, {THINGS: {1: None, "2": None}})
        assert failure is not None
        assert await write(store, {THINGS: {3: row(3)}}) is None


@pytest.mark.parametrize("wrong", [(2, "a name"), (2, "a name", b"", "more")])
async def test_sqlite_store_writes_no_row_with_another_number_of_cells(tmp_path: Path, wrong: Any) -> None:
    with SqliteStore(tmp_path / "store") as store:
        list(store.rows(THINGS))
        for batch in ({2: wrong}, {key: row(key) for key in (1, 3, 4)} | {2: wrong}):
            failure = await write(store, {THINGS: batch})
            assert failure is not None
    with SqliteStore(tmp_path / "store") as store:
        assert list(store.rows(THINGS)) == []


async def test_sqlite_store_says_that_it_is_full_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store", max_octets=65_536) as store:
        list(store.rows(THINGS))
        small = {key: row(key, bytes(1000)) for key in range(10)}
        assert await write(store, {THINGS: small}) is None
        failure = await write(store, {THINGS: {100: row(100, bytes(100_000))}})
        assert isinstance(failure, StoreFullError)
        assert "make room" in str(failure)
        assert await write(store, {THINGS: dict.fromkeys(small)}) is None
        assert await write(store, {THINGS: {101: row(101, bytes(30_000))}}) is None
    with SqliteStore(tmp_path / "store") as store:
        assert list(store.rows(THINGS)) == [row(101, bytes(30_000))]


async def test_sqlite_store_stops_taking_when_it_is_closed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store")
    list(store.rows(THINGS))
    assert await write(store, {THINGS: {1: row(1)}}) is None
    store.close()
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        store.write({}, lambda failure: None)
    with pytest.raises(StoreError, match="is closed"):
        list(store.rows(THINGS))
    assert "closed" in repr(store)


async def test_sqlite_store_finishes_the_write_in_progress_when_it_is_closed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store")
    list(store.rows(THINGS))
    store.write({THINGS: {key: row(key, bytes(100)) for key in range(5000)}}, lambda failure: None)
    store.close()
    with SqliteStore(tmp_path / "store") as again:
        assert len(list(again.rows(THINGS))) == 5000


@pytest.mark.parametrize(
    ("code", "name", "message"),
    [
        (
            sqlite3.SQLITE_IOERR_FSYNC,
            "SQLITE_IOERR_FSYNC",
            r"cannot use its disk \(bad, SQLITE_IOERR_FSYNC\)",
        ),
        (sqlite3.SQLITE_CORRUPT, "SQLITE_CORRUPT", r"is damaged, or its disk fails \(bad\): start again"),
    ],
)
def test_disk_that_fails_is_not_told_as_a_store_to_throw_away(
    code: int, name: str, message: str, tmp_path: Path
) -> None:
    failure = sqlite3.OperationalError("bad")
    failure.sqlite_errorcode, failure.sqlite_errorname = code, name
    with SqliteStore(tmp_path / "store") as store:
        assert re.search(message, str(store._explain(failure)))


def test_sqlite_store_is_its_owners_alone_when_it_is_made(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store"):
        for name in os.listdir(tmp_path):
            assert (tmp_path / name).stat().st_mode & 0o077 == 0, name


def test_sqlite_store_is_refused_when_another_process_has_it(tmp_path: Path) -> None:
    program = (
        "import sys, trio_amqp10; trio_amqp10.SqliteStore(sys.argv[1]); print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "store")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(StoreError, match="another process"):
            SqliteStore(tmp_path / "store")
        other.kill()
    SqliteStore(tmp_path / "store").close()


def test_sqlite_store_is_refused_when_the_file_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "store").write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match=r"store' is not a store of this library \(file is not a database\)"):
        SqliteStore(tmp_path / "store")


@pytest.mark.parametrize("size", [1, 2, 15, 16, 18, 100, 511, 512, 1000, 4095, 4096, 5000, 8192])
async def test_sqlite_store_that_was_cut_is_not_opened_as_a_new_one(size: int, tmp_path: Path) -> None:
    path = tmp_path / "store"
    with SqliteStore(path) as store:
        list(store.rows(THINGS))
        assert await write(store, {THINGS: {key: row(key, bytes(500)) for key in range(1000)}}) is None
    os.truncate(path, size)
    with pytest.raises(StoreError, match=r"is not a store|is damaged"), SqliteStore(path) as store:
        list(store.rows(THINGS))
    assert path.stat().st_size == size


def test_sqlite_store_takes_an_empty_file_for_a_new_one(tmp_path: Path) -> None:
    (tmp_path / "store").touch()
    with SqliteStore(tmp_path / "store") as store:
        assert list(store.rows(THINGS)) == []


def _unlink(path: Path) -> None:
    path.unlink()


def _move(path: Path) -> None:
    path.rename(path.with_name("moved"))


def _replace(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


@pytest.mark.parametrize("name", ["store", "store-wal"])
@pytest.mark.parametrize("lose", [_unlink, _move, _replace])
async def test_sqlite_store_writes_nothing_more_when_its_file_is_not_there(
    lose: Callable[[Path], None], name: str, tmp_path: Path
) -> None:
    with SqliteStore(tmp_path / "store") as store:
        list(store.rows(THINGS))
        assert await write(store, {THINGS: {1: row(1)}}) is None
        lose(tmp_path / name)
        for _ in range(2):
            failure = await write(store, {THINGS: {2: row(2)}})
            assert f"has lost its file {str(tmp_path / name)!r}" in str(failure)
            assert not isinstance(failure, StoreFullError)


async def test_sqlite_store_goes_on_when_its_file_is_back(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store") as store:
        list(store.rows(THINGS))
        (tmp_path / "store").rename(tmp_path / "elsewhere")
        assert await write(store, {THINGS: {1: row(1)}}) is not None
        (tmp_path / "elsewhere").rename(tmp_path / "store")
        assert await write(store, {THINGS: {2: row(2)}}) is None
    with SqliteStore(tmp_path / "store") as store:
        assert list(store.rows(THINGS)) == [row(2)]


async def test_sqlite_store_stays_the_same_file_when_the_working_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    with SqliteStore("store") as store:
        list(store.rows(THINGS))
        monkeypatch.chdir(tmp_path / "other")
        assert await write(store, {THINGS: {1: row(1)}}) is None
    assert store.path == str(tmp_path / "store")


@pytest.mark.parametrize("path", ["s3://bucket/x", "dbfs:/mnt/x", "", ":memory:"])
@pytest.mark.parametrize("kind", [SqliteStore, amqp.SqliteTerminusStore])
def test_store_at_what_is_no_path_is_refused(
    kind: Any, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(amqp.LocalProtocolError, match=re.escape(repr(path))):
        kind(path)
    assert os.listdir(tmp_path) == []


async def test_sqlite_store_is_refused_when_its_pages_are_damaged(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with SqliteStore(path) as store:
        list(store.rows(THINGS))
        assert await write(store, {THINGS: {key: row(key, bytes(500)) for key in range(1000)}}) is None
    octets = path.read_bytes()
    path.write_bytes(octets[:8192] + b"\xa5" * (len(octets) - 8192))
    with pytest.raises(StoreError, match="damaged"), SqliteStore(path) as store:
        list(store.rows(THINGS))


def test_sqlite_store_is_refused_when_another_program_made_the_file(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "store")
    other.execute("CREATE TABLE somebodys (id)")
    other.close()
    with pytest.raises(StoreError, match="another program"):
        SqliteStore(tmp_path / "store")


def test_sqlite_store_is_refused_when_a_newer_version_wrote_it(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "store").close()
    newer = sqlite3.connect(tmp_path / "store")
    newer.execute("PRAGMA user_version=99")
    newer.close()
    with pytest.raises(StoreError, match="format 99"):
        SqliteStore(tmp_path / "store")


def test_sqlite_store_is_refused_when_a_table_has_other_columns(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store") as store:
        list(store.rows(THINGS))
        with pytest.raises(StoreError, match="other columns"):
            list(store.rows(StoreTable("things", ("id", "else"))))


def test_sqlite_store_is_refused_when_its_folder_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        SqliteStore(tmp_path / "nowhere" / "store")


def test_sqlite_store_is_refused_when_its_limit_is_too_small(tmp_path: Path) -> None:
    with pytest.raises(amqp.LocalProtocolError, match="max_octets=1"):
        SqliteStore(tmp_path / "store", max_octets=1)


async def test_backup_of_a_store_in_use_is_a_store_with_all_that_was_committed(tmp_path: Path) -> None:
    path, copy = tmp_path / "store", tmp_path / "copy"
    with SqliteStore(path) as store:
        list(store.rows(THINGS))
        assert await write(store, {THINGS: {key: row(key, bytes(3000)) for key in range(1000)}}) is None
        written = list(range(1000))
        async with trio.open_nursery() as nursery:

            async def write_more() -> None:
                key = 1000
                while True:
                    batch = {key: row(key, bytes(3000)), key - 1000: None}
                    assert await write(store, {THINGS: batch}) is None
                    written.append(key)
                    key += 1

            nursery.start_soon(write_more)
            while len(written) < 1010:
                await trio.lowlevel.checkpoint()
            before = len(written)
            await store.backup(copy)
            after = len(written)
            nursery.cancel_scope.cancel()
        assert after > before  # It was written to meanwhile.
    assert sorted(os.listdir(tmp_path)) == ["copy", "store"]
    assert copy.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(copy) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
    with SqliteStore(copy) as store:
        keys = [each[0] for each in store.rows(THINGS)]
        newest = max(keys)
        assert before <= newest + 1 <= after + 1
        assert keys == list(range(newest - 999, newest + 1))  # One moment: each batch is whole.
    with SqliteStore(path) as store:
        assert len(list(store.rows(THINGS))) == 1000


async def test_backup_replaces_an_earlier_one_and_only_when_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy"
    with SqliteStore(tmp_path / "store") as store:
        list(store.rows(THINGS))
        await write(store, {THINGS: {1: row(1)}})
        await store.backup(copy)
        await write(store, {THINGS: {2: row(2)}})

        def fail(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched, pytest.raises(StoreError, match="No space left") as full:
            patched.setattr(os, "replace", fail)
            await store.backup(copy)
        assert "its folder must be writable, and have room" in str(full.value)
        assert not (tmp_path / "copy.unfinished").exists()
        with sqlite3.connect(copy) as db:
            assert db.execute("SELECT count(*) FROM things").fetchone() == (1,)
        db.close()
        for suffix in ("-wal", "-shm"):
            (tmp_path / f"copy{suffix}").unlink(missing_ok=True)
        (tmp_path / "copy.unfinished").write_text("of a process that was killed")
        await store.backup(copy)
    with SqliteStore(copy) as store:
        assert list(store.rows(THINGS)) == [row(1), row(2)]


async def test_backup_is_refused_where_it_would_do_harm(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store") as store:
        list(store.rows(THINGS))
        await write(store, {THINGS: {1: row(1)}})
        with pytest.raises(StoreError, match="is the store itself"):
            await store.backup(tmp_path / "store")
        with pytest.raises(StoreError, match="cannot be written"):
            await store.backup(tmp_path / "no folder" / "copy")
        for name in ("a\0b", "a\ud800b"):
            with trio.fail_after(10), pytest.raises(StoreError, match="cannot be written"):
                await store.backup(tmp_path / name)
        (tmp_path / "used-wal").write_bytes(b"")
        with pytest.raises(StoreError, match="was used as a store"):
            await store.backup(tmp_path / "used")
        refused: list[str] = []

        async def back_up(name: str) -> None:
            try:
                await store.backup(tmp_path / name)
            except StoreError as failure:
                refused.append(str(failure))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(back_up, "one")
            nursery.start_soon(back_up, "two")
        assert len(refused) == 1
        assert "is being made already" in refused[0]
        await store.backup(tmp_path / "two")
    with pytest.raises(StoreError, match="is closed"):
        await store.backup(tmp_path / "three")


def test_backup_can_be_made_after_a_run_that_ended_during_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied, over = threading.Event(), threading.Event()
    replace = os.replace

    def replace_later(source: str, target: str) -> None:
        copied.set()
        assert over.wait(10)
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_later)
    with SqliteStore(tmp_path / "store") as store:
        list(store.rows(THINGS))

        async def begin() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(store.backup, tmp_path / "one")
                assert await trio.to_thread.run_sync(copied.wait, 10)
                nursery.cancel_scope.cancel()

        async def make_another() -> None:
            await write(store, {THINGS: {1: row(1)}})  # The first backup ends before.
            await store.backup(tmp_path / "two")

        trio.run(begin)
        over.set()
        trio.run(make_another)
    assert sorted(os.listdir(tmp_path)) == ["one", "store", "two"]


async def test_store_that_is_closed_finishes_its_backup_first(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store")
    list(store.rows(THINGS))
    await write(store, {THINGS: {key: row(key, bytes(3000)) for key in range(2000)}})
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.backup, tmp_path / "copy")
            await trio.testing.wait_all_tasks_blocked(0.0)
            scope.cancel()
    store.close()
    with SqliteStore(tmp_path / "copy") as copy:
        assert len(list(copy.rows(THINGS))) == 2000
