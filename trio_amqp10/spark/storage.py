"""Stores of the segments and manifests of lanes: folders, and object stores.

A store writes a name atomically, and lists it afterwards. In a folder a name is a file that is flushed and renamed, and whose
folder is flushed; in an object store, reached through ``pyarrow.fs``, it is written by one put. Users of a store need no
conditional put, because they choose names that no other process writes (``manifest_catalog``).

Knows files and ``pyarrow.fs``; knows neither lanes nor messages.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.paths import local_path, scheme_of

from .local_files import NO_ROOM, flush_folder, lock_file
from .spool import SpoolError, SpoolFullError

if TYPE_CHECKING:
    from typing import BinaryIO

    import pyarrow as pa
    from pyarrow.fs import FileSystem

_log = logging.getLogger("trio_amqp10.spark")


class Store(Protocol):
    """A folder, or the part of an object store below one path.

    Attributes:
        where: its place, for messages to people, without credentials.
        remote: whether each call is a request over a network, so that calls should be few.
    """

    where: str
    remote: bool

    def put(self, name: str, octets: bytes, *, lasting: bool = True) -> None:
        """Write or replace a name atomically.

        Args:
            name: the name, with slashes for folders.
            octets: the content.
            lasting: whether it must survive a crash of the machine once this returns.

        Raises:
            SpoolFullError: there is no room; nothing has changed.
            OSError: the writing has failed; the name may have been written nevertheless.
        """
        ...

    def get(self, name: str) -> bytes | None:
        """Return the content of a name; None if it does not exist.

        Raises:
            OSError: the name cannot be read.
        """
        ...

    def names(self, folder: str) -> list[str]:
        """Return all names below a folder, from the root of the store.

        Raises:
            OSError: the folder cannot be listed.
        """
        ...

    def times(self, folder: str) -> dict[str, float]:
        """Return all names below a folder, and when each was written.

        Times are in seconds since 1970, by the clock of the store.

        Raises:
            OSError: the folder cannot be listed.
        """
        ...

    def delete(self, name: str) -> None:
        """Delete a name, if it exists.

        Raises:
            OSError: the name cannot be deleted.
        """
        ...

    def source(self, name: str) -> str:
        """Return the source by which another process opens a name (``open_source``)."""
        ...

    def lock(self, name: str, patience: float) -> BinaryIO | None:
        """Lock a name until the returned file is closed, or the process ends.

        Returns None if the store has no locks.

        Raises:
            SpoolError: another process has held the lock for ``patience`` seconds.
        """
        ...


def is_remote(where: str) -> bool:
    """Whether a place is in an object store, not a folder."""
    return scheme_of(where) not in (None, "file")


def shown(where: str) -> str:
    """Return a folder or a URI without credentials and parameters, for people."""
    if not is_remote(where):
        return where
    parts = urlsplit(where)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def open_store(where: str) -> Store:
    """Open the store of a folder or a URI.

    ``pyarrow.fs`` must know the URI, e.g. ``s3://bucket/orders?region=eu-west-1``.

    A relative path starts at the working directory, as for Spark in local mode. Its absolute path is logged, because
    a program that is started in another directory would not find the folder again.

    Raises:
        SpoolError: the scheme or a parameter is unknown, or the path is not valid.
        OSError: the store cannot be reached.
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
    """Open a source that a ``Store`` has returned, or a path.

    Raises:
        FileNotFoundError: the name does not exist.
        OSError: the name cannot be read.
    """
    import pyarrow as pa  # slow to import, and names of a folder do not need it

    if not is_remote(source):
        return pa.memory_map(source)
    filesystem, path = _filesystem(source)
    with filesystem.open_input_stream(path) as stream:
        return pa.BufferReader(stream.read())  # one request; a file with seeks takes several


def _filesystem(uri: str) -> tuple[FileSystem, str]:
    """Return the file system of a URI, which is cached, and the path there."""
    parts = urlsplit(uri)
    filesystem, prefix = _client(f"{parts.scheme}://{parts.netloc}", parts.query)
    return filesystem, (prefix + unquote(parts.path)).rstrip("/")


