"""ReceivingFigures: what a receiver does, as a JSON file beside the spool, for whoever watches.

The file ``metrics.json`` is replaced as a whole, about once a second while something changes, and every ten seconds while
nothing does. It is for people and monitors: nothing reads it back, and if it cannot be written, receiving goes on.

Knows numbers and the spool; neither links nor Spark.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import trio

from .lane_spool import LaneSpool
from .spool import SpoolError

if TYPE_CHECKING:
    from .spool import Spool

__all__ = ["FILE", "ReceivingFigures"]

FILE: Final = "metrics.json"
_LONGEST: Final = 10.0


@dataclass
class ReceivingFigures:
    """What has happened since the receiver was started.

    Attributes:
        connections: that were opened.
        received: messages that came, those that came again among them.
        duplicates: that were dropped, because the spool had them.
        rejected: that could not be decoded, and were to be rejected.
        depth: messages that the peer last said were waiting; 0 if it says nothing.
        resting: how often the disk was full.
    """

    connections: int = 0
    received: int = 0
    duplicates: int = 0
    rejected: int = 0
    depth: int = 0
    resting: int = 0

    def snapshot(self, spool: Spool | LaneSpool) -> dict[str, Any]:
        """All figures, and those of the spool: rows ever written and not consumed, octets, and whether it is full.

        ``lag_seconds`` is for how long the oldest row has waited to be consumed.
        """
        since = spool.waiting_since
        return {
            **asdict(self),
            "spool": spool.id,
            "rows": spool.end,
            "rows_waiting": spool.end - spool.low,
            "octets_waiting": spool.size,
            "full": spool.full,
            "lag_seconds": 0.0 if since is None else round(max(0.0, time.time() - since), 3),
        }

    async def report(self, spool: Spool | LaneSpool) -> None:
        """Write the file, again and again. Cancelled: it is written once more."""
        before: dict[str, Any] = {}
        wrote_at = -_LONGEST
        try:
            while True:
                now = self.snapshot(spool)
                lasting = {name: value for name, value in now.items() if name != "lag_seconds"}
                if lasting != before or trio.current_time() - wrote_at >= _LONGEST:
                    if isinstance(spool, LaneSpool):  # perhaps far away
                        await trio.to_thread.run_sync(_write, spool, now)
                    else:
                        _write(spool, now)
                    before, wrote_at = lasting, trio.current_time()
                await trio.sleep(spool.figures_interval)
        finally:
            _write(spool, self.snapshot(spool))


def _write(spool: Spool | LaneSpool, figures: dict[str, Any]) -> None:
    with suppress(OSError, SpoolError):  # then there is no news for a while
        spool.show_figures(FILE, json.dumps({**figures, "at": round(time.time(), 3)}) + "\n")
