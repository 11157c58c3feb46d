"""LaneSpool: the spool of one lane, which one receiver writes, on any machine.

It has the interface of ``Spool`` for a receiver, but is in a store, and a query elsewhere reads and consumes its rows. ``write`` stores
a segment, then its manifest, and only then returns, so that the messages are accepted. ``manifest_catalog`` describes the names.

A store may fail for a moment: the same octets are stored again under the same name, for as long as ``patience`` allows. After that the
receiver must end, because an epoch may not have two segments that begin with the same row; the next receiver has a new epoch.

If the store has locks, a second receiver of the lane is refused. Otherwise both write, no row of either is lost, and the
older one ends as soon as it sees the epoch of the other.

Knows a store and its names; neither links nor Spark.
"""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import secrets
import socket
import threading
import time
import uuid
from typing import TYPE_CHECKING, Final, NamedTuple

from .manifest_catalog import LANE, Catalog, Epoch, Manifest
from .spool import SpoolError, SpoolFullError
from .storage import open_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from .manifest_catalog import Positions
    from .storage import Store

_log = logging.getLogger("trio_amqp10.spark")

CONSUMED: Final = "consumed.json"
"""The file of consumed rows: ``{"version": 1, "reader": ID, "rows": positions}``."""
_VERSION: Final = 1
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
_REST: Final = 1.0
"""Seconds after which a full disk is tried again."""
_EPOCHS_KEPT: Final = 4
_PUBLISHED: Final = 3600.0
"""The most seconds from the beginning of a segment to its manifest.

A segment without a manifest is deleted after a day (``lanes_reader``).
"""


class _Written(NamedTuple):
    manifest: Manifest
    at: float
    """Seconds since 1970, or 0.0 if another epoch wrote it."""


