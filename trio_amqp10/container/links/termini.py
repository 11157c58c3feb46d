"""Termini that outlive the links they were made for, until their time is up or somebody comes back (2.6.1, 3.5).

When the timer of a terminus starts, its expiry policy says (3.5.6): when its link is detached, when the
session of that link ends, when the connection is closed, or never. A peer that attaches a link of the
same name gets the terminus that is kept for it, and takes it from the link that has it, if that still
lives: that one is stolen. All this only where it is the same peer, by name and by identity.

Knows when things are over; does not know what a terminus holds.
"""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.errors import Condition
from trio_amqp10.peer.memory import Retention
from trio_amqp10.spec.messaging import ExpiryPolicy, TerminusDurability
from trio_amqp10.spec.transport import Role

from .deadlines import Deadlines
from .kept import NOTHING, Kept

if TYPE_CHECKING:
    from collections.abc import Callable

    from .archive import Archive
    from .kept import Holder, Key

__all__ = ["Termini"]

_POLICIES: Final = (
    ExpiryPolicy.LINK_DETACH,
    ExpiryPolicy.SESSION_END,
    ExpiryPolicy.CONNECTION_CLOSE,
    ExpiryPolicy.NEVER,
)


class Termini:
    """All that one container keeps.

    Args:
        now: seconds on any clock.
        call_at: has ``sweep`` called at a time on that clock.
        archive: has those that are to survive the container; None without a store.
        limit: how many are kept; beyond, peers are told that theirs is not.
        limit_each: how many of one user; or of one container, where it has not proved whose it is.
        longest: seconds that one is kept at most, whatever its peer asks for.
    """

    def __init__(
        self,
        now: Callable[[], float],
        call_at: Callable[[float, Callable[[], object]], object],
        *,
        archive: Archive | None = None,
        limit: int = 10_000,
        limit_each: int = 2_500,
        longest: float = 86_400.0,
    ) -> None:
        self._now = now
        self._call_at = call_at
        self._archive = archive
        self._limit = limit
        self._limit_each = limit_each
        self._longest = longest
        self._kept: dict[Key, Kept] = {}
        self._deadlines = Deadlines()
        self._alarm = inf  # when sweep is called next
        self._owned: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._kept)

    def restore(self) -> None:
        """Take back what the store has, once, before the nodes do: what was attached has lost its link."""
        if self._archive is not None:
            for kept in self._archive.restore():
                self._add(kept)
                if kept.deadline == inf and kept.retention.expiry_policy != ExpiryPolicy.NEVER:
                    kept.deadline = self._now() + kept.retention.timeout
                    self._archive.write(kept)
                self._expect(kept, kept.deadline)

    def grant(self, key: Key, user: str | None, asked: Any, *, storable: bool) -> Retention:
        """What a peer gets that asks for this; durable where there is a store, and the node is ``storable``."""
        policy = asked.expiry_policy if asked.expiry_policy in _POLICIES else ExpiryPolicy.SESSION_END
        timeout = min(asked.timeout, int(self._longest))
        durable = TerminusDurability.NONE
        if storable and self._archive is not None:
            durable = TerminusDurability(min(asked.durable, TerminusDurability.UNSETTLED_STATE))
        given = Retention(durable, policy, timeout)
        if not given.survives or (key not in self._kept and self._is_full(key.owned_by(user))):
            return NOTHING
        return given

    def _is_full(self, owner: str) -> bool:
        return len(self._kept) >= self._limit or self._owned[owner] >= self._limit_each

    def claim(
        self, key: Key, user: str | None, retention: Retention, holder: Holder, *, forgotten: bool
    ) -> Kept:
        """The terminus of this link, for ``holder`` from now on; a new one where there is none.

        Where the peer has ``forgotten`` the link, what it was sent before comes back first of all.

        Raises:
            RefusedError: ``amqp:unauthorized-access``, where it is somebody else's.
        """
        self.sweep()
        kept = self._kept.get(key)
        if kept is None:
            kept = Kept(key, user)
            self._add(kept)
        elif kept.user != user:
            raise RefusedError(
                Condition.UNAUTHORIZED_ACCESS,
                f"link {key.name!r} of {key.container_id!r} is another's (2.6.1)",
            )
        if kept.holder is not None and kept.attached:
            kept.holder.steal()
        if forgotten and key.role is Role.SENDER:
            self._expire(kept)
            kept.terminus = kept.new_terminus()
        kept.retention = retention
        kept.holder = holder
        kept.attached = True
        kept.deadline = inf
        if self._archive is not None:
            self._archive.keep(kept)
        return kept

    def release(self, kept: Kept, holder: Holder, *, closed: bool) -> None:
        """The link of ``holder`` is gone, for good or for now. Who has lost it to another says nothing here."""
        if kept.holder is holder and kept.attached:
            kept.attached = False
            if closed:
                self._remove(kept)
            elif kept.retention.expiry_policy == ExpiryPolicy.LINK_DETACH:
                self._start(kept)

    def session_ended(self, kept: Kept, holder: Holder) -> None:
        """The session that the link of ``holder`` was on is over."""
        if kept.holder is holder and kept.retention.expiry_policy == ExpiryPolicy.SESSION_END:
            self._start(kept)

    def connection_closed(self, kept: Kept, holder: Holder) -> None:
        """The connection that the link of ``holder`` was on is over, however it went."""
        if kept.holder is holder and kept.retention.expiry_policy != ExpiryPolicy.NEVER:
            self._start(kept)

    def _start(self, kept: Kept) -> None:
        if not kept.attached and kept.deadline == inf and self._kept.get(kept.key) is kept:
            self._expect(kept, self._now() + kept.retention.timeout)
            if kept.retention.timeout:
                if self._archive is not None:
                    self._archive.write(kept)
            else:
                self.sweep()

    def sweep(self) -> None:
        """Forget what has expired, and look again when the next may have."""
        now = self._now()
        if self._alarm <= now:
            self._alarm = inf
        for kept in self._deadlines.due(now):
            if self._kept.get(kept.key) is kept:
                self._expire(kept)
                self._remove(kept)
        self._arm()

    def _expect(self, kept: Kept, deadline: float) -> None:
        """A terminus expires then, unless its peer comes back."""
        self._deadlines.add(kept, deadline)
        self._arm()

    def _arm(self) -> None:
        if self._deadlines.next() < self._alarm:
            self._alarm = self._deadlines.next()
            self._call_at(self._alarm, self.sweep)

    def _expire(self, kept: Kept) -> None:
        """What is unsettled never will be settled; said before the rows go, so that both are in one commit."""
        if kept.holder is not None:
            kept.holder.expire()
        elif self._archive is not None:
            self._archive.expire(kept)
        if self._archive is not None:
            self._archive.forget(kept)

    def _add(self, kept: Kept) -> None:
        self._kept[kept.key] = kept
        self._owned[kept.key.owned_by(kept.user)] += 1

    def _remove(self, kept: Kept) -> None:
        del self._kept[kept.key]
        owner = kept.key.owned_by(kept.user)
        self._owned[owner] -= 1
        if not self._owned[owner]:
            del self._owned[owner]
        if self._archive is not None:
            self._archive.forget(kept)
