"""LaneRows: the rows of all lanes of a store, which one query consumes.

Lanes are found by their manifests, and a lane without a receiver is read to its end. A position is a row
for each epoch (``manifest_catalog``). Consumed rows are noted first, then their segments are deleted, then their manifests; the last rows of
each lane stay, so that redelivered messages can be recognised.

A message that a receiver wrote and did not settle, because it died or lost its connection, may be redelivered to any lane, and two
receivers of one lane do not know each other's rows. So with ``dedup=message-id`` the rows of all lanes are compared here (``first_copies``):
the last rows of each lane before a batch with those of the batch. Positions alone decide which rows these are, and they are
not deleted, so that a batch that is planned again has the same rows.

Knows a store, names and ids; neither links nor Spark.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from .first_copies import Identified
from .lane_spool import CONSUMED, read_consumed
from .manifest_catalog import Catalog
from .recent_ids import RecentIds
from .segments import keys
from .spool import Slice, SpoolError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from .manifest_catalog import Manifest, Part, Positions
    from .storage import Store

Result = TypeVar("Result")

_log = logging.getLogger("trio_amqp10.spark")

_VERSION: Final = 1
_AGE: Final = 1.0
"""Seconds for which a listing of an object store is used again.

Spark asks for the latest offset a hundred times a second.
"""
_LISTINGS: Final = 3
"""How many listings must show a gap before rows count as lost."""
_REQUESTS: Final = 8
"""Concurrent requests to an object store."""
_ORPHANED: Final = 24 * 3600.0
"""Seconds after which a segment without a manifest is deleted.

