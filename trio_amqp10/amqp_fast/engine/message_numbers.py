"""Numbers of the messages that a server sent (RFC 006, 3.3.3 to 3.3.5, 3.5.7).

Each channel counts from 1, for all its handles together. An ACK settles all messages up to its number. On a transacted channel an
ACK only makes room for more messages; the commit or rollback settles everything sent since the last one, acknowledged or not.
This module does not know leases.
"""

from __future__ import annotations

from collections import Counter


class SentNumbers:
    """The message numbers of one channel.

    Args:
        transacted: whether the channel has transactions.

    Attributes:
        last: the last assigned number.
    """

    __slots__ = ("_counts", "_done", "_transacted", "_unacked", "last")

    def __init__(self, *, transacted: bool) -> None:
        self.last: int = 0
        self._unacked: dict[int, int] = {}  # handle by message number, for messages without an ACK
        self._counts: Counter[int] = Counter()
        self._done: list[int] = []  # messages of this transaction that are acknowledged, or need no ACK
        self._transacted = transacted

    def next(self, handle: int, *, unreliable: bool) -> int:
        """Assign the next number; the client sends no ACK for ``unreliable`` messages."""
        self.last += 1
        if not unreliable:
            self._unacked[self.last] = handle
            self._counts[handle] += 1
        return self.last

    def count(self, handle: int) -> int:
        """Return how many messages of this handle wait for an ACK."""
        return self._counts[handle]

    def ack(self, number: int) -> tuple[int, ...]:
        """Process an ACK: the client has processed all messages up to this number.

        Returns:
            The messages that the ACK settles; on a transacted channel the commit will settle them.
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
        """Process an UNGET; return False if this handle has no such message."""
        if self._unacked.get(number) != handle:
            return False
        self._take(number)
        return True

    def end_transaction(self) -> tuple[int, ...]:
        """End the transaction; return the messages that were sent and not settled."""
        found = tuple(sorted((*self._done, *self._unacked)))
        self._done.clear()
        self._unacked.clear()
        self._counts.clear()
        return found

    def drop(self, handle: int) -> None:
        """Forget the unacknowledged messages of a closed handle, which are returned."""
        for number in [number for number, each in self._unacked.items() if each == handle]:
            self._take(number)

    def _take(self, number: int) -> None:
        self._counts[self._unacked.pop(number)] -= 1
