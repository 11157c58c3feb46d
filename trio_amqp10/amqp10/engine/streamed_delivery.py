"""A delivery that is read while its transfers arrive (2.6.14).

Octets that wait to be read count for the connection's budget of incomplete deliveries, and each waiting
transfer takes a place in the session's incoming window: if the reader is too slow, the window closes and the
peer stops. Knows nothing of how a message is encoded.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class StreamedDelivery:
    """The octets of one delivery, in the order of its transfers.

    Args:
        count: called with the octets and transfers that begin to wait; negative numbers mean that they no
            longer wait.
        unfinished: the streamed deliveries of the link that are not both complete and read; this delivery is
            added.

    Attributes:
        size: octets that wait to be read.
        complete: whether the last transfer has arrived.
        aborted: whether the sender has aborted the delivery (2.7.5).
        discarded: whether the reader has stopped, so that later payloads are dropped.
    """

    __slots__ = ("_chunks", "_count", "_unfinished", "aborted", "complete", "discarded", "size")

    def __init__(self, count: Callable[[int, int], object], unfinished: dict[StreamedDelivery, None]) -> None:
        self._count: Callable[[int, int], object] | None = count
        self._unfinished = unfinished
        self._chunks: deque[bytes] = deque()
        self.size: int = 0
        self.complete: bool = False
        self.aborted: bool = False
        self.discarded: bool = False
        unfinished[self] = None

    def append(self, octets: bytes) -> None:
        """Add the payload of a transfer, or drop it if the reader has stopped."""
        if self._count is not None and not self.discarded:
            self._chunks.append(octets)
            self.size += len(octets)
            self._count(len(octets), 1)

    def take(self) -> bytes:
        """Return the oldest payload that waits, and free its room in the window.

        If none waits, return ``b""``; ``complete`` shows whether more may follow.
        """
        if not self._chunks:
            return b""
        octets = self._chunks.popleft()
        self._free(len(octets), 1)
        return octets

    def take_all(self) -> bytes:
        """Return all octets that wait, and free their room."""
        octets = b"".join(self._chunks)
        self._clear()
        return octets

    def discard(self) -> None:
        """Drop the octets that wait, and all later ones."""
        self.discarded = True
        self._clear()

    def finish(self) -> None:
        """Note that the last transfer has arrived."""
        self.complete = True
        self._forget_if_read()

    def abort(self) -> None:
        """Drop the octets, because the sender has aborted the delivery."""
        self.aborted = True
        self._clear()

    def detach(self) -> None:
        """Note that the link is gone: only a complete delivery can still be read."""
        if self._count is not None:
            if not self.complete:
                self._clear()
            else:
                self._free(self.size, len(self._chunks))
            self._count = None

    def _clear(self) -> None:
        size, count = self.size, len(self._chunks)
        self._chunks.clear()
        self._free(size, count)

    def _free(self, size: int, count: int) -> None:
        if self._count is not None:
            self.size -= size
            self._count(-size, -count)
            self._forget_if_read()

    def _forget_if_read(self) -> None:
        """Remove this delivery from the link if nothing waits and nothing follows."""
        if (self.complete or self.aborted) and not self._chunks:
            self._unfinished.pop(self, None)
