"""One direction of a simulated network: delay, chunks, stalls, breaks.

Knows octets and trio's clock; does not know the meaning of the octets.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import trio

from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

Ending = Literal["eof", "reset", "silence"]

_READ_SIZE: Final = 65_536


@dataclass(frozen=True)
class Stall:
    """A pause of one direction.

    Args:
        at: the number of octets of this direction before the pause.
        seconds: the length of the pause; infinite by default.
    """

    at: int
    seconds: float = math.inf


@dataclass(frozen=True)
class Cut:
    """A break of both directions.

    Args:
        at: the number of octets of this direction before the break; 0 for an immediate break.
        how: ``eof``: both ends read the end of the stream, and their writes are lost; ``reset``: both
            ends find the stream broken, after they have read the octets that arrived; ``silence``: no more octets pass.
    """

    at: int
    how: Ending = "eof"


@dataclass(frozen=True, kw_only=True)
class Line:
    """The effect of one direction on its octets, which always stay in order.

    Args:
        delay: seconds from one end to the other.
        jitter: the most additional seconds, chosen again for each piece.
        chunk: the octets of a piece, or the fewest and the most octets; None keeps the pieces as written.
        bandwidth: octets a second; None for no limit.
        capacity: octets that may be in flight before a writer must wait.
        stall: a pause.
        cut: a break.

    Raises:
        LocalProtocolError: a number is negative, or too small to let octets pass.
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
                f"chunk={self.chunk!r}: expected a number of at least 1, or the smallest and then the largest number"
            )
        if self.delay < 0 or self.jitter < 0 or self.capacity < 1 or (self.bandwidth or 1) <= 0:
            raise LocalProtocolError(
                f"{self!r}: delay and jitter must be at least 0, capacity at least 1, and bandwidth above 0"
            )

    @property
    def sizes(self) -> tuple[int, int]:
        """The fewest and the most octets of a piece."""
        if self.chunk is None:
            return _READ_SIZE, _READ_SIZE
        return self.chunk if isinstance(self.chunk, tuple) else (self.chunk, self.chunk)


class Passage:
    """One running direction.

    Attributes:
        line: its effect on octets.
        octets: the number of octets that have arrived at the other end.
        is_stalled: whether the direction is stopped.
    """

    def __init__(self, line: Line, random: Random, cut: Callable[[Ending], None]) -> None:
        self.line = line
        self.octets: int = 0
        self.is_stalled: bool = False
        self._random = random
        self._cut = cut
        self._under_way: deque[tuple[float, bytes]] = (
            deque()
        )  # the arrival time of each piece; b"" is the end
        self._size = 0
        self._read_octets = 0
        self._free_at = 0.0
        self._arrives = 0.0
        self._changed = trio.lowlevel.ParkingLot()

    def stall(self) -> None:
        """Stop the direction until ``resume``."""
        self.is_stalled = True

    def resume(self) -> None:
        """Resume the direction."""
        self.is_stalled = False
        self._changed.unpark_all()

    async def run(self, source: trio.abc.ReceiveStream, sink: trio.abc.SendStream) -> None:
        """Carry octets from ``source`` to ``sink`` until the source ends.

        Cancelled: octets in flight are lost.
        """
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
