"""One direction of a simulated network: delay, chunks, stalls, breaks.

Knows octets and trio's clock; which octets they are makes no difference.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import trio

from trio_amqp10.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

__all__ = ["Cut", "Ending", "Line", "Passage", "Stall"]

Ending = Literal["eof", "reset", "silence"]

_READ_SIZE: Final = 65_536


@dataclass(frozen=True)
class Stall:
    """Nothing passes for a while.

    Args:
        at: after so many octets of this direction.
        seconds: for so long; infinite if not said.
    """

    at: int
    seconds: float = math.inf


@dataclass(frozen=True)
class Cut:
    """The network breaks, both ways.

    Args:
        at: after so many octets of this direction; 0: at once.
        how: ``eof``: both ends read to the end of the stream, and what they write is lost; ``reset``: both
            ends find the stream broken, once they have read what came; ``silence``: nothing passes any more.
    """

    at: int
    how: Ending = "eof"


@dataclass(frozen=True, kw_only=True)
class Line:
    """What one direction does to its octets. Their order it keeps, always.

    Args:
        delay: seconds from one end to the other.
        jitter: up to so many seconds more, for each piece anew.
        chunk: octets of a piece, or the fewest and the most of them; None: as they were written.
        bandwidth: octets a second; None for any number.
        capacity: octets that may be under way before a writer has to wait.
        stall: where to stand still once.
        cut: where to break.

    Raises:
        LocalProtocolError: one of them is negative, or too small to let anything pass.
    """

    delay: float = 0.0
    jitter: float = 0.0
    chunk: int | tuple[int, int] | None = None
    bandwidth: float | None = None
    capacity: int = 64 * 1024
    stall: Stall | None = None
    cut: Cut | None = None

    def __post_init__(self) -> None:
        low, high = self.sizes
        if not 1 <= low <= high:
            raise LocalProtocolError(
                f"chunk={self.chunk!r}: a piece has at least 1 octet, and the most come last"
            )
        if self.delay < 0 or self.jitter < 0 or self.capacity < 1 or (self.bandwidth or 1) <= 0:
            raise LocalProtocolError(
                f"{self!r}: delay and jitter are at least 0, capacity 1, bandwidth above 0"
            )

    @property
    def sizes(self) -> tuple[int, int]:
        """The fewest and the most octets of a piece."""
        if self.chunk is None:
            return _READ_SIZE, _READ_SIZE
        return self.chunk if isinstance(self.chunk, tuple) else (self.chunk, self.chunk)


class Passage:
    """One direction at work.

    Attributes:
        line: what it does to its octets.
        octets: how many have come out at the other end.
        is_stalled: whether nothing passes for now.
    """

    def __init__(self, line: Line, random: Random, cut: Callable[[Ending], None]) -> None:
        self.line = line
        self.octets: int = 0
        self.is_stalled: bool = False
        self._random = random
        self._cut = cut
        self._under_way: deque[tuple[float, bytes]] = deque()  # when each piece arrives; b"" is the end
        self._size = 0
        self._read_octets = 0
        self._free_at = 0.0
        self._arrives = 0.0
        self._changed = trio.lowlevel.ParkingLot()

    def stall(self) -> None:
        """Let nothing pass until ``resume``."""
        self.is_stalled = True

    def resume(self) -> None:
        """Let pass again."""
        self.is_stalled = False
        self._changed.unpark_all()

    async def run(self, source: trio.abc.ReceiveStream, sink: trio.abc.SendStream) -> None:
        """Carry octets from ``source`` to ``sink`` until the source ends. Cancelled: what is under way is lost."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._take, source)
            await self._give(sink)

    async def _take(self, source: trio.abc.ReceiveStream) -> None:
        while True:
            while self._size >= self.line.capacity:
                await self._changed.park()
            try:
                data = bytes(await source.receive_some(min(self.line.capacity - self._size, _READ_SIZE)))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self._cut("reset")
                return
            for piece in self._pieces(data) if data else (b"",):
                self._under_way.append((self._arrival(len(piece)), piece))
            self._size += len(data)
            self._changed.unpark_all()
            if not data:
                return

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        marks = [mark.at for mark in (self.line.stall, self.line.cut) if mark is not None]
        pos = 0
        while pos < len(data):
            end = min(pos + self._random.randint(*self.line.sizes), len(data))
            for mark in marks:
                if pos < mark - self._read_octets < end:
                    end = mark - self._read_octets
            yield data[pos:end]
            pos = end
        self._read_octets += len(data)

    def _arrival(self, size: int) -> float:
        line = self.line
        self._free_at = max(self._free_at, trio.current_time())
        if line.bandwidth is not None:
            self._free_at += size / line.bandwidth
        late = self._random.random() * line.jitter if line.jitter else 0.0
        self._arrives = max(self._arrives, self._free_at + line.delay + late)
        return self._arrives

    async def _give(self, sink: trio.abc.SendStream) -> None:
        stall = self.line.stall
        while True:
            if self.line.cut is not None and self.octets >= self.line.cut.at:
                self._cut(self.line.cut.how)
                await trio.sleep_forever()
            if stall is not None and self.octets >= stall.at:
                await trio.sleep(stall.seconds)
                stall = None
            while self.is_stalled or not self._under_way:
                await self._changed.park()
            await trio.sleep_until(self._under_way[0][0])
            if self.is_stalled:
                continue
            _, piece = self._under_way.popleft()
            try:
                if not piece:
                    await _end(sink)
                    return
                await sink.send_all(piece)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self._cut("reset")
                await trio.sleep_forever()
            self.octets += len(piece)
            self._size -= len(piece)
            self._changed.unpark_all()


async def _end(sink: trio.abc.SendStream) -> None:
    if isinstance(sink, trio.abc.HalfCloseableStream):
        await sink.send_eof()
    else:
        await sink.aclose()