@lru_cache(maxsize=16)
def _client(host: str, query: str) -> tuple[FileSystem, str]:
    import pyarrow as pa
    from pyarrow import fs  # slow to import, and folders do not need it

    # With this parameter a put to S3 is one request, not three.
    small = ["allow_delayed_open=true"] if host.startswith("s3:") else []
    try:
        try:
            filesystem, path = fs.FileSystem.from_uri(f"{host}/x?{'&'.join(filter(None, [query, *small]))}")
        except pa.ArrowInvalid:  # an older Arrow does not know the parameter
            filesystem, path = fs.FileSystem.from_uri(f"{host}/x?{query}")
    except pa.ArrowException as wrong:
        raise SpoolError(f"{shown(f'{host}/')} cannot be used as a store: {wrong}") from None
    return filesystem, path.removesuffix("/x")


class FolderStore:
    """A ``Store`` in a folder of a POSIX file system; the folder is made if missing."""

    remote: bool = False

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder).absolute()
        self.where: str = str(self._folder)

    def put(self, name: str, octets: bytes, *, lasting: bool = True) -> None:
        """Implement ``Store.put``."""
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
            if wrong.errno in NO_ROOM:
                raise SpoolFullError(f"the disk of the spool {self.where} is full: {wrong}") from wrong
            raise
        if lasting:
            flush_folder(path.parent)

    def _make(self, folder: Path) -> None:
        if not folder.exists():
            self._make(folder.parent)
            folder.mkdir(exist_ok=True)
            flush_folder(folder.parent)

    def get(self, name: str) -> bytes | None:
        """Implement ``Store.get``."""
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        """Implement ``Store.names``."""
        found: list[str] = []
        for parent, _, files in os.walk(self._folder / folder):
            here = Path(parent).relative_to(self._folder)
            found += [f"{here}/{name}" for name in files]
        return found

    def times(self, folder: str) -> dict[str, float]:
        """Implement ``Store.times``."""
        found: dict[str, float] = {}
        for name in self.names(folder):
            with suppress(FileNotFoundError):  # deleted meanwhile
                found[name] = (self._folder / name).stat().st_mtime
        return found

    def delete(self, name: str) -> None:
        """Implement ``Store.delete``."""
        (self._folder / name).unlink(missing_ok=True)

    def source(self, name: str) -> str:
        """Implement ``Store.source``."""
        return str(self._folder / name)

    def lock(self, name: str, patience: float) -> BinaryIO | None:
        """Implement ``Store.lock`` by an advisory lock (flock)."""
        path = self._folder / name
        self._make(path.parent)
        file = lock_file(path, patience)
        if file is None:
            raise SpoolError(f"{path} is held by another process: each lane has one receiver at a time")
        return file


class ObjectStore:
    """A ``Store`` of the objects below one path of an object store.

    Args:
        filesystem: the file system of ``pyarrow.fs``.
        root: the path in the file system.
        uri: the URI of the store.
    """

    remote: bool = True

    def __init__(self, filesystem: FileSystem, root: str, uri: str) -> None:
        self._filesystem = filesystem
        self._root = root
        self._uri = urlsplit(uri)
        self.where: str = shown(uri)

    def put(self, name: str, octets: bytes, *, lasting: bool = True) -> None:  # noqa: ARG002 - a put lasts
        """Implement ``Store.put``.

        The octets are written in one call: a stream that is closed early would store only a part of them.
        """
        with self._filesystem.open_output_stream(f"{self._root}/{name}") as stream:
            stream.write(octets)

    def get(self, name: str) -> bytes | None:
        """Implement ``Store.get``."""
        try:
            with self._filesystem.open_input_stream(f"{self._root}/{name}") as stream:
                octets = stream.read()
        except FileNotFoundError:
            return None
        return octets

    def names(self, folder: str) -> list[str]:
        """Implement ``Store.names``."""
        return [*self.times(folder)]

    def times(self, folder: str) -> dict[str, float]:
        """Implement ``Store.times``."""
        from pyarrow import fs

        chosen = fs.FileSelector(f"{self._root}/{folder}", recursive=True, allow_not_found=True)
        found = self._filesystem.get_file_info(chosen)
        return {
            each.path.removeprefix(f"{self._root}/"): each.mtime_ns / 1e9
            for each in found
            if each.type == fs.FileType.File
        }

    def delete(self, name: str) -> None:
        """Implement ``Store.delete``."""
        with suppress(FileNotFoundError):
            self._filesystem.delete_file(f"{self._root}/{name}")

    def source(self, name: str) -> str:
        """Implement ``Store.source``."""
        return self._uri._replace(path=f"{self._uri.path.rstrip('/')}/{name}").geturl()

    def lock(self, name: str, patience: float) -> BinaryIO | None:  # noqa: ARG002 - the interface of ``Store``
        """Return None: an object store has no locks."""
        return None
