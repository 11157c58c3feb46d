"""QueryWatch: figures of the queries of a session, after each batch.

Spark notifies a listener of each batch, with its offsets. A receiver writes its figures into a file beside the spool
(``receiving_figures``). Both are combined here by the id of the spool, which is in the offsets.

What waits is computed from the files of the spool (``spool_figures``), of a folder or of an object store.

Knows the progress of queries as JSON, and those files; imports PySpark only to watch a session.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, cast

from .option_values import location
from .spool import SpoolError
from .spool_figures import lanes_waiting, own_waiting, parsed, reports, spool_id
from .storage import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import TracebackType

    from pyspark.sql import SparkSession

    from .spool import Waiting
    from .storage import Store

_log = logging.getLogger("trio_amqp10.spark")

_SILENT: Final = 60.0
"""Seconds after which a lane counts as one without a receiver.

A receiver writes its figures at least every ten seconds.
"""
_AGE: Final = 10.0
"""Seconds for which figures of an object store are used again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFigures:
    """The figures of a query after a batch, or while it is idle.

    Attributes:
        query: the name of the query, or its id if it has no name.
        batch: the number of the batch.
        rows: the rows of the batch, from all sources.
        rows_per_second: the rows that Spark processed a second; 0.0 for a batch without rows.
        waiting: the rows of sources of this format that are not in a batch yet; None if there is no such source.
        lag_seconds: for how long the oldest row that is in no batch has waited in the spool; 0.0 if there is none. This and
            all following figures are None if the query has no spool among the watched ones.
        lanes: the rows of each lane that are in no batch, by the name of the lane; empty for a spool without lanes.
        depth: the messages that wait at the peer, by its last flow; 0 if it does not report them.
        received: the messages that came since the receiver was started, including redeliveries.
        duplicates: the messages that were dropped, because the spool had them already.
        rejected: the messages that could not be decoded, and were rejected.
        reconnects: the connections that were opened after the first.
        full: whether the spool is full. From ``depth`` on, figures are those of receivers, and None if there is none.
    """

    query: str
    batch: int
    rows: int
    rows_per_second: float
    waiting: int | None = None
    lag_seconds: float | None = None
    lanes: Mapping[str, int] | None = None
    depth: int | None = None
    received: int | None = None
    duplicates: int | None = None
    rejected: int | None = None
    reconnects: int | None = None
    full: bool | None = None

    def __str__(self) -> str:
        parts = [f"batch {self.batch}: {self.rows:,} rows"]
        if self.rows:
            parts.append(f"{self.rows_per_second:,.0f} rows/s")
        if self.waiting is not None:
            parts.append(f"{self.waiting:,} rows wait")
        if self.lag_seconds is not None:
            parts.append(f"the oldest for {self.lag_seconds:.1f} s")
        if self.lanes:
            parts.append(f"in {len(self.lanes)} lanes")
        if self.depth:
            parts.append(f"{self.depth:,} messages wait at the peer")
        counted = (
            ("duplicates", self.duplicates),
            ("reconnects", self.reconnects),
            ("rejected", self.rejected),
        )
        parts += [f"{number:,} {name}" for name, number in counted if number]
        if self.full:
            parts.append("the spool is full")
        return f"{self.query}: {', '.join(parts)}"


class QueryWatch:
    """Watches all queries of a session: ``with QueryWatch(spark, folder) as watch``.

    After each report of Spark on a query, its figures are in ``latest``, are logged to ``trio_amqp10.spark`` at level INFO, and are passed
    to ``on_figures``, in a thread of Spark.

    Args:
        session: the session whose queries are watched.
        spools: the folders or URIs of ``spool`` options, as this process sees them. From an object store, files are read at most every ten
            seconds.
        on_figures: called with the figures of each report; an exception that it raises is logged.

    Attributes:
        latest: the last figures by name of the query, or by id if it has no name.

    Raises:
        SpoolError: a URI cannot be used.
        ValueError: a URI has an unknown scheme.
    """

    def __init__(
        self,
        session: SparkSession,
        *spools: str | Path,
        on_figures: Callable[[QueryFigures], object] | None = None,
    ) -> None:
        self.latest: dict[str, QueryFigures] = {}
        self._session = session
        self._spools = [WatchedSpool(open_store(location(str(each)))) for each in spools]
        self._on_figures = on_figures
        self._listener = _listener(self._report)
        session.streams.addListener(self._listener)

    def close(self) -> None:
        """Stop watching. Further calls have no effect."""
        listener, self._listener = self._listener, None
        if listener is not None:
            self._session.streams.removeListener(listener)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def _report(self, progress: str) -> None:
        try:
            figures = figures_of(json.loads(progress), self._spools)
            self.latest[figures.query] = figures
            _log.info("%s", figures)
            if self._on_figures is not None:
                self._on_figures(figures)
        except Exception:  # Spark would log it as a failure of its own
            _log.exception("a report on a query could not be read")


