"""Figures of a spool: what its receivers report, and what waits by its files.

A receiver reports while it runs (``receiving_figures``). What waits is computed here from names and times, of a folder or of an object
store. So it is right also when the receiver has ended, and for a lane in another place.

Knows stores and names; neither messages nor Spark.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from .lane_spool import read_consumed
from .manifest_catalog import Catalog
from .receiving_figures import FILE
from .spool import SpoolError, Waiting, rows_waiting

if TYPE_CHECKING:
    from .manifest_catalog import Manifest, Positions
    from .storage import Store

IDENTITY: Final = "spool.json"


def spool_id(store: Store) -> str | None:
    """Return the id of the spool in a store; None if there is none.

    Raises:
        OSError: the store cannot be read.
    """
    found = parsed(store.get(IDENTITY))
    return None if found is None or "spool" not in found else str(found["spool"])


def reports(store: Store) -> dict[str, bytes]:
    """Return the files in which receivers report, by folder; ``.`` is the spool's.

    Raises:
        OSError: the store cannot be read.
    """
    names = [FILE, *sorted(name for name in store.names("lanes") if name.endswith(f"/{FILE}"))]
    found = {name: store.get(name) for name in names}
    return {
        name.removesuffix(f"/{FILE}") if "/" in name else ".": octets
        for name, octets in found.items()
        if octets is not None
    }


def parsed(octets: bytes | None) -> dict[str, Any] | None:
    """Return the object in a file of JSON; None if it cannot be read just now."""
    try:
        found: Any = json.loads(octets or b"")
    except ValueError:
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def own_waiting(store: Store, row: int | None = None) -> Waiting:
    """Return the rows that wait in a spool, without those of its lanes.

    Args:
        store: of the spool.
        row: the first row that may wait; None for the first one that is not noted as consumed.

    Raises:
        OSError: the store cannot be read.
    """
    return Waiting(0, 0, None) if store.remote else rows_waiting(Path(store.where), row)


def lanes_waiting(store: Store, start: Positions | None = None) -> dict[str, Waiting]:
    """Return the rows that wait in each lane of a store.

    Args:
        store: of the lanes.
        start: the position from which on rows wait; None for the one that is noted in the store.

    Raises:
        SpoolError: the store is of a newer version.
        OSError: the store cannot be read.
    """
    if start is None:
        consumed = read_consumed(store)
        start = {} if consumed is None else consumed[1]
    times = store.times("manifests")
    catalog = Catalog(times)
    position = catalog.begun(start)
    lanes: defaultdict[str, list[Manifest]] = defaultdict(list)
    for key, manifests in catalog.unread(start).items():
        lanes[key.partition("/")[0]] += manifests
    return {
        lane: Waiting(
            sum(each.end - max(each.first, position[each.key]) for each in waiting),
            sum(each.octets for each in waiting),
            min([times[each.name] for each in waiting], default=None),
        )
        for lane, waiting in lanes.items()
    }


def present_figures(store: Store) -> dict[str, dict[str, Any]]:
    """Return the reports of receivers, with what waits at present; by folder.

    A lane without a report is there if it has rows that wait. A folder without a spool keeps the figures of its report.

    Raises:
        SpoolError: a report cannot be read, or the store is of a newer version.
        OSError: the store cannot be read.
    """
    found: dict[str, dict[str, Any]] = {}
    for folder, octets in reports(store).items():
        figures = parsed(octets)
        if figures is None or "rows_waiting" not in figures:
            raise SpoolError(
                f"{folder}/{FILE} of {store.where} has no figures of a spool: expected the file of a receiver"
            )
        found[folder] = figures
    if spool_id(store) is None:
        return found
    present = {f"lanes/{lane}": waiting for lane, waiting in lanes_waiting(store).items()}
    if "." in found:
        present["."] = own_waiting(store)
    for folder, waiting in present.items():
        if folder not in found and not waiting.rows:
            continue
        lag = 0.0 if waiting.since is None else round(max(0.0, time.time() - waiting.since), 3)
        found.setdefault(folder, {"spool": folder, "at": waiting.since}).update(
            rows_waiting=waiting.rows, octets_waiting=waiting.octets, lag_seconds=lag
        )
    return found
