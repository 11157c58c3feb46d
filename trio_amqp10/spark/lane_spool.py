"""LaneSpool: the spool of one lane, to which one receiver writes, here or anywhere.

It is to a receiver what ``Spool`` is, but in a store, whose rows somebody else reads and consumes. A segment is put,
then its manifest; only then does ``write`` return, and are the messages accepted. What names they have says ``manifests``.

A store may fail for a moment: the same octets are put again under the same name, for as long as ``patience`` allows. Then the receiver
is to end, for an epoch may have no two segments that begin alike; whoever comes next has an epoch of its own.

Where the store has locks, a second receiver of the lane is refused. Where it has none, both write, nothing of either is lost, and the
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

from .failure_points import passing
from .manifests import LANE, Catalog, Epoch, Manifest
from .spool import SpoolError, SpoolFullError
from .storage import open_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from .manifests import Positions
    from .storage import Store

__all__ = ["CONSUMED", "LaneSpool", "read_consumed"]

_log = logging.getLogger("trio_amqp10.spark")

CONSUMED: Final = "consumed.json"
"""Which rows are consumed: ``{"version": 1, "reader": who says so, "rows": positions}``."""
_VERSION: Final = 1
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
_REST: Final = 1.0
"""Seconds until a disk that was full may have room again."""
_EPOCHS_KEPT: Final = 4
_PUBLISHED: Final = 3600.0
"""Seconds from the beginning of a segment to its manifest, at most.

