"""Selects the rows of a batch whose message-ids have not occurred before.

Knows slices and ids; neither files nor lanes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .spool import Slice


class Identified(NamedTuple):
    """Rows and the message-id of each; a row without an id (None) is never a copy."""

    rows: Slice
    ids: list[str | None]


def first_copies(before: Iterable[Identified], batch: Iterable[Identified]) -> list[Slice]:
    """Return the rows of a batch whose ids are new.

    Args:
        before: rows before the batch.
        batch: the rows of the batch; of several rows with one id the first is returned.
    """
    known: set[str | None] = set()
    for each in before:
        known.update(each.ids)
    found: list[Slice] = []
    for rows, ids in batch:
        known.discard(None)
        here = {*ids}
        if len(here) == len(ids) and known.isdisjoint(here):
            found.append(rows)
        else:
            found += _new(rows, ids, known)
        known |= here
    return found


def _new(rows: Slice, ids: list[str | None], known: set[str | None]) -> list[Slice]:
    found: list[Slice] = []
    seen = known.copy()
    for place, each in enumerate(ids, rows.start):
        if each in seen:
            continue
        if each is not None:
            seen.add(each)
        if found and found[-1].stop == place:
            found[-1] = found[-1]._replace(stop=place + 1)
        else:
            found.append(rows._replace(start=place, stop=place + 1))
    return found
