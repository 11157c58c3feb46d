"""What a connection has to write: frames in order, and whether they may leave yet.

Knows frame headers and sizes, not what a body says. Before the peer's ``open`` was read nobody
knows how large a frame it takes: up to 512 octets are always legal (2.7.1), so a larger one, and
all that follows it, is held until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.errors import Condition, LocalProtocolError
from trio_amqp10.frames import EMPTY_FRAME, FRAME_HEADER_SIZE, MIN_MAX_FRAME_SIZE
from trio_amqp10.mypyc_attributes import mypyc_attr

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SIZE_BEFORE_OPEN", "WriteBuffer"]

SIZE_BEFORE_OPEN: Final = 8192
"""Octets of a frame before an ``open`` was read. The standard says 512 (2.4.1); real clients and
brokers send longer property maps, and take them."""

PEER_FRAME_CAP: Final = 128 * 1024
"""We write no larger frames than this, whatever the peer takes: links are to interleave."""


@mypyc_attr(allow_interpreted_subclasses=True)
class WriteBuffer:
    """Frames on their way to the transport.

    Attributes:
        size: octets that wait, held ones included.
        soft: as many octets, and senders wait until some were taken.
        frame_size: the largest frame that we write.
        on_output: called when something waits and nothing did before.
        finish: what makes of the octets that leave, whole frames, those that do; None for the same.
        wrote: whether octets were taken since this was last set to False.
    """

    # A frame is two chunks, and a protocol header one: so frames are counted by the write, not one by one.
    __slots__ = (
        "_chunks",
        "_held",
        "_peer_opened",
        "_taken",
        "finish",
        "frame_size",
        "on_output",
        "size",
        "soft",
        "wrote",
    )

    def __init__(self, soft: int) -> None:
        self._chunks: list[bytes | memoryview] = []
        self._held: list[bytes | memoryview] | None = None
        self._peer_opened = False
        self.soft: Final = soft
        self._taken = 0
        self.size: int = 0
        self.frame_size: int = MIN_MAX_FRAME_SIZE
        self.on_output: Callable[[], object] | None = None
        self.finish: Callable[[bytes], bytes] | None = None
        self.wrote: bool = False

    def __bool__(self) -> bool:
        return bool(self._chunks)

    @property
    def frames(self) -> int:
        """Frames that were taken so far."""
        return self._taken >> 1

    def write_header(self, octets: bytes) -> None:
        """The protocol header: once, before any frame (2.2)."""
        if not self._chunks and self.on_output is not None:
            self.on_output()
        self._chunks.append(octets)
        self.size += len(octets)

    def write_frame(self, head: bytes, payload: bytes | memoryview = b"") -> None:
        """A frame, in two parts if need be, that is laid out already and known to fit and to be due."""
        chunks = self._chunks
        if not chunks and self.on_output is not None:
            self.on_output()
        chunks.append(head)
        chunks.append(payload)
        self.size += len(head) + len(payload)

    def write_body(self, channel: int, body: bytes, payload: bytes | memoryview = b"") -> None:
        """One frame.

        Raises:
            LocalProtocolError: it is larger than the peer takes; nothing was written.
        """
        size = FRAME_HEADER_SIZE + len(body) + len(payload)
        if size > self.frame_size:
            self.check(len(body) + len(payload))
            self.hold_until_open()
        head = size.to_bytes(4, "big") + b"\x02\x00" + channel.to_bytes(2, "big") + body
        if self._held is not None:
            self._held.append(head)
            self._held.append(payload)
            self.size += size
        else:
            self.write_frame(head, payload)

    def check(self, size: int) -> None:
        """Refuse a body of ``size`` octets that no frame has room for.

        Raises:
            LocalProtocolError: the frame would be larger than the peer takes.
        """
        limit = self.frame_size if self._peer_opened else SIZE_BEFORE_OPEN
        if FRAME_HEADER_SIZE + size > limit:
            raise LocalProtocolError(
                f"{Condition.FRAME_SIZE_TOO_SMALL}: a frame of {FRAME_HEADER_SIZE + size} octets, "
                f"where {limit} are possible"
            )

    def keep_alive(self) -> None:
        """An empty frame, unless something waits that says as much (2.4.5)."""
        if not self._chunks:
            self.write_frame(EMPTY_FRAME)

    def hold_until_open(self) -> None:
        """Hold what is written from now on, until ``peer_opened``; not where that was before."""
        if self._held is None and not self._peer_opened:
            self._held = []

    def drop_held(self) -> None:
        """What is held will never leave."""
        if self._held is not None:
            self.size -= sum(map(len, self._held))
            self._held = None

    def peer_opened(self, max_frame_size: int) -> int | None:
        """The peer's open was read: what was held may leave, and frames may be larger.

        Returns:
            The octets of a frame that was held and is larger than the peer takes, if there is one:
            then nothing that was held may leave.
        """
        self._peer_opened = True
        self.frame_size = min(max_frame_size, PEER_FRAME_CAP)
        if self._held:
            largest = max(len(h) + len(p) for h, p in zip(self._held[::2], self._held[1::2], strict=True))
            if largest > max_frame_size:
                return largest
            if not self._chunks and self.on_output is not None:
                self.on_output()
            self._chunks += self._held
        self._held = None
        return None

    def has_room(self) -> bool:
        """Whether senders may add to it, or should wait until some was taken."""
        return self.size < self.soft

    def take(self) -> bytes:
        """All octets that may leave now."""
        if not self._chunks:
            return b""
        octets = b"".join(self._chunks)
        self._taken += len(self._chunks)
        self._chunks.clear()
        self.size -= len(octets)
        self.wrote = True
        return octets if self.finish is None else self.finish(octets)

    def clear(self) -> None:
        """Nothing of it will leave."""
        self._chunks.clear()
        self._held = None
        self.size = 0
