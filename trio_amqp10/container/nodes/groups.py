"""Messages of a group go to one consumer at a time, in order (3.2.4).

A group belongs to the link that has a lease on one of its messages, and is free again when all of
them are answered. Of those that wait only the first is *shown*: to its owner, or to all while it is free.
The others are available too, where browsers see them and where they expire, but reserved for no link.

So a group waits while no consumer may have its first message, or wants it: order goes before speed.
A message that comes back goes before those behind it, which its consumer may have had meanwhile. While it waits for its next
delivery (``Entry.due``), they wait too, and nobody sees it.

Knows entries and the keys of links; knows no queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .entry import Entry
from .sorted_blocks import SortedBlocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from .available import AvailableMessages

__all__ = ["Groups"]

_NOBODY: Final = object()
"""The key of no link."""


class _Group:
    """One group, while one of its messages is here.

    Attributes:
        waiting: its messages that are not leased.
        shown: the one of them that may be taken.
        leases: how many of its messages are leased.
        owner: the link that has them.
        settling: whether a caller is about to look at it again.
    """

    __slots__ = ("leases", "owner", "settling", "shown", "waiting")

    def __init__(self) -> None:
        self.waiting = SortedBlocks[Entry]()
        self.shown: Entry | None = None
        self.leases = 0
        self.owner: object = None
        self.settling = False

    def begin_lease(self, key: object) -> None:
        """A link has one more of its messages, and with it the group."""
        self.leases += 1
        self.owner = key

    def end_lease(self) -> None:
        """A lease has ended; with the last of them the group is free."""
        self.leases -= 1
        if not self.leases:
            self.owner = None


class Groups:
    """The groups of one queue.

    Args:
        available: where their messages are.
        offer: leases an entry to a waiting consumer that may have it; False if there is none.
    """

    __slots__ = ("_available", "_groups", "_offer")

    def __init__(self, available: AvailableMessages, offer: Callable[[Entry], bool]) -> None:
        self._groups: dict[str, _Group] = {}
        self._available = available
        self._offer = offer

    def __len__(self) -> int:
        return len(self._groups)

    def enter(self, name: str, entry: Entry) -> None:
        """A message has come."""
        self._wait(self._of(name), entry)
        self.settle(name)

    def _of(self, name: str) -> _Group:
        return self._groups.get(name) or self._groups.setdefault(name, _Group())

    def _wait(self, group: _Group, entry: Entry) -> None:
        group.waiting.add(entry)
        self._hide(entry)

    def leased(self, name: str, entry: Entry, key: object) -> None:
        """A link gets it, and with it the group; ``settle`` is the caller's to call."""
        group = self._groups[name]
        group.waiting.remove(entry)
        if group.shown is entry:
            group.shown = None
        group.begin_lease(key)

    def unleased(self, name: str, entry: Entry) -> None:
        """The link did not get it, after all: as before ``leased``, but that it is not shown."""
        group = self._groups[name]
        group.waiting.add(entry)
        group.end_lease()

    def note_lease(self, name: str, key: object) -> None:
        """A link has one of its messages since before a restart."""
        self._of(name).begin_lease(key)

    def returned(self, name: str, entry: Entry) -> None:
        """A lease has ended, and its message waits again."""
        group = self._groups[name]
        group.end_lease()
        self._wait(group, entry)
        self.settle(name)

    def delayed(self, name: str, entry: Entry, *, leased: bool) -> None:
        """A message waits until it is due: after a lease has ended, or after a restart."""
        group = self._of(name)
        if leased:
            group.end_lease()
        group.waiting.add(entry)
        self.settle(name)

    def due(self, name: str, entry: Entry) -> None:
        """It is due now."""
        self._hide(entry)
        self.settle(name)

    def ended(self, name: str) -> None:
        """A lease has ended, and its message with it."""
        self._groups[name].end_lease()
        self.settle(name)

    def removed(self, name: str, entry: Entry) -> None:
        """A waiting message is gone for good."""
        group = self._groups[name]
        group.waiting.remove(entry)
        if group.shown is entry:
            group.shown = None
        self.settle(name)

    def settle(self, name: str) -> None:
        """Show the first waiting message to the links that may have it, or lease it at once."""
        group = self._groups.get(name)
        if group is None or group.settling:
            return
        group.settling = True
        try:
            while self._show_first(group):
                pass
        finally:
            group.settling = False
        if not group.leases and not group.waiting:
            del self._groups[name]

    def _show_first(self, group: _Group) -> bool:
        """Whether it was given, so that there is another first."""
        first, shown = group.waiting.first(), group.shown
        if shown is not None:
            if shown is first and shown.eligibility.reserved == group.owner:
                return False
            self._available.remove(shown)
            self._hide(shown)
            group.shown = None
        if first is None or first.due is not None:
            return False
        self._available.remove(first)
        first.eligibility = first.eligibility._replace(reserved=group.owner)
        if self._offer(first):
            return True
        self._available.add(first)
        group.shown = first
        return False

    def _hide(self, entry: Entry) -> None:
        entry.eligibility = entry.eligibility._replace(reserved=_NOBODY)
        self._available.add(entry)
