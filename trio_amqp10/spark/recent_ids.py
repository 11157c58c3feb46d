"""RecentIds: message-ids that the spool has had lately, to drop duplicates.

An id is what the properties of a message say, and its type; so "7" and 7 differ (3.2.4, 3.2.11).

Knows the octets of messages; neither rows nor files.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.message.sections import PROPERTIES

from . import section_columns

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["RecentIds"]

_MOST_TAILS: Final = 4096
"""Properties that are remembered, because many messages have the same but for their id."""


class RecentIds:
    """The keys of the last rows.

    Args:
        window: how many.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._keys: OrderedDict[str, None] = OrderedDict()
        self._tails: section_columns.Tails = {}

    def key(self, payload: bytes) -> str | None:
        """The id of a message; None if it has none, or cannot be read."""
        if len(self._tails) > _MOST_TAILS:
            self._tails.clear()
        try:
            span = section_columns.split(payload)[PROPERTIES]
            said = section_columns.properties(payload, span, self._tails)
        except RemoteProtocolError:
            return None
        return None if said is None or said[0] is None else f"{said[1]}:{said[0]}"

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
