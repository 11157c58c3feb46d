"""FrameWatch: the frames of one connection, as long as they are asked for.

A tap of the connection keeps the octets. They are split and described when ``frames`` is called, in pieces of half a millisecond: the
connection never waits for that. A connection without a watch has no tap. Octets beyond a limit are left out and counted; then
the watch begins again with a whole frame, because the engine knows where it is.

Knows octets and what describes frames; knows no protocol and no permission.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self

import trio

from trio_amqp10.net.frame_logging import frame_tools
from trio_amqp10.net.scheduled_call import ScheduledCall

from .errors import ManagementError
from .pace import Pace
from .status import FramePage, WatchedFrame

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio_amqp10.net.pump import Pump

    Direction = Literal["in", "out"]

MOST_WATCHES: Final = 4
"""The most watches of a container at once."""
MOST_PAYLOAD: Final = 200
"""The most octets of a payload that are shown."""
MOST_KEPT: Final = 1000
"""The most frames that a watch keeps."""

_PATIENCE: Final = 10.0
"""Seconds after which a watch ends, if no frames are asked for."""
_MOST_WAITING: Final = 512 * 1024
"""Octets that wait to be split; later ones are left out.

One read or write more may be there.
"""
_MOST_BEGUN: Final = 1024 * 1024
"""Octets of an incomplete frame; a larger frame is left out."""
_MOST_SPLIT: Final = 500
"""Frames that one call splits and describes."""
_MOST_CHARACTERS: Final = 1024 * 1024
"""Characters and octets of the frames that a watch keeps, about."""
_STEP: Final = 1024
"""Octets that are split without a pause, if they are many small frames."""
_MOST_TEXT: Final = 1000
_MOST_FIELDS: Final = 32
_MOST_OF_FIELD: Final = 300


class _Octets(NamedTuple):
    """Octets of one read or write.

    Attributes:
        begins_frame: whether they begin with a frame.
        left_out: octets of the same direction that were left out before.
    """

    time: float
    direction: Direction
    octets: bytes | memoryview
    begins_frame: bool
    left_out: int = 0


class FrameWatch:
    """The frames that come and go on one connection, from now on.

    ``Management.watch_frames`` makes one. It is a context manager, which closes it. It ends by itself if ``frames`` was not called
    for ten seconds.

    Args:
        pump: of the connection.
        protocol: the name of the protocol; see ``ConnectionStatus.protocol``.
        payload: octets of each payload to show.
        check: raises ``ManagementError`` if the frames may not be seen any more.
        wall: returns seconds since 1970.
        on_close: called once, with the watch, when it ends.
    """

    def __init__(
        self,
        pump: Pump,
        protocol: str,
        payload: int,
        check: Callable[[], Awaitable[None]],
        wall: Callable[[], float],
        on_close: Callable[[FrameWatch], object],
    ) -> None:
        self._pump = pump
        self._protocol = protocol
        self._payload = payload
        self._check = check
        self._wall = wall
        self._on_close = on_close
        self._tools = frame_tools()
        self._splitting = trio.Lock()
        self._waiting: deque[_Octets] = deque()
        self._waiting_octets = 0
        self._in_step = False
        self._begins = True  # once for each call: to copy a large frame that is not complete takes time
        self._splitters: dict[Direction, Any] = {}
        self._begun: dict[Direction, int] = {"in": 0, "out": 0}
        self._skipped: dict[Direction, int] = {"in": 0, "out": 0}  # since octets were kept
        self._left_out: dict[Direction, int] = {"in": 0, "out": 0}  # before the next frame
        self._kept: deque[WatchedFrame] = deque()
        self._kept_characters = 0
        self._number = 0
        self._closed = False
        self._asked = trio.current_time()
        self._expiry = ScheduledCall(self._asked + _PATIENCE, self._expire)
        pump.add_tap(self)

    @property
    def closed(self) -> bool:
        """Whether the watch has ended."""
        return self._closed

    def close(self) -> None:
        """End the watch; nothing more is kept. May be called again."""
        if not self._closed:
            self._closed = True
            self._expiry.cancel()
            self._pump.remove_tap(self)
            self._waiting.clear()
            self._kept.clear()
            self._splitters.clear()
            self._on_close(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _expire(self) -> None:
        due = self._asked + _PATIENCE
        if trio.current_time() < due:
            self._expiry = ScheduledCall(due, self._expire)
        else:
            self.close()

    # -- the tap ----------------------------------------------------------------------------

    def read(self, octets: bytes) -> None:
        """Keep octets from the peer; see ``net.frame_logging.Tap``."""
        if not self._in_step:
            begun = None if self._is_full or not self._begins else self._pump.unread_input()
            self._begins = False
            if begun is None:
                self._skipped["in"] += len(octets)
                return
            self._keep_octets("in", begun, begins_frame=True)
            self._in_step = True
        elif self._is_full:
            self._skipped["in"] += len(octets)
            self._in_step = False
            return
        self._keep_octets("in", octets, begins_frame=False)

    def written(self, octets: bytes) -> None:
        """Keep octets for the peer, which are whole frames; see ``net.frame_logging.Tap``."""
        if self._is_full:
            self._skipped["out"] += len(octets)
        else:
            self._keep_octets("out", octets, begins_frame=True)

    @property
    def _is_full(self) -> bool:
        return self._waiting_octets >= _MOST_WAITING

    def _keep_octets(self, direction: Direction, octets: bytes, *, begins_frame: bool) -> None:
        skipped, self._skipped[direction] = self._skipped[direction], 0
        self._waiting.append(_Octets(self._wall(), direction, octets, begins_frame, skipped))
        self._waiting_octets += len(octets)

    # -- what is asked for ------------------------------------------------------------------

    async def frames(self, after: int = 0, count: int = 500) -> FramePage:
        """Return the frames after the one with a number, oldest first.

        Args:
            after: the number of the last frame that was seen; 0 for all that are kept.
            count: frames at most.

        Raises:
            ManagementError: ``"not-found"``: the watch has ended. ``"forbidden"``: the permission was withdrawn.

        Cancelled: no frame is lost.
        """
        await self._check()
        async with self._splitting:
            self._asked = trio.current_time()
            await self._split()
            self._begins = True
            if self._closed:
                raise ManagementError("not-found", "the watch has ended: begin another one")
            later = (each for each in self._kept if each.number > after)
            over = self._pump.finished.is_set() and not self._waiting
            return FramePage(frames=tuple(islice(later, max(count, 0))), over=over)

    async def _split(self) -> None:
        """Split waiting octets, with pauses. Cancelled: the rest waits."""
        pace, most = Pace(), self._number + _MOST_SPLIT
        while self._waiting and self._number < most:
            given = self._waiting.popleft()
            octets = memoryview(given.octets)  # A slice copies nothing.
            step, rest = bytes(octets[:_STEP]), octets[_STEP:]
            if rest:
                self._waiting.appendleft(_Octets(given.time, given.direction, rest, begins_frame=False))
            self._waiting_octets -= len(step)
            self._left_out[given.direction] += given.left_out
            if given.begins_frame:
                self._splitters[given.direction] = self._tools.splitter(self._protocol)
                self._begun[given.direction] = 0
            self._split_step(given.time, given.direction, step)
            await pace.pause()

    def _split_step(self, time: float, direction: Direction, octets: bytes) -> None:
        splitter = self._splitters.get(direction)
        if splitter is None:
            self._left_out[direction] += len(octets)
            return
        pieces = splitter.feed(octets)
        for piece in pieces:
            self._keep(time, direction, piece)
        self._begun[direction] = 0 if pieces else self._begun[direction] + len(octets)
        if self._begun[direction] > _MOST_BEGUN:
            self._left_out[direction] += self._begun[direction]
            del self._splitters[direction]
            if direction == "in":
                self._in_step = False

    def _keep(self, time: float, direction: Direction, piece: Any) -> None:
        """Add a frame, and drop the oldest ones beyond the limits."""
        fields: dict[str, str] = {}
        if piece.performative is not None and piece.fault is None:
            found = self._tools.fields_of(piece.performative)
            fields = {name: _cut(text, _MOST_OF_FIELD) for name, text in islice(found.items(), _MOST_FIELDS)}
        self._number += 1
        left_out, self._left_out[direction] = self._left_out[direction], 0
        frame = WatchedFrame(
            number=self._number,
            time=time,
            direction=direction,
            channel=piece.channel,
            text=_cut(self._tools.describe(piece), _MOST_TEXT),
            fields=fields,
            octets=len(piece.octets),
            payload=bytes(piece.payload[: self._payload]),
            payload_octets=len(piece.payload),
            left_out=left_out,
        )
        self._kept.append(frame)
        self._kept_characters += _size_of(frame)
        while len(self._kept) > MOST_KEPT or self._kept_characters > _MOST_CHARACTERS:
            self._kept_characters -= _size_of(self._kept.popleft())


def _size_of(frame: WatchedFrame) -> int:
    return len(frame.text) + len(frame.payload) + sum(map(len, frame.fields.values()))


def _cut(text: str, most: int) -> str:
    rest = len(text) - most
    return text if rest <= 0 else f"{text[:most]}... and {rest} characters more"
