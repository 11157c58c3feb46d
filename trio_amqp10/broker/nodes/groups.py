"""Messages with one group-id go to one consumer at a time, in order (3.2.4).

A group belongs to the link that has a lease on one of its messages, and is free again when all these leases have ended.
Only the first waiting message of a group is *shown*: to the owner, or to all links while the group is free. The others are
available too, so that browsers see them and they can expire, but they are reserved for no link.

So a group waits while no consumer may have or wants its first message: order is more important than speed. A returned
message goes before the later ones, which its consumer may have had meanwhile. While it waits for its next delivery
(``Entry.due``), the later ones wait too, and no consumer or browser sees it.

Knows entries and the keys of links; knows no queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .entry import Entry
from .sorted_blocks import SortedBlocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from .available import AvailableMessages

_NOBODY: Final = object()
"""The key of no link, for a reservation that excludes all."""


class _Group:
    """One group, while one of its messages is here.

    Attributes:
        waiting: its messages that are not leased.
        shown: the one of them that may be taken.
        leases: the number of its messages that are leased.
        owner: the link that has these leases.
        settling: whether ``Groups.settle`` is running for it.
    """

    __slots__ = ("leases", "owner", "settling", "shown", "waiting")

    def __init__(self) -> None:
        self.waiting = SortedBlocks[Entry]()
        self.shown: Entry | None = None
        self.leases = 0
        self.owner: object = None
        self.settling = False

    def begin_lease(self, key: object) -> None:
        """Give the group to a link that leased one of its messages."""
        self.leases += 1
        self.owner = key

    def end_lease(self) -> None:
        """Count one lease as ended; after the last, the group is free."""
        self.leases -= 1
        if not self.leases:
            self.owner = None


class Groups:
    """The groups of one queue.

    Args:
        available: the available messages of the queue.
        offer: leases an entry to a waiting consumer that may have it; returns False if there is none.
    """

    __slots__ = ("_available", "_groups", "_offer")

    def __init__(self, available: AvailableMessages, offer: Callable[[Entry], bool]) -> None:
        self._groups: dict[str, _Group] = {}
        self._available = available
        self._offer = offer

    def __len__(self) -> int:
        return len(self._groups)

    def enter(self, name: str, entry: Entry) -> None:
        """Add a new message."""
        self._wait(self._of(name), entry)
        self.settle(name)

    def _of(self, name: str) -> _Group:
        return self._groups.get(name) or self._groups.setdefault(name, _Group())

    def _wait(self, group: _Group, entry: Entry) -> None:
        group.waiting.add(entry)
        self._hide(entry)

    def leased(self, name: str, entry: Entry, key: object) -> None:
        """Give the group to a link that gets this message; the caller calls ``settle``."""
        group = self._groups[name]
        group.waiting.remove(entry)
        if group.shown is entry:
            group.shown = None
        group.begin_lease(key)

    def unleased(self, name: str, entry: Entry) -> None:
        """Undo ``leased``, because the link did not get the message; show it later."""
        group = self._groups[name]
        group.waiting.add(entry)
        group.end_lease()

    def note_lease(self, name: str, key: object) -> None:
        """Count a lease that a link has had since before a restart."""
        self._of(name).begin_lease(key)

    def returned(self, name: str, entry: Entry) -> None:
        """Put a message back after its lease."""
        group = self._groups[name]
        group.end_lease()
        self._wait(group, entry)
        self.settle(name)

    def delayed(self, name: str, entry: Entry, *, leased: bool) -> None:
        """Let a message wait until it is due.

        ``leased`` is True after a lease, and False after a restart.
        """
        group = self._of(name)
        if leased:
            group.end_lease()
        group.waiting.add(entry)
        self.settle(name)

    def due(self, name: str, entry: Entry) -> None:
        """Show a delayed message, which is due now, in its turn."""
        self._hide(entry)
        self.settle(name)

    def ended(self, name: str) -> None:
        """Count a lease whose message is gone."""
        self._groups[name].end_lease()
        self.settle(name)

    def removed(self, name: str, entry: Entry) -> None:
        """Remove a waiting message that is gone."""
        group = self._groups[name]
        group.waiting.remove(entry)
        if group.shown is entry:
            group.shown = None
        self.settle(name)

    def settle(self, name: str) -> None:
        """Show the first waiting message, or lease it at once."""
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
        """Show or lease the first message; return whether it was leased.

        If it was, there is another first message, so the caller must try again.
        """
        first, shown = group.waiting.first(), group.shown
        if shown is not None:
            # The right message is shown to the right link already. Otherwise hide it: an earlier message has come
            # back, or the group has another owner.
            if shown is first and shown.eligibility.reserved == group.owner:
                return False
            self._available.remove(shown)
            self._hide(shown)
            group.shown = None
        # The first message may wait for its redelivery; the later ones must not overtake it.
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