After a day a segment without one is deleted (``lanes_reader``).
"""


class _Written(NamedTuple):
    manifest: Manifest
    at: float
    """Seconds since 1970, or 0.0 if another epoch wrote it."""


class LaneSpool:
    """What one receiver of a lane has written, and what was there before it.

    Args:
        where: a folder or a URI.
        lane: its name.
        max_bytes: octets of the lane that are not consumed, from which on it is ``full``; None for never.
        keep: consumed rows that ``segments`` has at least.
        patience: seconds for which the store may fail, or another process hold the lane.
        store: in place of the one of ``where``.

    Attributes:
        id: which lane this is, of which store.
        epoch: of this receiver.
        low: rows of this epoch below are consumed, as far as is known.
        end: the row that comes next.
        where: the store and the lane, for people.
        interval: seconds between two calls of ``refresh`` that make sense.

    Raises:
        SpoolError: the lane has a receiver already, its name cannot be one, or the store is damaged.
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
            raise SpoolError(
                f"a lane cannot be called {lane!r}: letters, digits, - and _ are possible, 63 at most"
            )
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
                    self._store.delete(name)  # its writer is dead, or it would have the lock
        epochs = self._epochs()
        found = Catalog(self._store.names(f"manifests/{self._lane}")).manifests()
        self._written = [_Written(each, 0.0) for each in found]
        lives = [*epochs, *[epoch for each in found if (epoch := Epoch.parse(each.epoch)) is not None]]
        number = max([each.number for each in lives], default=0) + 1
        first = max([each.first for each in lives] + [each.end for each in found], default=0)
        self.epoch: Epoch = Epoch.make(number, first, secrets.token_hex(4))
        begun = {
            "version": _VERSION,
            "at": round(time.time(), 3),
            "host": socket.gethostname(),
            "pid": os.getpid(),
        }
        self._persist(f"lanes/{self._lane}/epochs/{self.epoch.name}.json", json.dumps(begun).encode())
        passing("claimed")
        for each in sorted(epochs)[: -_EPOCHS_KEPT + 1]:
            self._store.delete(f"lanes/{self._lane}/epochs/{each.name}.json")
        self.low: int = first
        self.end: int = first
        self._consumed: dict[str, int] = {}
        self._size = 0
        self._refresh_consumed()

    def _epochs(self) -> list[Epoch]:
        names = self._store.names(f"lanes/{self._lane}/epochs")
        found = [Epoch.parse(name.rpartition("/")[2].removesuffix(".json")) for name in names]
        return [each for each in found if each is not None]

    # -- writing ----------------------------------------------------------------------------

    def write(
        self, rows: int, fill: Callable[[BinaryIO], object], *, ids: list[str | None] | None = None
    ) -> None:
        """Add a segment of so many rows; once this returns, its manifest is there, and it survives a crash.

        Args:
            rows: at least one.
            fill: writes the segment to the file that it is given.
            ids: of the messages, for the manifest; None if they are not wanted there.

        Raises:
            SpoolFullError: there is no room for it; nothing has changed.
            SpoolError: it took more than an hour, as in a process that was stopped meanwhile. What was stored may be deleted by now, and is not to
                be accepted; nothing more may be written to this epoch.
            OSError: it could not be written; nothing more may be written to this epoch.
        """
        # One may be set, the other may stand still while the machine sleeps.
        clocks = time.time(), time.monotonic()
        octets = io.BytesIO()
        fill(octets)
        made = octets.getvalue()
        manifest = Manifest(self._lane, self.epoch.name, self.end, self.end + rows, len(made))
        said = {"version": _VERSION, "rows": rows, "octets": len(made), "ids": ids}
        passing("unwritten")
        try:
            self._persist(manifest.segment, made)
            passing("written")
            self._check_time(*clocks)
            self._persist(manifest.name, json.dumps(said).encode())
        except SpoolFullError:
            self._rested = time.monotonic() + _REST
            raise
        passing("published")
        self._check_time(*clocks)
        with self._guard:
            self._rested = 0.0
            self._written.append(_Written(manifest, time.time()))
            self._size += manifest.octets
            self.end = manifest.end

    def _check_time(self, wall: float, steady: float) -> None:
        if max(time.time() - wall, time.monotonic() - steady) > _PUBLISHED:
            raise SpoolError(
                f"{self.where}: a segment was under way for too long, and is given up; its messages come again"
            )

    def _persist(self, name: str, octets: bytes) -> None:
        """Put it, again and again until it is there, or for as long as may be."""
        deadline = time.monotonic() + self._patience
        pause = _FIRST_PAUSE
        failure: OSError | None = None
        while True:
            try:
                self._store.put(name, octets)
            except SpoolFullError as full:
                if failure is None:
                    raise
                # The attempt before may have written it all the same: no other segment may begin where it does.
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

    def noted(self, name: str) -> str | None:
        """What a small file of the lane says; None where there is none."""
        found = self._store.get(f"lanes/{self._lane}/{name}")
        return None if found is None else found.decode()

    def note(self, name: str, text: str) -> None:
        """Write a small file of the lane: whole, or not at all.

        Raises:
            SpoolFullError: there is no room for it; nothing has changed.
            OSError: it could not be written.
        """
        self._store.put(f"lanes/{self._lane}/{name}", text.encode())

    def show_figures(self, name: str, text: str) -> None:
        """Write a file that nobody depends on."""
        self._store.put(f"lanes/{self._lane}/{name}", text.encode(), lasting=False)

    # -- what others do to it ---------------------------------------------------------------

    def refresh(self) -> None:
        """Look which rows were consumed, and whether another receiver has taken over.

        Raises:
            SpoolError: another one has.
            OSError: it cannot be looked up now.
        """
        later = [each for each in self._epochs() if each > self.epoch]
        if later:
            raise SpoolError(
                f"{self.where}: another receiver began with epoch {max(later).number}, and this one has {self.epoch.number}: "
                "each lane has one receiver. What this one has written counts"
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
        """Whether no more should be taken in: by ``max_bytes``, or because there was no room a moment ago."""
        if time.monotonic() < self._rested:
            return True
        return self._max_bytes is not None and self._size >= self._max_bytes

    @property
    def size(self) -> int:
        """Octets of the lane's segments that are not consumed, as far as is known."""
        return self._size

    @property
    def waiting_since(self) -> float | None:
        """When the oldest row of this epoch that is not consumed was written, in seconds since 1970; None if all are."""
        with self._guard:
            return next((each.at for each in self._written if each.at and each.manifest.end > self.low), None)

    @property
    def segments(self) -> list[str]:
        """What the last segments of the lane are opened by, oldest first; some may be deleted meanwhile."""
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
        """Let another receiver have the lane."""
        if self._lock is not None:
            self._lock.close()


def read_consumed(store: Store) -> tuple[str, Positions] | None:
    """Who has consumed rows, and which; None if nothing says so, or it is being written just now.

    Raises:
        SpoolError: a newer version has written it.
        OSError: it cannot be read.
    """
    octets = store.get(CONSUMED)
    try:
        said = json.loads(octets or b"")
    except ValueError:
        return None
    if said["version"] != _VERSION:
        raise SpoolError(
            f"{CONSUMED} of {store.where} is of version {said['version']}, and this program knows version {_VERSION}: "
            "use a newer trio-amqp10"
        )
    return str(said["reader"]), dict(said["rows"])
