"""Stores: where lanes keep segments and manifests, as small files that are written whole.

A store writes a name whole or not at all, and tells afterwards what is there. In a folder that is a file that is flushed, renamed and
its folder flushed; in an object store, reached through ``pyarrow.fs``, one put. Neither needs a rename of an object, a lock or a
conditional put: whoever uses a store chooses names that nobody else writes (``manifests``).

Knows files and ``pyarrow.fs``; knows neither lanes nor messages.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.paths import local_path, scheme_of

from .spool import SpoolError, SpoolFullError

if TYPE_CHECKING:
    from typing import BinaryIO

    from pyarrow.fs import FileSystem

__all__ = ["FolderStore", "ObjectStore", "Store", "is_remote", "open_source", "open_store", "shown"]

_log = logging.getLogger("trio_amqp10.spark")

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class Store(Protocol):
    """A folder, or a part of an object store.

    Attributes:
        where: for people, without credentials.
        remote: whether each call is a request over a network, so that few should be made.
    """

    where: str
    remote: bool

    def put(self, name: str, octets: bytes, *, lasting: bool = True) -> None:
        """Write a name, or what it says now: whole, or not at all. ``lasting``: it survives a crash of the machine.

        Raises:
            SpoolFullError: there is no room; nothing has changed.
            OSError: it could not be written; it may be there all the same.
        """
        ...

    def get(self, name: str) -> bytes | None:
        """What a name says; None if it is not there.

        Raises:
            OSError: it cannot be read.
        """
        ...

    def names(self, folder: str) -> list[str]:
        """All names below a folder, from the root of the store; none if it is not there.

        Raises:
            OSError: they cannot be listed.
        """
        ...

    def times(self, folder: str) -> dict[str, float]:
        """All names below a folder, and when each was written: in seconds since 1970, by the clock of the store.

        Raises:
            OSError: they cannot be listed.
        """
        ...

    def delete(self, name: str) -> None:
        """Delete a name, if it is there.

        Raises:
            OSError: it cannot be deleted.
        """
        ...

    def source(self, name: str) -> str:
        """What another process opens it by (``open_source``)."""
        ...

    def lock(self, name: str, patience: float) -> BinaryIO | None:
        """Hold a name until what this returns is closed, or the process ends; None where a store cannot.

        Raises:
            SpoolError: another process holds it, for longer than so many seconds.
        """
        ...


def is_remote(where: str) -> bool:
    """Whether it names an object store, and no folder."""
    return scheme_of(where) not in (None, "file")


def shown(where: str) -> str:
    """A folder or a URI for people: without credentials and parameters."""
    if not is_remote(where):
        return where
    parts = urlsplit(where)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def open_store(where: str) -> Store:
    """The store of a folder or a URI that ``pyarrow.fs`` knows, as in ``s3://bucket/orders?region=eu-west-1``.

    A relative path is one from the working directory, as it is for Spark in local mode; the log has the absolute path, because
    a program that is started elsewhere would not find the folder again.

    Raises:
        SpoolError: there are no stores of that kind, or the parameters are unknown; or it is no path.
        OSError: it cannot be reached.
    """
    if is_remote(where):
        filesystem, root = _filesystem(where)
        return ObjectStore(filesystem, root, where)
    try:
        store = FolderStore(local_path(where))
    except LocalProtocolError as wrong:
        raise SpoolError(str(wrong)) from None
    if scheme_of(where) is None and not where.startswith(("/", "~")):
        _log.warning("the spool %r is relative to the working directory: it is %s", where, store.where)
    return store


def open_source(source: str) -> pa.NativeFile:
    """Open what a ``Store`` calls by this name, or a path.

    Raises:
        FileNotFoundError: it is not there.
        OSError: it cannot be read.
    """
    if not is_remote(source):
        return pa.memory_map(source)
    filesystem, path = _filesystem(source)
    with filesystem.open_input_stream(path) as stream:
        return pa.BufferReader(stream.read())  # one request, where a file that is sought in takes several


def _filesystem(uri: str) -> tuple[FileSystem, str]:
    """What reaches it, and its path there; processes that read many segments make one client."""
    parts = urlsplit(uri)
    filesystem, prefix = _client(f"{parts.scheme}://{parts.netloc}", parts.query)
    return filesystem, (prefix + unquote(parts.path)).rstrip("/")


@lru_cache(maxsize=16)
def _client(host: str, query: str) -> tuple[FileSystem, str]:
    from pyarrow import fs  # takes a moment, and folders need none

    small = (
        ["allow_delayed_open=true"] if host.startswith("s3:") else []
    )  # one request for each put, not three
    try:
        try:
            filesystem, path = fs.FileSystem.from_uri(f"{host}/x?{'&'.join(filter(None, [query, *small]))}")
        except pa.ArrowInvalid:  # an Arrow that has not heard of that
            filesystem, path = fs.FileSystem.from_uri(f"{host}/x?{query}")
    except pa.ArrowException as wrong:
        raise SpoolError(f"{shown(f'{host}/')} cannot be used as a store: {wrong}") from None
    return filesystem, path.removesuffix("/x")


class FolderStore:
    """See ``Store``: a folder of a POSIX file system, which is made if it is not there."""

    remote: bool = False

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder).absolute()
        self.where: str = str(self._folder)

    def put(self, name: str, octets: bytes, *, lasting: bool = True) -> None:
        """As ``Store.put``."""
        path = self._folder / name
        tmp = path.with_name(f"tmp-{os.getpid()}-{path.name}")
        try:
            self._make(path.parent)
            with open(tmp, "wb") as file:
                file.write(octets)
                file.flush()
                if lasting:
                    os.fsync(file.fileno())
            tmp.rename(path)
        except OSError as wrong:
            tmp.unlink(missing_ok=True)
            if wrong.errno in _NO_ROOM:
                raise SpoolFullError(f"the disk of the spool {self.where} is full: {wrong}") from wrong
            raise
        if lasting:
            _flush(path.parent)

    def _make(self, folder: Path) -> None:
        if not folder.exists():
            self._make(folder.parent)
            folder.mkdir(exist_ok=True)
            _flush(folder.parent)

    def get(self, name: str) -> bytes | None:
        """As ``Store.get``."""
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        """As ``Store.names``."""
        found: list[str] = []
        for parent, _, files in os.walk(self._folder / folder):
            here = Path(parent).relative_to(self._folder)
            found += [f"{here}/{name}" for name in files]
        return found

    def times(self, folder: str) -> dict[str, float]:
        """As ``Store.times``."""
        found: dict[str, float] = {}
        for name in self.names(folder):
            with suppress(FileNotFoundError):  # deleted meanwhile
                found[name] = (self._folder / name).stat().st_mtime
        return found

    def delete(self, name: str) -> None:
        """As ``Store.delete``."""
        (self._folder / name).unlink(missing_ok=True)

    def source(self, name: str) -> str:
        """As ``Store.source``."""
        return str(self._folder / name)

    def lock(self, name: str, patience: float) -> BinaryIO | None:
        """As ``Store.lock``: an advisory lock, which ends with the process."""
        path = self._folder / name
        self._make(path.parent)
        file = open(path, "ab")  # noqa: SIM115 - held open for as long as the lock is
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() >= deadline:
                    file.close()
                    raise SpoolError(
                        f"{path} is held by another process: each lane has one receiver at a time"
                    ) from None
                time.sleep(0.05)
            else:
                return file


def _flush(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


class ObjectStore:
    """See ``Store``: objects whose names begin alike.

    Args:
        filesystem: of ``pyarrow.fs``.
        root: a path there.
        uri: what it was made of.
    """

    remote: bool = True

    def __init__(self, filesystem: FileSystem, root: str, uri: str) -> None:
        self._filesystem = filesystem
        self._root = root
        self._uri = urlsplit(uri)
        self.where: str = shown(uri)

    def put(self, name: str, octets: bytes, *, lasting: bool = True) -> None:  # noqa: ARG002 - a put lasts
        """As ``Store.put``. The octets are handed over at once: a stream that is closed early would leave a part of them."""
        with self._filesystem.open_output_stream(f"{self._root}/{name}") as stream:
            stream.write(octets)

    def get(self, name: str) -> bytes | None:
        """As ``Store.get``."""
        try:
            with self._filesystem.open_input_stream(f"{self._root}/{name}") as stream:
                octets = stream.read()
        except FileNotFoundError:
            return None
        return octets

    def names(self, folder: str) -> list[str]:
        """As ``Store.names``."""
        return [*self.times(folder)]

    def times(self, folder: str) -> dict[str, float]:
        """As ``Store.times``."""
        from pyarrow import fs

        chosen = fs.FileSelector(f"{self._root}/{folder}", recursive=True, allow_not_found=True)
        found = self._filesystem.get_file_info(chosen)
        return {
            each.path.removeprefix(f"{self._root}/"): each.mtime_ns / 1e9
            for each in found
            if each.type == fs.FileType.File
        }

    def delete(self, name: str) -> None:
        """As ``Store.delete``."""
        with suppress(FileNotFoundError):
            self._filesystem.delete_file(f"{self._root}/{name}")

    def source(self, name: str) -> str:
        """As ``Store.source``."""
        return self._uri._replace(path=f"{self._uri.path.rstrip('/')}/{name}").geturl()

    def lock(self, name: str, patience: float) -> BinaryIO | None:  # noqa: ARG002 - as it is
        """As ``Store.lock``: an object store has no locks."""
        return None
