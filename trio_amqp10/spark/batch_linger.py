"""BatchLinger: how long rows that could be a batch wait for more.

A batch costs Spark a quarter of a second and more, whatever is in it, on cores that receiving needs too. So
while very many messages come, small batches halve the rate at which they do, and nobody gains: the last message
of a backlog is there later. While fewer come, none waits.

Knows numbers; knows neither the spool nor Spark.
"""

from __future__ import annotations

__all__ = ["BatchLinger"]


class BatchLinger:
    """Decides, each time that Spark asks, whether what there is shall be a batch.

    Args:
        few: seconds that less than the least number of rows waits (``maxTriggerDelay``).
        backlog: seconds that any number waits while very many messages come (``backlogDelay``).
    """

    def __init__(self, few: float, backlog: float) -> None:
        self._few = few
        self._backlog = backlog
        self._since: float | None = None

    def is_over(self, rows: int, least: int, now: float, *, pressed: bool) -> bool:
        """Whether to offer so many rows now, by a clock in seconds.

        Args:
            rows: that there are.
            least: how many make a batch at once.
            now: the time.
            pressed: whether very many messages come, and a batch may have more of them.
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