class LaneSpool:
    """The rows of one lane: those of this receiver, and those of earlier ones.

    Args:
        where: a folder or a URI.
        lane: the name of the lane.
        max_bytes: the octets of unconsumed rows at which the lane is ``full``; None for no limit.
        keep: the least number of consumed rows that ``segments`` still has.
        patience: seconds for which the store may fail, or another process may hold the lane.
        store: the store; by default the one at ``where``.

    Attributes:
        id: identifies the lane and its store.
        epoch: the epoch of this receiver.
        low: rows of this epoch below this number are consumed, by the last ``refresh``.
        end: the number of the next row.
        where: the store and the lane, for messages to people.
        interval: the seconds between two useful calls of ``refresh``.
        figures_interval: the seconds between two useful calls of ``show_figures``.

    Raises:
        SpoolError: the lane has a receiver already, its name is not allowed, or the store is damaged.
        OSError: the store cannot be used.
    """

    def __init__(
        self,
        where: str,
        lane: str,
        *,
        max_bytes: int | None = None,
        keep: int = 0,
        patience: float = 5.0,
        store: Store | None = None,
    ) -> None:
        if LANE.fullmatch(lane) is None:
            raise SpoolError(f"a lane cannot be called {lane!r}: expected 1 to 63 letters, digits, - and _")
        self._store = open_store(where) if store is None else store
        self._lane = lane
        self._max_bytes = max_bytes
        self._keep = keep
        self._patience = patience
        self._guard = threading.Lock()
        self._rested = 0.0
        self.where: str = f"{self._store.where}, lane {lane}"
        self.interval: float = 2.0 if self._store.remote else 0.5
        self.figures_interval: float = 10.0 if self._store.remote else 1.0
        self.id: str = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self._store.where}/{lane}"))
        self._lock = self._store.lock(f"lanes/{lane}/lock", patience)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        for folder in (f"manifests/{self._lane}", f"segments/{self._lane}"):
            for name in self._store.names(folder):
                if self._lock is not None and name.rpartition("/")[2].startswith("tmp-"):
                    self._store.delete(name)  # its writer is dead, because this process has the lock
        epochs = self._epochs()
        found = Catalog(self._store.names(f"manifests/{self._lane}")).manifests()
        self._written = [_Written(each, 0.0) for each in found]
        lives = [*epochs, *[epoch for each in found if (epoch := Epoch.parse(each.epoch)) is not None]]
        number = max([each.number for each in lives], default=0) + 1
        first = max([each.first for each in lives] + [each.end for each in found], default=0)
        self.epoch: Epoch = Epoch.make(number, first, secrets.token_hex(4))
        self._claim_epoch()
        for each in sorted(epochs)[: -_EPOCHS_KEPT + 1]:
            self._store.delete(f"lanes/{self._lane}/epochs/{each.name}.json")
        self.low: int = first
        self.end: int = first
        self._consumed: dict[str, int] = {}
        self._size = 0
        self._refresh_consumed()

    def _claim_epoch(self) -> None:
        """Store the file that shows other receivers of the lane that this epoch has begun."""
        begun = {
            "version": _VERSION,
            "at": round(time.time(), 3),
            "host": socket.gethostname(),
            "pid": os.getpid(),
        }
        self._persist(f"lanes/{self._lane}/epochs/{self.epoch.name}.json", json.dumps(begun).encode())

    def _epochs(self) -> list[Epoch]:
        names = self._store.names(f"lanes/{self._lane}/epochs")
        found = [Epoch.parse(name.rpartition("/")[2].removesuffix(".json")) for name in names]
        return [each for each in found if each is not None]

    # -- writing ----------------------------------------------------------------------------

    def write(
        self, rows: int, fill: Callable[[BinaryIO], object], *, ids: list[str | None] | None = None
    ) -> None:
        """Add a segment; when this returns, it has a manifest and survives a crash.

        Args:
            rows: the number of rows, at least 1.
            fill: writes the segment to the file that it gets.
            ids: the message-ids for the manifest; None to leave them out.

        Raises:
            SpoolFullError: there is no room for the segment; nothing has changed.
            SpoolError: writing took more than an hour, e.g. because the process was stopped meanwhile. The segment may be deleted by now, so
                its messages must not be accepted; nothing more may be written to this epoch.
            OSError: the segment could not be written; nothing more may be written to this epoch.
        """
        # The first clock may be set, the second may stand still while the machine sleeps.
        clocks = time.time(), time.monotonic()
        octets = io.BytesIO()
        fill(octets)
        made = octets.getvalue()
        manifest = Manifest(self._lane, self.epoch.name, self.end, self.end + rows, len(made))
        try:
            self._persist(manifest.segment, made)
            self._publish(manifest, ids, clocks)
        except SpoolFullError:
            self._rested = time.monotonic() + _REST
            raise
        self._check_time(*clocks)
        with self._guard:
            self._rested = 0.0
            self._written.append(_Written(manifest, time.time()))
            self._size += manifest.octets
            self.end = manifest.end

    def _publish(self, manifest: Manifest, ids: list[str | None] | None, clocks: tuple[float, float]) -> None:
        """Store the manifest of a stored segment: readers count its rows from now on."""
        self._check_time(*clocks)
        content = {
            "version": _VERSION,
            "rows": manifest.end - manifest.first,
            "octets": manifest.octets,
            "ids": ids,
        }
        self._persist(manifest.name, json.dumps(content).encode())

    def _check_time(self, wall: float, steady: float) -> None:
        if max(time.time() - wall, time.monotonic() - steady) > _PUBLISHED:
            raise SpoolError(
                f"{self.where}: a segment was under way for too long, and is given up; the peer sends its messages again"
            )

    def _persist(self, name: str, octets: bytes) -> None:
        """Store a name, and retry for ``patience`` seconds if the store fails."""
        deadline = time.monotonic() + self._patience
        pause = _FIRST_PAUSE
        failure: OSError | None = None
        while True:
            try:
                self._store.put(name, octets)
            except SpoolFullError as full:
                if failure is None:
                    raise
                # The attempt before may have written the name nevertheless, so that the epoch cannot be continued.
                failure = OSError(errno.ENOSPC, str(full))
            except OSError as wrong:
                failure = wrong
            else:
                return
            if time.monotonic() + pause > deadline:
                raise failure
            _log.warning("%s: %s; trying again in %.1f s", self.where, failure, pause)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def read_note(self, name: str) -> str | None:
        """Return the content of a small file of the lane; None if there is no such file."""
        found = self._store.get(f"lanes/{self._lane}/{name}")
        return None if found is None else found.decode()

    def write_note(self, name: str, text: str) -> None:
        """Write a small file of the lane atomically.

        Raises:
            SpoolFullError: there is no room for the file; nothing has changed.
            OSError: the file could not be written.
        """
        self._store.put(f"lanes/{self._lane}/{name}", text.encode())

    def show_figures(self, name: str, text: str) -> None:
        """Write a file of figures, which need not survive a crash."""
        self._store.put(f"lanes/{self._lane}/{name}", text.encode(), lasting=False)

    # -- changes by other processes ---------------------------------------------------------

    def refresh(self) -> None:
        """Read which rows are consumed, and check that no other receiver has taken over.

        Raises:
            SpoolError: another receiver has taken over.
            OSError: the store cannot be read now.
        """
        later = [each for each in self._epochs() if each > self.epoch]
        if later:
            raise SpoolError(
                f"{self.where}: another receiver began with epoch {max(later).number}, and this one has {self.epoch.number}: "
                "each lane has one receiver. The rows that this one has written stay valid"
            )
        self._refresh_consumed()

    def _refresh_consumed(self) -> None:
        found = read_consumed(self._store)
        consumed = self._consumed if found is None else found[1]
        with self._guard:
            low = max(self.low, consumed.get(f"{self._lane}/{self.epoch.name}", 0))
            if low > self.low:
                self._rested = 0.0
            self.low = low
            self._consumed = consumed
            rows, kept = 0, list[_Written]()
            size = 0
            for each in reversed(self._written):
                manifest = each.manifest
                waits = manifest.end > consumed.get(manifest.key, 0)
                if waits or rows < max(1, self._keep):
                    kept.append(each)
                rows += manifest.end - manifest.first
                size += manifest.octets if waits else 0
            self._written, self._size = kept[::-1], size

    @property
    def full(self) -> bool:
        """Whether to receive no more: ``max_bytes`` is reached, or the store had no room."""
        if time.monotonic() < self._rested:
            return True
        return self._max_bytes is not None and self._size >= self._max_bytes

    @property
    def size(self) -> int:
        """The octets of the lane's unconsumed segments, by the last ``refresh``."""
        return self._size

    @property
    def waiting_since(self) -> float | None:
        """When the oldest unconsumed row of this epoch was written, in seconds since 1970.

        None if all rows are consumed.
        """
        with self._guard:
            return next((each.at for each in self._written if each.at and each.manifest.end > self.low), None)

    @property
    def segments(self) -> list[str]:
        """The sources of the last segments of the lane, oldest first (``open_source``).

        Some may be deleted by now.
        """
        with self._guard:
            rows = 0
            found: list[str] = []
            for each in reversed(self._written):
                if rows >= max(1, self._keep):
                    break
                rows += each.manifest.end - each.manifest.first
                found.append(self._store.source(each.manifest.segment))
            return found[::-1]

    def close(self) -> None:
        """Release the lane, so that another receiver may open it."""
        if self._lock is not None:
            self._lock.close()


def read_consumed(store: Store) -> tuple[str, Positions] | None:
    """Return the id of the query that consumes rows, and the consumed positions.

    None if the file does not exist, or is being written just now.

    Raises:
        SpoolError: the file is of a newer version.
        OSError: the file cannot be read.
    """
    octets = store.get(CONSUMED)
    try:
        state = json.loads(octets or b"")
    except ValueError:
        return None
    if state["version"] != _VERSION:
        raise SpoolError(
            f"{CONSUMED} of {store.where} is of version {state['version']}, and this program knows version {_VERSION}: "
            "use a newer trio-amqp10"
        )
    return str(state["reader"]), dict(state["rows"])
