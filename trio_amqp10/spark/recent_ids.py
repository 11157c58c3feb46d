"""RecentIds: the message-ids that the spool has had lately, to drop duplicates.

The key of a message is its message-id with the type of the id, so "7" and 7 differ (3.2.4, 3.2.11).

Knows the octets of messages; neither rows nor files.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp10.message.sections import PROPERTIES
from trio_amqp10.core.errors import RemoteProtocolError

from . import section_columns

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_TAILS: Final = 4096
"""The most remembered tails of properties; many messages differ only in their id."""


class RecentIds:
    """The keys of the last rows.

    Args:
        window: the most keys that are remembered.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._keys: OrderedDict[str, None] = OrderedDict()
        self._tails: section_columns.Tails = {}

    def key(self, payload: bytes) -> str | None:
        """Return the key of a message; None if it has no id, or cannot be decoded."""
        if len(self._tails) > _MOST_TAILS:
            self._tails.clear()
        try:
            span = section_columns.split(payload)[PROPERTIES]
            fields = section_columns.properties(payload, span, self._tails)
        except RemoteProtocolError:
            return None
        return None if fields is None or fields[0] is None else f"{fields[1]}:{fields[0]}"

    def add(self, keys: Iterable[str | None]) -> None:
        """Remember the keys of new rows of the spool; None for a row without an id."""
        for key in keys:
            if key is not None:
                self._keys[key] = None
                self._keys.move_to_end(key)
                while len(self._keys) > self._window:
                    self._keys.popitem(last=False)

    def fresh(self, keys: list[str | None]) -> list[int]:
        """Return the places in ``keys`` of the messages that are no duplicates.

        A message without an id is never a duplicate.
        """
        here: set[str] = set()
        places: list[int] = []
        for place, key in enumerate(keys):
            if key is None or not (key in self._keys or key in here):
                places.append(place)
                if key is not None:
                    here.add(key)
        return places
