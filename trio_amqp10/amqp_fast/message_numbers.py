"""The numbers of messages that a server has sent on one channel (RFC 006, 3.3.3 to 3.3.5, 3.5.7).

They count from 1, for all handles of the channel. An ACK settles all up to its number. On a transacted channel it makes room
for more, and the commit or the rollback settles everything that was sent since the last one, acknowledged or not.
Knows no lease.
"""

from __future__ import annotations

from collections import Counter

__all__ = ["Numbers"]


class Numbers:
    """The numbers of one channel.

    Args:
        transacted: whether the channel has transactions.

    Attributes:
        last: the last number that was given out.
    """

    __slots__ = ("_counts", "_done", "_transacted", "_unacked", "last")

    def __init__(self, *, transacted: bool) -> None:
        self.last: int = 0
        self._unacked: dict[int, int] = {}  # the handle of each message that waits for an ACK, by its number
        self._counts: Counter[int] = Counter()
        self._done: list[int] = []  # acknowledged, or never to be, in this transaction
        self._transacted = transacted

    def next(self, handle: int, *, unreliable: bool) -> int:
        """Give out the next number for a handle; the client sends no ACK for ``unreliable`` ones."""
        self.last += 1
        if not unreliable:
            self._unacked[self.last] = handle
            self._counts[handle] += 1
        return self.last

    def count(self, handle: int) -> int:
        """How many messages of this handle wait for an ACK."""
        return self._counts[handle]

    def ack(self, number: int) -> tuple[int, ...]:
        """The client has processed all up to this number.

        Returns:
            Those that it settles; on a transacted channel the commit will.
        """
        found: list[int] = []
        for each in self._unacked:  # in ascending order
            if each > number:
                break
            found.append(each)
        for each in found:
            self._take(each)
        if self._transacted:
            self._done += found
        return tuple(found)

    def unget(self, number: int, handle: int) -> bool:
        """The client gives one message back; False if this handle has no such message."""
        if self._unacked.get(number) != handle:
            return False
        self._take(number)
        return True

    def end_transaction(self) -> tuple[int, ...]:
        """Commit or rollback: all that was sent and not settled."""
        found = tuple(sorted((*self._done, *self._unacked)))
        self._done.clear()
        self._unacked.clear()
        self._counts.clear()
        return found

    def drop(self, handle: int) -> None:
        """The handle is closed: what the client has not acknowledged goes back."""
        for number in [number for number, each in self._unacked.items() if each == handle]:
            self._take(number)

    def _take(self, number: int) -> None:
        self._counts[self._unacked.pop(number)] -= 1
