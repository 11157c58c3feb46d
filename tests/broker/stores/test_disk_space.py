"""A disk that is full: nothing is lost, what is consumed makes room, and then sending works again.

A file system of 16 MiB has to be mounted for that: by root, or by anybody in a namespace of his own where the system
permits it. ``AMQP10_MOUNT_REQUIRE=1`` fails the tests that otherwise are skipped where it does not. A limit on the size
of a file, which needs no permission, shows the same wherever tests run.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex
import sqlite3
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
import trio

from tests.places import ROOT
from trio_amqp10 import SqliteStore, StoreError, StoreFullError
from trio_amqp10.broker.stores import disk_space as module
from trio_amqp10.broker.stores import sqlite_store
from trio_amqp10.broker.stores.disk_space import DiskSpace

from .rows import THINGS, row, write

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.whole

MOUNT = "mount -t tmpfs -o size=16m tmpfs"


def mounting() -> list[str] | None:
    """What runs a command where it may mount; None where nothing does."""
    for command in (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]):
        with contextlib.suppress(OSError):
            done = subprocess.run([*command, "sh", "-c", f"{MOUNT} /mnt"], capture_output=True, check=False)
            if done.returncode == 0:
                return command
    return None


def rounds(command: list[str]) -> list[int]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    told: dict[str, Any] = json.loads(done.stdout)
    assert {condition for _, condition in told["rounds"]} == {"amqp:resource-limit-exceeded"}
    assert told["nodes"] == 0  # all was received again after a restart, and nothing is left
    return [count for count, _ in told["rounds"]]


@pytest.mark.parametrize(("size", "fill"), [(5_000, ("--fill",)), (100_000, ())])
def test_queue_is_full_empty_and_full_again_on_a_small_disk(
    size: int, fill: tuple[str, ...], tmp_path: Path
) -> None:
    inside = mounting()
    if inside is None:
        assert not os.environ.get("AMQP10_MOUNT_REQUIRE"), "a file system cannot be mounted here"
        pytest.skip("a file system cannot be mounted here")
    program = shlex.join(
        [sys.executable, "-m", "tests.broker.stores.full_disk", str(tmp_path), str(size), *fill]
    )
    counts = rounds([*inside, "sh", "-c", f"{MOUNT} {shlex.quote(str(tmp_path))} && exec {program}"])
    assert counts[0] * size > 8 * 2**20
    assert min(counts) > 0.8 * counts[0]


@pytest.mark.parametrize("size", [10_000, 100_000])
def test_queue_is_full_empty_and_full_again_when_files_cannot_grow(size: int, tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.broker.stores.full_disk", str(tmp_path), str(size)]
    counts = rounds([*program, "--limit", str(6 * 2**20)])
    assert counts[0] * size > 4 * 2**20
    assert min(counts) > 0.8 * counts[0]


# -- room ---------------------------------------------------------------------------------------


async def test_sqlite_store_takes_room_for_what_is_still_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with SqliteStore(path) as store:
        list(store.rows(THINGS))
        assert (tmp_path / "store-wal").stat().st_size >= 2**20
        octets = os.urandom(500_000)
        assert await write(store, {THINGS: {1: row(1, octets)}}) is None
        assert path.stat().st_size > len(octets)
        assert octets[:1000] not in path.read_bytes()  # so far it is in the log alone


async def test_sqlite_store_shrinks_when_it_rests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rested = threading.Event()
    shrink = DiskSpace.shrink

    def shrink_and_tell(room: DiskSpace) -> bool:
        more = shrink(room)
        if not more:
            rested.set()
        return more

    monkeypatch.setattr(DiskSpace, "shrink", shrink_and_tell)
    monkeypatch.setattr(sqlite_store, "_REST", 0)
    monkeypatch.setattr(sqlite_store, "_SHARE", 0)
    path = tmp_path / "store"
    with SqliteStore(path) as store:
        list(store.rows(THINGS))
        things = {key: row(key, os.urandom(100_000)) for key in range(50)}
        assert await write(store, {THINGS: things}) is None
        large = path.stat().st_size
        assert await write(store, {THINGS: dict.fromkeys(list(things)[1:])}) is None
        rested.clear()
        assert await write(store, {THINGS: {}}) is None
        await trio.to_thread.run_sync(rested.wait)
        assert path.stat().st_size < large / 2
    with SqliteStore(path) as store:
        assert list(store.rows(THINGS)) == [things[0]]


async def test_sqlite_store_of_an_older_version_keeps_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "_REST", 0)
    path = tmp_path / "store"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE things (id INTEGER PRIMARY KEY NOT NULL, name, octets)")
        db.execute(f"PRAGMA application_id={0x414D5150}")
        db.execute("PRAGMA user_version=1")
    with SqliteStore(path) as store:
        things = {key: row(key, os.urandom(100_000)) for key in range(50)}
        assert await write(store, {THINGS: things}) is None
        assert await write(store, {THINGS: dict.fromkeys(things)}) is None
        assert await write(store, {THINGS: {1: row(1)}}) is None


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EOPNOTSUPP])
async def test_sqlite_store_is_full_when_no_room_can_be_taken(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: Any) -> None:
        raise OSError(number, os.strerror(number))

    with SqliteStore(tmp_path / "store") as store:
        list(store.rows(THINGS))
        assert await write(store, {THINGS: {1: row(1)}}) is None
        monkeypatch.setattr(module, "_allocate", fail)
        failure = await write(store, {THINGS: {2: row(2, bytes(500_000))}})
        if number == errno.EOPNOTSUPP:  # a file system that takes no room in advance
            assert failure is None
        else:
            assert isinstance(failure, StoreFullError)
        assert await write(store, {THINGS: {1: None}}) is None


def test_store_that_is_opened_twice_stays_locked(tmp_path: Path) -> None:
    path = str(tmp_path / "store")
    with SqliteStore(path):
        with pytest.raises(StoreError, match="in use"):
            SqliteStore(path)
        program = "import sys, trio_amqp10; trio_amqp10.SqliteStore(sys.argv[1])"
        done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, check=False)
        assert b"is in use by another process" in done.stderr


def test_octets_are_written_where_none_can_be_allocated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module.sys, "platform", "darwin")
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)
    file = os.open(path, os.O_RDWR)
    try:
        module._allocate(file, 10, 3 * 2**20)  # pyright: ignore[reportPrivateUsage]
    finally:
        os.close(file)
    assert path.read_bytes() == b"x" * 10 + bytes(3 * 2**20 - 10)
