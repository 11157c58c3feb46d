"""Backlog: all received rows that Spark has not consumed, and their receivers.

Rows are in the query's own spool, if one process receives (``lanes=1`` and a folder), and in lanes. Both may have rows of earlier
runs, because ``lanes`` may change: the options decide which receivers run, and all rows that exist are read. An offset holds how far
both are consumed::

    {"spool": UUID, "seq": ROW}                                        the spool
    {"spool": UUID, "seq": ROW, "lanes": {"lane-0/EPOCH": ROW, ...}}   and lanes, if there are any

Knows spools, lanes and receivers, not Spark.
"""

from __future__ import annotations

import gc
import json
import time
import uuid
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from .first_copies import Identified, first_copies
from .lane_processes import LaneProcesses
from .lanes_reader import LaneRows
from .recent_ids import RecentIds
from .segments import keys
from .spool import Spool, SpoolError
from .spool_receiver import SpoolReceiver
from .storage import open_store

if TYPE_CHECKING:
    from .manifest_catalog import Positions
    from .options import QueueOptions
    from .spool import Slice
    from .storage import Store

_OBJECTS_BETWEEN_COLLECTIONS: Final = 100_000
_FAST: Final = 10_000
"""The messages a second above which a larger batch is worth waiting for."""
_LOOK: Final = 0.1
"""Seconds between two checks of lanes while waiting for rows."""
_MEASURED: Final = 0.2
"""The least seconds over which the rate of lanes is measured."""
_SPOOL: Final = "spool.json"


class Position(NamedTuple):
    """The next row of the spool, and of each epoch of each lane."""

    row: int
    lanes: Positions


