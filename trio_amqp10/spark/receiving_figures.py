"""ReceivingFigures: the figures of a receiver, as a JSON file beside the spool.

The file ``metrics.json`` is replaced as a whole, about once a second while figures change, and every ten seconds
otherwise. It is for people and monitors (``query_watch``): receiving does not depend on it, and goes on if it cannot be written.

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

FILE: Final = "metrics.json"
_LONGEST: Final = 10.0


@dataclass
class ReceivingFigures:
    """The figures since the receiver was started.

    Attributes:
        connections: the connections that were opened.
        received: the messages that came, including redeliveries.
        duplicates: the messages that were dropped, because the spool had them already.
        rejected: the messages that could not be decoded, and were rejected.
        depth: the messages that wait at the peer, by its last flow; 0 if it does not report them.
        resting: how often the disk was full.
    """

    connections: int = 0
    received: int = 0
    duplicates: int = 0
    rejected: int = 0
    depth: int = 0
    resting: int = 0

    def snapshot(self, spool: Spool | LaneSpool) -> dict[str, Any]:
        """Return all figures, and those of the spool.

        ``lag_seconds`` is the time for which the oldest unconsumed row has waited.
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
        """Write the file repeatedly, and never return.

        Cancelled: the file is written once more.
        """
        before: dict[str, Any] = {}
        wrote_at = -_LONGEST
        try:
            while True:
                now = self.snapshot(spool)
                lasting = {name: value for name, value in now.items() if name != "lag_seconds"}
                if lasting != before or trio.current_time() - wrote_at >= _LONGEST:
                    if isinstance(spool, LaneSpool):  # its store may be remote
                        await trio.to_thread.run_sync(_write, spool, now)
                    else:
                        _write(spool, now)
                    before, wrote_at = lasting, trio.current_time()
                await trio.sleep(spool.figures_interval)
        finally:
            _write(spool, self.snapshot(spool))


def _write(spool: Spool | LaneSpool, figures: dict[str, Any]) -> None:
    with suppress(OSError, SpoolError):  # the file stays as it is for a while
        spool.show_figures(FILE, json.dumps({**figures, "at": round(time.time(), 3)}) + "\n")
