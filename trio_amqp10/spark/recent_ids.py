"""RecentIds: message-ids that the spool has had lately, to drop duplicates.

Knows keys, and where a segment keeps those of its rows; knows no message.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from .schema import IDS, annotation

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["RecentIds"]


class RecentIds:
    """The keys of the last rows.

    Args:
        window: how many.
        segments: files of the spool, oldest first, to begin with what they have.
    """

    def __init__(self, window: int, segments: Iterable[Path]) -> None:
        self._window = window
        self._keys: OrderedDict[str, None] = OrderedDict()
        for path in segments:
            self.add(annotation(path, IDS) or ())

    def add(self, keys: Iterable[str | None]) -> None:
        """These rows are in the spool now; None for a message without an id."""
        for key in keys:
            if key is not None:
                self._keys[key] = None
                self._keys.move_to_end(key)
                while len(self._keys) > self._window:
                    self._keys.popitem(last=False)

    def fresh(self, keys: list[str | None]) -> list[int]:
        """The places of those that are not in the spool, nor before in ``keys``, nor without an id."""
        here: set[str] = set()
        places: list[int] = []
        for place, key in enumerate(keys):
            if key is None or not (key in self._keys or key in here):
                places.append(place)
                if key is not None:
                    here.add(key)
        return places
