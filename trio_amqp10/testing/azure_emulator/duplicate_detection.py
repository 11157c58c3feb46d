"""Duplicate detection: a message-id counts once within a time.

A duplicate is accepted and dropped. Messages without an id are never duplicates. A scheduled message counts from when it is sent.
Knows ids and times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trio_amqp10.broker.nodes.clock import Clock

    from .entity_options import EntityOptions
    from .stored_message import StoredMessage


class DuplicateDetection:
    """The message-ids that an entity has had lately.

    Args:
        options: whether the entity detects duplicates, and for how long.
        clock: the clock for that time.
    """

    def __init__(self, options: EntityOptions, clock: Clock) -> None:
        self._window = (
            options.duplicate_detection_history_time_window if options.requires_duplicate_detection else None
        )
        self._clock = clock
        self._seen: dict[str, tuple[float, int]] = {}

    def earlier(self, record: StoredMessage) -> int | None:
        """Return the number of the message that this repeats; None if it is new."""
        if self._window is None or record.message_id is None:
            return None
        begin = self._clock.now() - self._window
        while self._seen and next(iter(self._seen.values()))[0] <= begin:
            del self._seen[next(iter(self._seen))]
        found = self._seen.get(record.message_id)
        return None if found is None else found[1]

    def note(self, record: StoredMessage, number: int) -> None:
        """Remember a message that is new."""
        if self._window is not None and record.message_id is not None:
            self._seen[record.message_id] = self._clock.now(), number
