"""BatchLinger: decides how long rows wait for more before they become a batch.

A batch costs Spark a quarter of a second or more, whatever its size, on cores that receiving needs too. So
while very many messages arrive, small batches halve the rate of receiving, and the end of the backlog is
reached later. While fewer arrive, rows wait only if there are too few (``minRowsPerTrigger``).

Knows numbers; neither the spool nor Spark.
"""

from __future__ import annotations

from typing import Final

NO_LIMIT: Final = 2**63 - 1
"""Rows that no batch has: the largest number of Spark's type."""


class BatchLinger:
    """Decides, each time that Spark asks, whether the rows should be a batch now.

    Args:
        few: seconds for which too few rows wait for more (``maxTriggerDelay``).
        backlog: seconds for which rows wait while very many messages arrive (``backlogDelay``).
    """

    def __init__(self, few: float, backlog: float) -> None:
        self._few = few
        self._backlog = backlog
        self._since: float | None = None

    def is_over(self, rows: int, least: int, now: float, *, pressed: bool) -> bool:
        """Whether to offer the rows as a batch now.

        Args:
            rows: the number of rows that are there.
            least: the number of rows that are offered without waiting.
            now: the time of a monotonic clock, in seconds.
            pressed: whether very many messages arrive, and the batch may have more rows.
        """
        if not rows:
            return False
        if self._since is None:
            self._since = now
        wait = self._few if rows < least else self._backlog if pressed else 0.0
        if now < self._since + wait:
            return False
        self._since = None
        return True
