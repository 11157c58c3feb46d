"""QueryWatch: how the queries of a session stand, after each batch: rows, what waits, and what their receivers did.

Spark tells a listener of each batch where it began and ended. What a receiver does it tells no one but a file beside the spool
(``receiving_figures``); both are put together here by the id of the spool, which is in the offsets.

Knows the progress of queries as JSON, and that file; PySpark only where a session is watched.
"""

from __future__ import annotations

import json
import logging
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from pyspark.sql import SparkSession

__all__ = ["QueryFigures", "QueryWatch"]

_log = logging.getLogger("trio_amqp10.spark")

_FILE: Final = "metrics.json"
_IDENTITY: Final = "spool.json"
_SILENT: Final = 60.0
"""Seconds after which a lane has no receiver: one writes its figures every ten, whatever happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFigures:
    """A query after a batch, or while it is idle.

    Attributes:
        query: its name, or its id if it has none.
        batch: the number of the batch.
        rows: of the batch, from all its sources.
        rows_per_second: that Spark processed in it; 0.0 for a batch without rows.
        waiting: rows that its sources of this format know and no batch has yet; None if it has no such source.
        lag_seconds: for how long the oldest row has waited in the spool. This and all that follows is None
            if the query has no spool among the folders that are watched.
        depth: messages that the peer last said were waiting there; 0 if it says nothing.
        received: messages that came since the receiver was started, redeliveries among them.
        duplicates: that were dropped, because the spool had them.
        rejected: that could not be decoded, and were rejected.
        reconnects: connections that were made anew.
        full: whether the spool takes no more.
    """

    query: str
    batch: int
    rows: int
    rows_per_second: float
    waiting: int | None = None
    lag_seconds: float | None = None
    depth: int | None = None
    received: int | None = None
    duplicates: int | None = None
    rejected: int | None = None
    reconnects: int | None = None
    full: bool | None = None

    def __str__(self) -> str:
        said = [f"batch {self.batch}: {self.rows:,} rows"]
        if self.rows:
            said.append(f"{self.rows_per_second:,.0f} rows/s")
        if self.waiting is not None:
            said.append(f"{self.waiting:,} rows wait")
        if self.lag_seconds is not None:
            said.append(f"the oldest for {self.lag_seconds:.1f} s")
        if self.depth:
            said.append(f"{self.depth:,} messages wait at the peer")
        counted = (
            ("duplicates", self.duplicates),
            ("reconnects", self.reconnects),
            ("rejected", self.rejected),
        )
        said += [f"{number:,} {name}" for name, number in counted if number]
        if self.full:
            said.append("the spool is full")
        return f"{self.query}: {', '.join(said)}"


class QueryWatch:
    """Follows all queries of a session: ``with QueryWatch(spark, f"{folder}/spool") as watch``.

    Each time that Spark reports on a query, its figures are in ``latest``, are logged to ``trio_amqp10.spark`` at level INFO, and are handed to
    ``on_figures``, in a thread of Spark's.

    Args:
        session: whose queries are followed.
        spools: folders of ``spool`` options, as this process sees them.
        on_figures: called with each report; what it raises is logged.

    Attributes:
        latest: figures by name of the query, or by id if it has no name.
    """

    def __init__(
        self,
        session: SparkSession,
        *spools: str | Path,
        on_figures: Callable[[QueryFigures], object] | None = None,
    ) -> None:
        self.latest: dict[str, QueryFigures] = {}
        self._session = session
        self._spools = [Path(each) for each in spools]
        self._on_figures = on_figures
        self._listener = _listener(self._report)
        session.streams.addListener(self._listener)

    def close(self) -> None:
        """Follow them no more. Once is enough, and more does no harm."""
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
        except Exception:  # Spark would log it as its own
            _log.exception("a report on a query could not be read")


def _listener(report: Callable[[str], None]) -> Any:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Listener(StreamingQueryListener):
        """What Spark calls."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's names, here and below
            """Nothing is known yet."""

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            """After each batch, and now and then between."""
            report(event.progress.json)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            """It has no new figures."""

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            """Its last figures stay."""

    return Listener()


def figures_of(progress: Mapping[str, Any], spools: list[Path]) -> QueryFigures:
    """What Spark reports on a query, and what the files of its spools say.

    Args:
        progress: as Spark has it in JSON.
        spools: folders where to look for those files.
    """
    waiting: int | None = None
    named: set[str] = set()
    sources: list[dict[str, Any]] = progress.get("sources") or []
    for source in sources:
        end, latest = _offset(source.get("endOffset")), _offset(source.get("latestOffset"))
        if end is None:
            continue
        if isinstance(end.get("spool"), str):
            named.add(end["spool"])
        rows = _between(end, end if latest is None else latest)
        if rows is not None:
            waiting = rows + (waiting or 0)
    told = [each for folder in spools for each in _metrics(folder, named)]
    summed: dict[str, Any] = {}
    if told:
        summed = {
            name: sum(each[name] for each in told) for name in ("depth", "received", "duplicates", "rejected")
        }
        summed["reconnects"] = sum(max(0, each["connections"] - 1) for each in told)
        summed["lag_seconds"] = max(each["lag_seconds"] for each in told)
        summed["full"] = any(each["full"] for each in told)
    return QueryFigures(
        query=str(progress.get("name") or progress["id"]),
        batch=int(progress["batchId"]),
        rows=int(progress.get("numInputRows") or 0),
        rows_per_second=_rate(progress.get("processedRowsPerSecond")),
        waiting=waiting,
        **summed,
    )


def _rate(value: Any) -> float:
    """Spark says NaN or Infinity of a batch that took no time, as text or as a number."""
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else 0.0


def _offset(text: Any) -> dict[str, Any] | None:
    """An offset, which Spark reports as JSON or as text that is JSON; None if it is neither."""
    if isinstance(text, str):
        try:
            text = json.loads(text)
        except ValueError:
            return None
    return cast("dict[str, Any]", text) if isinstance(text, dict) else None


def _between(end: dict[str, Any], latest: dict[str, Any]) -> int | None:
    """Rows between two offsets of a source of this format; None if they are another's."""
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
    """With which row the epoch of a lane begins: its name says so (``manifests``)."""
    return int(epoch.split("-")[-2])


def _metrics(folder: Path, named: set[str]) -> list[dict[str, Any]]:
    """What the files of a spool say, if it is one of those: its own, and one for each lane that has a receiver."""
    own = _read(folder / _FILE)
    found = [own] if own.get("spool") in named else []
    if _read(folder / _IDENTITY).get("spool") in named:
        lanes = map(_read, sorted(folder.glob(f"lanes/*/{_FILE}")))
        found += [each for each in lanes if time.time() - each.get("at", 0.0) < _SILENT]
    return found


def _read(path: Path) -> dict[str, Any]:
    """What a file says; nothing if it cannot be read just now."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
