"""The figures of a container in the last hour, in rings of a fixed size.

Three rings have the last minute, ten minutes and hour. Beside them the depths of at most 10,000 queues are kept, of the last minutes.
A sample is taken each second; if taking it is long, because there are many queues, the next one comes later, so that sampling takes
about a fiftieth of the time at most. Samples are taken only while HTTP is served.

Knows management and a clock; knows no request.
"""

from __future__ import annotations

import logging
from array import array
from collections import deque
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trio_amqp10.container.management import Management, QueueDepths, Survey

_log: Final = logging.getLogger("trio_amqp10.http")

SPANS: Final[Mapping[int, int]] = {60: 1, 600: 5, 3600: 30}
"""The seconds of each ring, and the seconds between two of its samples."""
MOST_QUEUES: Final = 10_000
"""The most queues whose depths are kept."""
_DEPTHS: Final = 30
"""The depths that are kept of each queue."""
_DEPTH_STEP: Final = 10.0
"""Seconds between two depths of a queue."""
_SHARE: Final = 50
"""A sample that takes so long is followed by a pause of so many times its length."""
_EARLY: Final = 0.25
"""Seconds by which a sample may be early for a ring."""

FIGURES: Final = (
    "arrived",
    "delivered",
    "acknowledged",
    "unroutable",
    "depth",
    "unacked",
    "octets",
    "connections",
)
"""The figures of a sample, in its order; the first four are totals."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The figures of a container at one moment.

    Args:
        at: the time on the clock of the history, in seconds.
        figures: the values of ``FIGURES``.
    """

    at: float
    figures: tuple[int, ...]

    @classmethod
    def of(cls, at: float, survey: Survey) -> Sample:
        """Return the sample of a survey."""
        messages, rest = survey.messages, survey.rest
        connections = sum(each.connections for each in survey.protocols.values())
        return cls(
            at,
            (
                messages.arrived,
                messages.delivered,
                messages.acknowledged,
                messages.unroutable,
                rest.depth + survey.backlog,
                rest.unacked,
                survey.container.octets,
                connections,
            ),
        )


class History:
    """The samples of the last hour, and the depths of queues.

    Args:
        management: the management of the program.
        clock: returns the time in seconds.

    Attributes:
        full: the addresses of some queues that were full at the last depths, and whose senders waited.
        queues: the number of queues then.
        step: seconds between two samples.
    """

    def __init__(self, management: Management, clock: Callable[[], float] = trio.current_time) -> None:
        self._management = management
        self._clock = clock
        self._rings: dict[int, deque[Sample]] = {
            span: deque(maxlen=span // step + 1) for span, step in SPANS.items()
        }
        self._depths: dict[str, array[int]] = {}
        self._depths_at: deque[float] = deque(maxlen=_DEPTHS)
        self.full: Sequence[str] = ()
        self.queues: int = 0
        self.step: float = 1.0

    async def run(self) -> None:
        """Take samples for ever. Cancelled: no further sample is taken."""
        try:
            while True:
                began = perf_counter()
                await self.sample()
                self.step = max(1.0, (perf_counter() - began) * _SHARE)
                await trio.sleep(self.step)
        except Exception:  # The requests of operators are worth more than charts.
            _log.exception("no further samples are taken for the page")

    async def sample(self) -> None:
        """Take one sample. Cancelled: it is taken or not."""
        taken = Sample.of(self._clock(), await self._management.survey())
        for span, ring in self._rings.items():
            if not ring or taken.at - ring[-1].at >= SPANS[span] - _EARLY:
                ring.append(taken)
        if not self._depths_at or taken.at - self._depths_at[-1] >= _DEPTH_STEP - _EARLY:
            self._keep(taken.at, await self._management.depths(most=MOST_QUEUES))

    def _keep(self, at: float, found: QueueDepths) -> None:
        """Keep the depths of queues; those of deleted queues are forgotten."""
        self._depths_at.append(at)
        self.full, self.queues = found.full, found.queues
        before = self._depths
        kept: dict[str, array[int]] = {}
        for address, depth in found.messages.items():
            depths = kept[address] = before[address] if address in before else array("Q")
            if len(depths) == _DEPTHS:
                del depths[0]
            depths.append(depth)
        self._depths = kept

    def series(self, span: int) -> dict[str, Any]:
        """Return the samples of one ring as values of JSON, the oldest first.

        Args:
            span: one of ``SPANS``.
        """
        now, ring = self._clock(), self._rings[span]
        found: dict[str, Any] = {"span": span, "age": [round(now - each.at, 3) for each in ring]}
        for place, name in enumerate(FIGURES):
            found[name] = [each.figures[place] for each in ring]
        return found

    def depths(self, address: str) -> list[int]:
        """Return the kept depths of a queue, the oldest first."""
        return list(self._depths.get(address, ()))

    def growth(self, address: str) -> float:
        """Return the messages by which a queue grew each second, over its kept depths."""
        depths = self._depths.get(address)
        if depths is None or len(depths) < 2:
            return 0.0
        seconds = self._depths_at[-1] - self._depths_at[-len(depths)]
        return (depths[-1] - depths[0]) / seconds if seconds > 0 else 0.0

    def growing(self, most: int) -> list[str]:
        """Return the addresses of the queues that grow fastest, at most so many."""
        grown = [(each, address) for address in self._depths if (each := self.growth(address)) > 0]
        return [address for _, address in sorted(grown, reverse=True)[:most]]