def _listener(report: Callable[[str], None]) -> Any:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Listener(StreamingQueryListener):
        """Passes the reports of Spark on."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's names, here and below
            """Do nothing: there are no figures yet."""

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            """Pass a report on, after each batch and sometimes in between."""
            report(event.progress.json)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            """Do nothing: there are no new figures."""

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            """Do nothing: the last figures of the query stay."""

    return Listener()


class _Found(NamedTuple):
    """The rows that wait in a spool and in its lanes, and the reports of receivers."""

    own: Waiting
    lanes: dict[str, Waiting]
    heard: list[dict[str, Any]]


class WatchedSpool:
    """The figures of one spool; those of an object store are kept for a while.

    Args:
        store: of the spool.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._id: str | None = None
        self._asked_at: float | None = None
        self._read_at: float | None = None
        self._found: _Found | None = None

    def figures(self, ends: list[dict[str, Any]]) -> _Found | None:
        """Return the figures, given the offsets up to which a query has taken rows.

        The last figures if the store cannot be read just now. None if there are none, or the offsets belong to other spools.
        """
        named = {each["spool"]: each for each in ends if "spool" in each}
        try:
            if self._id not in named and self._is_due(self._asked_at):
                self._asked_at = time.monotonic()
                self._id = spool_id(self._store)
            if self._id in named and self._is_due(self._read_at):
                self._read_at = time.monotonic()
                self._found = self._read(named[self._id])
        except (OSError, SpoolError) as wrong:
            _log.warning("the figures of %s cannot be read now: %s", self._store.where, wrong)
        return self._found if self._id in named else None

    def _is_due(self, last: float | None) -> bool:
        """Whether the store may be read, given when it was read the last time."""
        return last is None or not self._store.remote or time.monotonic() - last >= _AGE

    def _read(self, end: dict[str, Any]) -> _Found:
        found = [parsed(octets) or {} for octets in reports(self._store).values()]
        heard = [each for each in found if time.time() - each.get("at", 0.0) < _SILENT]
        row, lanes = end.get("seq"), end.get("lanes")
        own = own_waiting(self._store, row if isinstance(row, int) else None)
        if not isinstance(lanes, dict):
            return _Found(own, {}, heard)
        return _Found(own, lanes_waiting(self._store, cast("dict[str, int]", lanes)), heard)


def figures_of(progress: Mapping[str, Any], spools: list[WatchedSpool]) -> QueryFigures:
    """Combine Spark's report on a query with the figures of its spools.

    Args:
        progress: the report, from JSON.
        spools: the watched spools.
    """
    waiting: int | None = None
    ends: list[dict[str, Any]] = []
    sources: list[dict[str, Any]] = progress.get("sources") or []
    for source in sources:
        end, latest = _offset(source.get("endOffset")), _offset(source.get("latestOffset"))
        if end is None:
            continue
        ends.append(end)
        rows = _between(end, end if latest is None else latest)
        if rows is not None:
            waiting = rows + (waiting or 0)
    found = [figures for each in spools if (figures := each.figures(ends)) is not None]
    return QueryFigures(
        query=str(progress.get("name") or progress["id"]),
        batch=int(progress["batchId"]),
        rows=int(progress.get("numInputRows") or 0),
        rows_per_second=_rate(progress.get("processedRowsPerSecond")),
        waiting=waiting,
        **(_summed(found) if found else {}),
    )


def _summed(found: list[_Found]) -> dict[str, Any]:
    every = [each for own, lanes, _ in found for each in (own, *lanes.values())]
    since = min([each.since for each in every if each.since is not None], default=None)
    waiting = Counter[str]()  # a lane of the same name may be in two spools
    for _, lanes, _ in found:
        waiting.update({lane: waits.rows for lane, waits in lanes.items()})
    summed: dict[str, Any] = {
        "lag_seconds": 0.0 if since is None else round(max(0.0, time.time() - since), 3),
        "lanes": dict(waiting),
    }
    heard = [each for _, _, reported in found for each in reported]
    if heard:
        summed |= {
            name: sum(each.get(name, 0) for each in heard)
            for name in ("depth", "received", "duplicates", "rejected")
        }
        summed["reconnects"] = sum(max(0, each.get("connections", 0) - 1) for each in heard)
        summed["full"] = any(each.get("full") for each in heard)
    return summed


def _rate(value: Any) -> float:
    """Return a rate; 0.0 for NaN or Infinity, of a batch that took no time."""
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else 0.0


def _offset(text: Any) -> dict[str, Any] | None:
    """Return an offset, which Spark reports as a JSON object or as a text of JSON.

    None if it is neither.
    """
    if isinstance(text, str):
        try:
            text = json.loads(text)
        except ValueError:
            return None
    return cast("dict[str, Any]", text) if isinstance(text, dict) else None


def _between(end: dict[str, Any], latest: dict[str, Any]) -> int | None:
    """Return the rows between two offsets; None if they are of another format."""
    if "spool" in end:
        taken: dict[str, int] = end.get("lanes") or {}
        there: dict[str, int] = latest.get("lanes") or {}
        pairs = [(end.get("seq"), latest.get("seq"))]
        pairs += [(taken.get(epoch, _first_row(epoch)), row) for epoch, row in there.items()]
    else:
        pairs = [(end.get(log, number), number) for log, number in latest.items()]
    if not all(isinstance(one, int) and isinstance(two, int) for one, two in pairs):
        return None
    return sum(max(0, two - one) for one, two in pairs)  # type: ignore[operator]


def _first_row(epoch: str) -> int:
    """Return the first row of a lane's epoch, from its name (``manifest_catalog``)."""
    return int(epoch.split("-")[-2])