class Backlog:
    """The rows that a query with these options can read.

    Args:
        options: of the reader.

    Raises:
        SpoolError: another query has the spool open, or the spool is damaged.
        OSError: the store cannot be used.
    """

    def __init__(self, options: QueueOptions) -> None:
        self._options = options
        self._external = options.lanes == "external"
        self._receiver: SpoolReceiver | None = None
        self._processes: LaneProcesses | None = None
        self._snapshot: Positions | None = None
        self._rate = 0.0
        self._measured: tuple[float, int] | None = None
        self._key = RecentIds(0).key
        self._spool_ids: dict[str, list[str | None]] = {}
        self._spool: Spool | None = None
        store = open_store(options.spool)
        if not store.remote:
            self._spool = Spool(store.where, max_bytes=options.spool_max_bytes, keep=options.kept_rows)
        try:
            self.id: str = _identified(store) if self._spool is None else self._spool.id
            self._lanes: LaneRows | None = None
            if options.has_lanes or store.names("manifests"):
                window = options.dedup_window if options.dedup == "message-id" else 0
                self._lanes = LaneRows(store, window=window, patience=options.reconnect_timeout)
        except BaseException:
            self.close()
            raise

    # -- receiving --------------------------------------------------------------------------

    def receive(self, *, emptying: bool) -> None:
        """Start the receivers, unless they run already or other programs receive.

        Args:
            emptying: whether to stop when all messages that are in the queue now were received.
        """
        if self._receiver is not None or self._processes is not None or self._external:
            return
        if self._options.has_lanes:
            self._processes = LaneProcesses(
                self._options, cast("int", self._options.lanes), emptying=emptying
            )
            return
        assert self._spool is not None  # a URI has lanes
        # The process belongs to this reader alone. Rows are made by the thousand and die together, so that frequent
        # searches for reference cycles would cost a sixth of the time.
        gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
        self._receiver = SpoolReceiver(self._options, self._spool, emptying=emptying)

    def check(self) -> None:
        """Raise the failure of a receiver, if one has failed.

        Raises:
            SpoolReceiverError, LaneError: with the peer's condition in its text.
        """
        for receiving in (self._receiver, self._processes):
            if receiving is not None:
                receiving.check()

    def wait(self, start: Position, most: int | None) -> None:
        """Wait until ``most`` rows are there, the queue is empty, or receiving has failed."""
        spool = self._spool
        if self._receiver is not None and spool is not None:
            self._receiver.wait_until(
                lambda: _enough(self.rows(start, self.end(start)), most, full=spool.full)
            )
        while self._processes is not None and not self._processes.finished:
            rows = self.rows(start, self.end(start))
            # A full lane receives nothing until Spark consumes rows, so waiting longer would bring nothing from it.
            if (most is not None and rows >= most) or (rows and self._fills(start)):
                return
            self._processes.check()
            time.sleep(_LOOK)
        if self._lanes is not None:
            self._lanes.expire()

    def _fills(self, start: Position) -> bool:
        """Whether a lane may be full: each has its share of ``spool.maxBytes``."""
        assert self._lanes is not None
        share = self._options.spool_max_bytes // cast("int", self._options.lanes)
        return max(self._lanes.octets(start.lanes).values(), default=0) >= share

    def freeze(self) -> None:
        """Limit this run to the rows that are there now, if other programs receive."""
        if self._external and self._snapshot is None and self._lanes is not None:
            self._snapshot = self._lanes.ends(self._lanes.consumed)

    @property
    def full(self) -> bool:
        """Whether consumed rows must be released at once: the spool or a lane may be full."""
        return self._lanes is not None or (self._spool is not None and self._spool.full)

    def is_resting(self, start: Position) -> bool:
        """Whether nothing more is received until rows after ``start`` are consumed."""
        if self._spool is not None and self._spool.full:
            return True
        return self._processes is not None and self._fills(start)

    @property
    def pressed(self) -> bool:
        """Whether more than 10,000 messages a second arrive at present."""
        return (self._receiver is not None and self._receiver.pressed) or self._rate > _FAST

    # -- what there is ----------------------------------------------------------------------

    def low(self) -> Position:
        """Return the position up to which rows are consumed."""
        return Position(
            0 if self._spool is None else self._spool.low,
            {} if self._lanes is None else dict(self._lanes.consumed),
        )

    def end(self, start: Position) -> Position:
        """Return the end of the rows, given a position to begin from.

        Raises:
            SpoolError: rows are missing.
            OSError: a store cannot be listed.
        """
        ends: Positions = {}
        if self._lanes is not None:
            ends = self._lanes.ends(start.lanes)
            if self._snapshot is not None:
                ends = {
                    key: max(start.lanes.get(key, 0), self._snapshot.get(key, start.lanes.get(key, 0)))
                    for key in ends
                    if key in start.lanes or key in self._snapshot
                }
            self._measure(sum(ends.values()))
        return Position(0 if self._spool is None else self._spool.end, ends)

    def _measure(self, rows: int) -> None:
        now = time.monotonic()
        if self._measured is None:
            self._measured = now, rows
        elif now - self._measured[0] >= _MEASURED:
            self._rate = (rows - self._measured[1]) / (now - self._measured[0])
            self._measured = now, rows

    def rows(self, start: Position, end: Position) -> int:
        """Return how many rows are between two positions, by the last listing."""
        lanes = 0 if self._lanes is None else self._lanes.rows(start.lanes, end.lanes)
        return end.row - start.row + lanes

    def octets(self, start: Position, end: Position) -> float:
        """Return about how many octets are between two positions, by the last listing."""
        lanes = 0.0 if self._lanes is None else self._lanes.octets_between(start.lanes, end.lanes)
        return lanes + (0.0 if self._spool is None else self._spool.octets(start.row, end.row))

    def cut(self, start: Position, end: Position, rows: int | None, octets: int | None) -> Position:
        """Return the end of a batch with limits; the rows of the spool come first.

        Args:
            start: where the batch begins.
            end: where it ends at the latest.
            rows: the most rows; None for no limit.
            octets: about the most octets; None for no limit.
        """
        row = end.row
        if row > start.row:
            if rows is not None:
                row = min(row, start.row + rows)
            if octets is not None and self._spool is not None:
                row = min(row, self._spool.fitting(start.row, octets))
        if self._lanes is None:
            return Position(row, {})
        if row < end.row or (rows is not None and row - start.row >= rows):
            return Position(row, start.lanes)
        left = None if rows is None else rows - (row - start.row)
        return Position(row, self._lanes.cut(start.lanes, end.lanes, left, octets))

    # -- offsets ----------------------------------------------------------------------------

    def offset(self, position: Position) -> dict[str, Any]:
        """Return a position as the offset that Spark keeps in its checkpoint."""
        value: dict[str, Any] = {"spool": self.id, "seq": position.row}
        return value if self._lanes is None else value | {"lanes": position.lanes}

    def position(self, offset: dict[str, Any]) -> Position:
        """Return the position of an offset, of this version or of one without lanes.

        Raises:
            SpoolError: the offset belongs to another spool, or its rows are not there any more.
        """
        name, row = offset.get("spool"), offset.get("seq")
        lanes: Positions = dict(offset.get("lanes") or {})
        if self._spool is not None:
            row = self._spool.check(name, row)
        elif name != self.id:
            raise SpoolError(
                f"the checkpoint belongs to the spool {name}, and this one is {self.id}: give the spool that the query "
                "began with, or begin with a new checkpoint"
            )
        elif row != 0:
            raise SpoolError(f"the checkpoint is at row {row!r} of a folder, and the spool is not one")
        if lanes and self._lanes is None:
            raise SpoolError("the checkpoint has rows of lanes, and the spool has none: rows were lost")
        return Position(row, lanes)

    # -- batches ----------------------------------------------------------------------------

    def slices(self, start: Position, end: Position) -> list[Slice]:
        """Return where the rows of a batch are.

        With ``dedup=message-id`` and lanes, only the first row of each message-id is among them.

        Raises:
            SpoolError: some rows are not there any more.
            OSError: a store cannot be read.
        """
        own = [] if self._spool is None else self._spool.slices(start.row, end.row)
        if self._lanes is None:
            return own
        if self._options.dedup != "message-id":
            return own + self._lanes.batch(start.lanes, end.lanes)
        before, batch = self._lanes.identified(start.lanes, end.lanes)
        kept = [] if self._spool is None else self._spool.kept(start.row, self._options.dedup_window)
        wanted = {str(each.source) for each in (*kept, *own)}
        self._spool_ids = {source: ids for source, ids in self._spool_ids.items() if source in wanted}
        return first_copies([*map(self._identify, kept), *before], [*map(self._identify, own), *batch])

    def _identify(self, rows: Slice) -> Identified:
        source = str(rows.source)
        ids = self._spool_ids.get(source)
        if ids is None:
            ids = self._spool_ids[source] = keys(source, self._key)
        return Identified(rows, ids[rows.start : rows.stop])

    def release(self, position: Position) -> None:
        """Note that rows before a position are consumed, and wake the receivers.

        Raises:
            SpoolError: another query consumes rows of these lanes too.
            OSError: the position cannot be written.
        """
        if self._spool is not None:
            self._spool.release(position.row)
        if self._lanes is not None:
            self._lanes.release(position.lanes)
        if self._receiver is not None:
            self._receiver.released()

    def close(self) -> None:
        """Stop the receivers, and let another query open the spool."""
        receiver, self._receiver = self._receiver, None
        processes, self._processes = self._processes, None
        for receiving in (receiver, processes):
            if receiving is not None:
                receiving.stop()
        if self._spool is not None:
            self._spool.close()


def _enough(rows: int, most: int | None, *, full: bool) -> bool:
    return (most is not None and rows >= most) or (full and rows > 0)


def _identified(store: Store) -> str:
    """Return the id of the spool in a store; write a new one if there is none."""
    octets = store.get(_SPOOL)
    if octets is None:
        name = str(uuid.uuid4())
        store.put(_SPOOL, json.dumps({"spool": name, "version": 1}).encode())
        return name
    try:
        return str(json.loads(octets)["spool"])
    except (ValueError, KeyError, TypeError) as wrong:
        raise SpoolError(f"{_SPOOL} of {store.where} is damaged: {wrong!r}") from None
