"""Stores of a folder and of objects: what is put is there, whole, and its source is opened elsewhere."""

from __future__ import annotations

import errno
import logging
import os
import time
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import fs

from trio_amqp10.spark.spool import SpoolError, SpoolFullError
from trio_amqp10.spark.storage import FolderStore, ObjectStore, is_remote, open_source, open_store, shown

if TYPE_CHECKING:
    from pathlib import Path

    from trio_amqp10.spark.storage import Store


@pytest.fixture(params=["folder", "objects"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store of each kind; the objects are files too, below the same interface."""
    if request.param == "folder":
        return FolderStore(tmp_path / "spool")
    (tmp_path / "bucket" / "manifests").mkdir(parents=True)
    return ObjectStore(
        fs.LocalFileSystem(), str(tmp_path / "bucket"), "s3://key:secret@bucket/spool?region=x"
    )


def test_what_is_put_is_there_until_it_is_deleted(store: Store) -> None:
    assert store.get("manifests/a") is None
    store.put("manifests/a", b"first")
    store.put("manifests/a", b"second")
    store.put("manifests/b", b"", lasting=False)
    assert (store.get("manifests/a"), store.get("manifests/b")) == (b"second", b"")
    assert sorted(store.names("manifests")) == ["manifests/a", "manifests/b"]
    times = store.times("manifests")
    assert set(times) == {"manifests/a", "manifests/b"}
    assert all(abs(each - time.time()) < 600 for each in times.values())
    store.delete("manifests/a")
    store.delete("manifests/a")
    assert store.names("manifests") == ["manifests/b"]
    assert store.names("none") == []


def test_source_of_a_folder_is_opened_by_another(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put("a/b", b"octets")
    with open_source(store.source("a/b")) as found:
        assert found.read() == b"octets"
    with pytest.raises(FileNotFoundError):
        open_source(store.source("a/c"))


def test_source_of_objects_is_a_uri_with_its_parameters() -> None:
    store = ObjectStore(fs.LocalFileSystem(), "/bucket", "s3://bucket/spool/?region=x")
    assert store.source("a/b") == "s3://bucket/spool/a/b?region=x"
    assert store.lock("a", 0) is None


def test_lock_of_a_folder_is_one_owners(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    held = store.lock("lanes/a.lock", 0)
    assert held is not None
    with held, pytest.raises(SpoolError, match="held by another process"):
        store.lock("lanes/a.lock", 0)


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, SpoolFullError), (errno.EDQUOT, SpoolFullError), (errno.EIO, OSError)]
)
def test_failed_write_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception]
) -> None:
    store = FolderStore(tmp_path)
    store.put("a", b"before")

    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(kind):
        store.put("a", b"after")
    assert store.get("a") == b"before"
    assert store.names("") == ["./a"]


@pytest.mark.parametrize(
    ("where", "remote", "text"),
    [
        ("/spool", False, "/spool"),
        ("file:///spool", False, "file:///spool"),
        ("s3://key:secret@bucket/orders?region=x", True, "s3://bucket/orders"),
        ("hdfs:///orders", True, "hdfs:///orders"),
    ],
)
def test_place_is_shown_without_credentials(where: str, remote: bool, text: str) -> None:
    assert (is_remote(where), shown(where)) == (remote, text)


def test_relative_folder_is_found_from_here_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    with caplog.at_level(logging.WARNING):
        store: Any = open_store("spool")
    assert store.where == str(tmp_path / "spool")
    assert str(tmp_path) in caplog.text


def test_store_of_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(SpoolError, match="cannot be used as a store"):
        open_store("odd://bucket/orders")
