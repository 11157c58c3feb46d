"""The output of a connection: frames in order, some of them held until open.

Knows the sizes of frames, but not their content. Before the peer's ``open`` is read, its frame size is
unknown. Frames up to 512 octets are always legal (2.7.1), so a larger frame, and all that follow it, are held
until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp10.wire.frames import EMPTY_FRAME, FRAME_HEADER_SIZE, MIN_MAX_FRAME_SIZE
from trio_amqp10.core.errors import Condition, LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE_BEFORE_OPEN: Final = 8192
"""Octets of a frame before an ``open`` was read.

The standard has 512 (2.4.1), but real clients and brokers send and accept longer property maps.
"""

PEER_FRAME_CAP: Final = 128 * 1024
"""The largest frame that we write, so that links interleave."""


class WriteBuffer:
    """The frames of one connection that wait for the transport.

    Attributes:
        size: octets that wait, including held ones.
        soft: if this many octets wait, senders wait until some were taken.
        frame_size: the largest frame that we write.
        on_output: called when output waits and none did before.
        finish: converts the octets of whole frames that are taken, or None.
        wrote: whether octets were taken since this was last set to False.
    """

    # A frame is two chunks and a protocol header is one, so half the number of chunks is the number of frames.
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
        """The number of frames that were taken so far."""
        return self._taken >> 1

    def write_header(self, octets: bytes) -> None:
        """Write the protocol header: once, before any frame (2.2)."""
        if not self._chunks and self.on_output is not None:
            self.on_output()
        self._chunks.append(octets)
        self.size += len(octets)

    def write_frame(self, head: bytes, payload: bytes | memoryview = b"") -> None:
        """Write a complete frame, in one or two parts, without any check of its size."""
        chunks = self._chunks
        if not chunks and self.on_output is not None:
            self.on_output()
        chunks.append(head)
        chunks.append(payload)
        self.size += len(head) + len(payload)

    def write_body(self, channel: int, body: bytes, payload: bytes | memoryview = b"") -> None:
        """Write one frame, or hold it until the peer's open is read.

        Raises:
            LocalProtocolError: it is larger than the peer accepts; nothing was written.
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
        """Raise if a body of ``size`` octets does not fit a frame.

        Raises:
            LocalProtocolError: the frame would be larger than the peer accepts.
        """
        limit = self.frame_size if self._peer_opened else SIZE_BEFORE_OPEN
        if FRAME_HEADER_SIZE + size > limit:
            raise LocalProtocolError(
                f"{Condition.FRAME_SIZE_TOO_SMALL}: the frame has {FRAME_HEADER_SIZE + size} octets, "
                f"and the peer takes {limit}"
            )

    def keep_alive(self) -> None:
        """Write an empty frame, unless another frame waits, which serves as well (2.4.5)."""
        if not self._chunks:
            self.write_frame(EMPTY_FRAME)

    def hold_until_open(self) -> None:
        """Hold all later frames until ``peer_opened``, unless that was called before."""
        if self._held is None and not self._peer_opened:
            self._held = []

    def drop_held(self) -> None:
        """Drop the frames that are held."""
        if self._held is not None:
            self.size -= sum(map(len, self._held))
            self._held = None

    def peer_opened(self, max_frame_size: int) -> int | None:
        """Release the held frames, and set the frame size, from the peer's open.

        Returns:
            None, or the octets of a held frame that is larger than the peer accepts: then no held frame may
                be sent.
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
        """Whether senders may add frames, or should wait until some were taken."""
        return self.size < self.soft

    def take(self) -> bytes:
        """Return all octets that may be sent now, and remove them."""
        if not self._chunks:
            return b""
        octets = b"".join(self._chunks)
        self._taken += len(self._chunks)
        self._chunks.clear()
        self.size -= len(octets)
        self.wrote = True
        return octets if self.finish is None else self.finish(octets)

    def clear(self) -> None:
        """Drop all frames."""
        self._chunks.clear()
        self._held = None
        self.size = 0
