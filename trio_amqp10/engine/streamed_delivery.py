"""A delivery that is read while its transfers arrive (2.6.14).

The octets that wait here count for the connection's budget of deliveries in progress, and each
transfer that waits takes a place of the session's incoming window: a reader that does not keep up
closes the window, and the peer stops. Knows nothing of what the octets mean.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["StreamedDelivery"]


class StreamedDelivery:
    """The octets of one delivery, in the order of its transfers.

    Args:
        count: called with the octets and the transfers that came to wait, or fewer than none that do not any more.
        unfinished: those of the link that are not both complete and read; this is one of them.

    Attributes:
        size: octets that wait to be read.
        complete: the last transfer has come.
        aborted: the sender took the delivery back (2.7.5).
        discarded: nobody wants to read on: what still comes in is dropped.
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
        """The payload of a transfer; dropped where nobody wants it."""
        if self._count is not None and not self.discarded:
            self._chunks.append(octets)
            self.size += len(octets)
            self._count(len(octets), 1)

    def take(self) -> bytes:
        """The oldest payload that waits, or none: then see ``complete``. Its room is the peer's again."""
        if not self._chunks:
            return b""
        octets = self._chunks.popleft()
        self._free(len(octets), 1)
        return octets

    def take_all(self) -> bytes:
        """All that waits, in one piece."""
        octets = b"".join(self._chunks)
        self._clear()
        return octets

    def discard(self) -> None:
        """Drop what waits, and what still comes in."""
        self.discarded = True
        self._clear()

    def finish(self) -> None:
        """The last transfer has come."""
        self.complete = True
        self._forget_if_read()

    def abort(self) -> None:
        """The sender took the delivery back."""
        self.aborted = True
        self._clear()

    def detach(self) -> None:
        """The link is gone: what came whole can still be read, and all else never will be whole."""
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
        """The link need not hold what has nothing left to give back."""
        if (self.complete or self.aborted) and not self._chunks:
            self._unfinished.pop(self, None)
