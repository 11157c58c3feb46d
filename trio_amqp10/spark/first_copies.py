"""First copies: of the rows of a batch, those whose ids were not there before.

Knows slices and ids; neither files nor lanes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .spool import Slice

__all__ = ["Identified", "first_copies"]


class Identified(NamedTuple):
    """Rows, and the id of each; None for one without an id, which is never a copy."""

    rows: Slice
    ids: list[str | None]


def first_copies(before: Iterable[Identified], batch: Iterable[Identified]) -> list[Slice]:
    """The rows of a batch without those whose ids are among those before, or earlier in the batch."""
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