Far more than a receiver may take to publish it (``lane_spool``).
"""
_SWEPT: Final = 3600.0
"""Seconds between two searches for segments without a manifest."""
_MOST_MARKS: Final = 64
"""The most listings that are remembered while their rows are not consumed."""


class LaneRows:
    """The rows of all lanes of one store, and how far they are consumed.

    Making one writes ``consumed.json``, so it takes the lanes over from an earlier reader.

    Args:
        store: the store of the lanes.
        window: the last rows of each lane with which ids are compared; 0 for no comparison.
        patience: seconds for which the store may fail when it is listed or rows are released; meanwhile there are no new rows.

    Attributes:
        consumed: for each epoch, rows below this number are consumed.

    Raises:
        SpoolError: the store is of a newer version.
        OSError: the store cannot be read.
    """

    def __init__(self, store: Store, *, window: int = 0, patience: float = 0.0) -> None:
        self._store = store
        self._patience = patience
        self._fails_since: float | None = None
        self._window = window
        self._reader = str(uuid.uuid4())
        self._listed_at: float | None = None
        self._swept_at: float | None = None
        self._catalog = Catalog(())
        self._marks: list[Positions] = []
        self._ids: dict[Manifest, list[str | None]] = {}
        self._key = RecentIds(0).key
        found = read_consumed(store)
        self.consumed: Positions = {} if found is None else found[1]
        self._note(self.consumed)

    def _note(self, consumed: Positions) -> None:
        state = {"version": _VERSION, "reader": self._reader, "rows": consumed}
        self._store.put(CONSUMED, json.dumps(state).encode())

    # -- listing ----------------------------------------------------------------------------

    def ends(self, start: Positions) -> Positions:
        """Return the end of each epoch, given positions to begin from.

        Raises:
            SpoolError: rows are missing before others that are there.
            OSError: the store cannot be listed.
        """
        now = time.monotonic()
        if self._listed_at is None or not self._store.remote or now - self._listed_at > _AGE:
            self._list()
        listings = 1
        while (gap := self._catalog.gap(start)) is not None:
            if listings == _LISTINGS:
                raise SpoolError(f"{gap} in {self._store.where}: their manifests were deleted")
            self._list()
            listings += 1
        return self._catalog.ends(start)

    def expire(self) -> None:
        """List the store again at the next look, because there are new rows."""
        self._listed_at = None

    def _list(self) -> None:
        with self._patiently():
            self._catalog = Catalog(self._store.names("manifests"))
        self._listed_at = time.monotonic()
        ends = self._catalog.ends({})
        known = self._marks[-1] if self._marks else {}
        if any(row > known.get(key, 0) for key, row in ends.items()):
            if len(self._marks) == _MOST_MARKS:
                del self._marks[::2]
            self._marks.append(ends)

    @contextmanager
    def _patiently(self) -> Generator[None]:
        """Log failures of the store, and raise them only after ``patience`` seconds."""
        try:
            yield
        except SpoolError:
            raise
        except OSError as wrong:
            now = time.monotonic()
            if self._fails_since is None:
                self._fails_since = now
            if now - self._fails_since >= self._patience:
                raise
            _log.warning("%s cannot be used now, and is tried again: %s", self._store.where, wrong)
        else:
            self._fails_since = None

    def rows(self, start: Positions, end: Positions) -> int:
        """Return how many rows are between two positions, including redelivered ones."""
        return _count(self._catalog.parts(start, end))

    def octets_between(self, start: Positions, end: Positions) -> float:
        """Return how many octets are between two positions, by the last listing."""
        return _octets(self._catalog.parts(start, end))

    def octets(self, start: Positions) -> dict[str, float]:
        """Return how many octets of each lane are after a position, by the last listing."""
        found: defaultdict[str, float] = defaultdict(float)
        for key, log in self._catalog.unread(start).items():
            found[key.partition("/")[0]] += sum([each.octets for each in log])
        return found

    def cut(self, start: Positions, end: Positions, rows: int | None, octets: int | None) -> Positions:
        """Return a position so many rows or octets after ``start``, at least one row.

        Rows are taken in the order in which listings first had them, and those of one listing from each lane in proportion. So a
        message and its redelivery are read about as far apart as they came, however many rows wait in any lane.
        """
        parts = self._catalog.parts(start, end)
        total = _count(parts)
        left = total if rows is None else min(total, rows)
        if octets is not None and (weight := _octets(parts)) > octets:
            left = min(left, int(total * octets / weight))
        if left == total:
            return end
        left = max(1, left)
        position = self._catalog.begun(start)
        self._marks = [
            mark for mark in self._marks if any(row > position.get(key, row) for key, row in mark.items())
        ]
        goal = end
        for mark in (*self._marks, end):
            goal = {key: max(at, min(end.get(key, at), mark.get(key, at))) for key, at in position.items()}
            count = self.rows(position, goal)
            if count > left:
                break
            position, left = goal, left - count
        return self._shared(position, goal, left)

    def _shared(self, start: Positions, end: Positions, rows: int) -> Positions:
        """Return a position so many rows after ``start``, from each lane in proportion."""
        lanes: defaultdict[str, list[Part]] = defaultdict(list)
        for part in self._catalog.parts(start, end):
            lanes[part.manifest.lane].append(part)
        total, left = self.rows(start, end), rows
        position = dict(start)
        for place, parts in enumerate(lanes.values(), 1):
            here = _count(parts)
            wanted = left if place == len(lanes) else max(1, here * rows // total)
            room = min(here, wanted, left)
            left -= room
            for manifest, at, stop in parts:
                if room > 0:
                    position[manifest.key] = min(stop, at + room)
                room -= stop - at
        return position

    # -- reading ----------------------------------------------------------------------------

    def batch(self, start: Positions, end: Positions) -> list[Slice]:
        """Return where the rows of a batch are.

        Raises:
            SpoolError: some rows are not there any more.
            OSError: the store cannot be listed.
        """
        parts = self._parts(start, end)
        if _count(parts) < _wanted(self._catalog.begun(start), end):
            self._list()
            parts = self._parts(start, end)
        missing = _wanted(self._catalog.begun(start), end) - _count(parts)
        if missing:
            raise SpoolError(f"{missing} rows of a batch are not in {self._store.where} any more")
        return [self._slice(part) for part in parts]

    def _parts(self, start: Positions, end: Positions) -> list[Part]:
        if self._listed_at is None:
            self._list()
        return self._catalog.parts(start, end)

    def _slice(self, part: Part) -> Slice:
        manifest, start, stop = part
        source = self._store.source(manifest.segment)
        return Slice(source, start - manifest.first, stop - manifest.first, manifest.first)

    def identified(self, start: Positions, end: Positions) -> tuple[list[Identified], list[Identified]]:
        """Return the rows to compare a batch with, and those of the batch.

        Raises:
            SpoolError, OSError: as ``batch``.
        """
        self.batch(start, end)
        before, batch = self._catalog.last(start, self._window), self._catalog.parts(start, end)
        wanted = {part.manifest for part in (*before, *batch)}
        known = {each: ids for each, ids in self._ids.items() if each in wanted}
        unknown = [each for each in wanted if each not in known]
        self._ids = known | dict(zip(unknown, self._for_each(self._read_ids, unknown), strict=True))
        return [self._identified(part) for part in before], [self._identified(part) for part in batch]

    def _identified(self, part: Part) -> Identified:
        first = part.manifest.first
        return Identified(self._slice(part), self._ids[part.manifest][part.start - first : part.stop - first])

    def _for_each(self, call: Callable[[Manifest], Result], manifests: list[Manifest]) -> list[Result]:
        """Call a function for each manifest, and return the results.

        Requests to an object store run concurrently, because a query reads many manifests at its start.
        """
        if not self._store.remote:
            return [call(each) for each in manifests]
        with ThreadPoolExecutor(_REQUESTS) as pool:
            return list(pool.map(call, manifests))

    def _read_ids(self, manifest: Manifest) -> list[str | None]:
        content = json.loads(self._store.get(manifest.name) or b"{}")
        ids: list[str | None] | None = content.get("ids")
        if ids is not None:
            return ids
        try:
            # The receiver had no ``dedup=message-id``, so the ids are read from the messages.
            return keys(self._store.source(manifest.segment), self._key)
        except FileNotFoundError:
            raise SpoolError(
                f"{manifest.segment} is missing in {self._store.where}: rows {manifest.first} to {manifest.end} are lost"
            ) from None

    # -- consuming --------------------------------------------------------------------------

    def release(self, position: Positions) -> None:
        """Note that rows before a position are consumed; delete those that are not kept.

        Raises:
            SpoolError: another query consumes these lanes too.
            OSError: the position cannot be written.
        """
        if all(self.consumed.get(key, -1) >= row for key, row in position.items()):
            return
        with self._patiently():
            self._release(position)

    def _release(self, position: Positions) -> None:
        found = read_consumed(self._store)
        if found is not None and found[0] != self._reader:
            raise SpoolError(
                f"another query consumes the rows of {self._store.where}: each needs a spool of its own"
            )
        consumed = {key: max(row, self.consumed.get(key, 0)) for key, row in position.items()}
        self._note(consumed)
        self.consumed = consumed
        self._sweep()
        kept = {part.manifest for part in self._catalog.last(self.consumed, max(1, self._window))}
        gone = [
            each
            for each in self._catalog.manifests()
            if each.end <= self.consumed.get(each.key, 0) and each not in kept
        ]
        if not gone:
            return
        self._for_each(self._delete, gone)
        left = {*self._catalog.manifests()}.difference(gone)
        self._catalog = Catalog([each.name for each in left])

    def _sweep(self) -> None:
        """Delete segments whose receivers died before they published them.

        The age of a segment is counted from the newest one: so only the clock of the store matters, and nothing is deleted while no new
        segment comes.
        """
        now = time.monotonic()
        if self._swept_at is not None and now - self._swept_at < _SWEPT:
            return
        self._swept_at = now
        times = self._store.times("segments")
        published = {each.segment for each in Catalog(self._store.names("manifests")).manifests()}
        newest = max(times.values(), default=0.0)
        for name, written in times.items():
            if newest - written > _ORPHANED and name not in published:
                _log.warning("%s in %s was never published, and is deleted", name, self._store.where)
                self._store.delete(name)

    def _delete(self, manifest: Manifest) -> None:
        """Delete a segment, and then its manifest, without which it would not be found."""
        self._store.delete(manifest.segment)
        self._store.delete(manifest.name)


def _octets(parts: list[Part]) -> float:
    """Return the octets of parts, as shares of their segments."""
    return sum([each.octets * (stop - start) / (each.end - each.first) for each, start, stop in parts])


def _count(parts: list[Part]) -> int:
    return sum([each.stop - each.start for each in parts])


def _wanted(begun: Positions, end: Positions) -> int:
    return sum([row - begun.get(key, 0) for key, row in end.items()])
