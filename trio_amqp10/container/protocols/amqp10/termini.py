"""Termini that outlive their links, until they expire or their peer attaches the link again (2.6.1, 3.5).

The expiry policy says when the timer of a terminus starts (3.5.6): when its link is detached, when the
session of that link ends, when the connection is closed, or never. A peer that attaches a link of the
same name gets the terminus that is kept for it. A link that is attached under that name already is stolen, on
whichever connection it is, and whether anything is kept of it or not. The peer is the same if its container-id is the
same and it proved to be the same user.

How many there may be
---------------------

================  ==================================================================================
each origin       ``limit_each``. The origin is the user; all peers of one network (an IPv4 address, the /64 of an
                  IPv6 address) that are not authenticated are one
anonymous         half of ``limit``: all peers that are not authenticated, so that they cannot take the place of users
all               ``limit``. A new one takes the place of the oldest that has no link, of the origin that has
                  most of these, if that origin has more than the new one's; the same within the anonymous half
each by age       ``longest`` seconds without a link. Where the policy ``never`` is asked for, the answer is
                  ``connection-close`` and this time, because that is what happens
================  ==================================================================================

An attach that is beyond a limit is accepted, but nothing is kept of it: its answer says ``link-detach`` and a timeout
of 0, and the log says why.

Knows when things are over; does not know what a terminus holds.
"""

from __future__ import annotations

import logging
from collections import Counter
from math import inf
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.container.nodes.alarm import Alarm
from trio_amqp10.container.nodes.watermark import Watermark
from trio_amqp10.engine.settlement import REMEMBERED
from trio_amqp10.engine.terminus import ReceiverTerminus
from trio_amqp10.net.shares import Shares
from trio_amqp10.peer.memory import Retention
from trio_amqp10.spec.messaging import ExpiryPolicy, TerminusDurability
from trio_amqp10.spec.transport import Role
from trio_amqp10.timer_heap import TimerHeap

from .kept import NOTHING, Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trio_amqp10.container.nodes.alarm import CallAt
    from trio_amqp10.spec.messaging import Source, Target

    from .archive import Archive
    from .kept import Holder, Key

__all__ = ["LONGEST", "Termini"]

_log = logging.getLogger("trio_amqp10.container")

LONGEST: Final = 86_400.0
"""Seconds that a terminus is kept without a link, unless the container says otherwise: a day."""

_POLICIES: Final = (
    ExpiryPolicy.LINK_DETACH,
    ExpiryPolicy.SESSION_END,
    ExpiryPolicy.CONNECTION_CLOSE,
    ExpiryPolicy.NEVER,
)


class Termini:
    """All termini that one container keeps.

    Args:
        now: seconds on any clock.
        call_at: has ``sweep`` called at a time on that clock.
        archive: has those that are to survive the container; None without a store.
        limit: how many are kept.
        limit_each: how many of one origin: a user, or a network for peers that are not authenticated.
        longest: seconds that one is kept at most without a link, whatever its peer asks for; infinite for no limit.
        watermark: counts the messages that came, in part or whole, and wait for their link.
    """

    def __init__(
        self,
        now: Callable[[], float],
        call_at: CallAt,
        *,
        archive: Archive | None = None,
        limit: int = 10_000,
        limit_each: int = 2_500,
        longest: float = LONGEST,
        watermark: Watermark | None = None,
    ) -> None:
        self._now = now
        self._archive = archive
        self._limit = limit
        self._limit_each = limit_each
        self._longest = longest
        self._watermark = Watermark() if watermark is None else watermark
        self._kept: dict[Key, Kept] = {}
        self._attached: dict[Key, Holder] = {}
        self._counts: Counter[str] = Counter()
        self._anonymous = 0
        self._orphans = (Shares[Kept](), Shares[Kept]())
        """Those without a link: of users, and of peers that are not authenticated."""
        self._full: set[str] = set()
        self._deadlines: TimerHeap[Kept] = TimerHeap()
        self._alarm = Alarm(self._deadlines.next, self.sweep, call_at)

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._kept)

    def restore(self) -> None:
        """Take back what the store has, once, before the nodes do: what was attached has lost its link."""
        if self._archive is None:
            return
        for kept in self._archive.restore():
            self._add(kept)
            self._orphans[kept.key.user is None].add(kept.origin, kept)
            if kept.retention.expiry_policy == ExpiryPolicy.NEVER:
                kept.retention = self._bounded(kept.retention)
            if kept.deadline == inf and kept.retention.expiry_policy != ExpiryPolicy.NEVER:
                kept.deadline = self._now() + kept.retention.timeout
                self._archive.write(kept)
            self._expect(kept)

    # -- what is granted --------------------------------------------------------------------

    def grant(self, key: Key, host: str | None, asked: Any, *, storable: bool) -> Retention:
        """What a peer gets that asks for this; durable if there is a store and the node is ``storable``.

        Args:
            key: of its link.
            host: the IP address that the peer comes from; None for one without.
            asked: its source or target.
            storable: whether the store can have what the node gives.
        """
        policy = asked.expiry_policy if asked.expiry_policy in _POLICIES else ExpiryPolicy.SESSION_END
        durable = TerminusDurability.NONE
        if storable and self._archive is not None:
            durable = TerminusDurability(min(asked.durable, TerminusDurability.UNSETTLED_STATE))
        given = self._bounded(Retention(durable, policy, asked.timeout))
        if not given.survives or (key not in self._kept and not self._has_room(key, key.origin(host))):
            return NOTHING
        return given

    def _bounded(self, asked: Retention) -> Retention:
        """What is asked for, but no longer than is possible."""
        if self._longest == inf:
            return asked
        longest = int(self._longest)
        if asked.expiry_policy == ExpiryPolicy.NEVER:
            return asked._replace(expiry_policy=ExpiryPolicy.CONNECTION_CLOSE, timeout=longest)
        return asked._replace(timeout=min(asked.timeout, longest))

    def _has_room(self, key: Key, origin: str) -> bool:
        why = self._obstacle(key, origin)
        if why is None:
            self._full.discard(origin)
            return True
        if origin not in self._full:  # one line for each time that it becomes full
            self._full.add(origin)
            _log.warning("the termini of links of %s are not kept: %s", origin, why)
        _log.info("the terminus of link %.64r of %s is not kept", key.name, origin)
        return False

    def _obstacle(self, key: Key, origin: str) -> str | None:
        """Why no more is kept for this origin; None if more is."""
        if self._counts[origin] >= self._limit_each:
            return f"there are {self._limit_each} already, the most for one user or network"
        if self._is_full(key) and self._expendable(key, origin) is None:
            return "there are as many as there may be, and none is older of an origin that has more"
        return None

    def _is_full(self, key: Key) -> bool:
        if key.user is None and self._anonymous >= (self._limit + 1) // 2:
            return True
        return len(self._kept) >= self._limit

    def _expendable(self, key: Key, origin: str) -> Kept | None:
        """What a new one of this origin would take the place of: that of a user, for a user only."""
        most, found = self._counts[origin], None
        for orphans in self._orphans[key.user is None :]:
            greediest = orphans.greediest()
            if greediest is not None and orphans.count(greediest) > most:
                most, found = orphans.count(greediest), orphans.oldest(greediest)
        return found

    # -- links that are attached ------------------------------------------------------------

    def steal(self, key: Key) -> None:
        """The peer attaches this link: what is attached under its name, on any connection of the peer's, is stolen (2.6.1)."""
        holder = self._attached.pop(key, None)
        if holder is not None:
            holder.steal()

    def attach(self, key: Key, holder: Holder) -> None:
        """``holder`` is attached under this name from now on; what was attached under it before is stolen."""
        self.steal(key)
        self._attached[key] = holder

    def detach(self, key: Key, holder: Holder) -> None:
        """``holder`` is not attached any more. Nothing happens if another link has the name by now."""
        if self._attached.get(key) is holder:
            del self._attached[key]

    # -- termini that are kept --------------------------------------------------------------

    def recall(self, key: Key) -> Kept | None:
        """What is kept for this link, of which the peer knows nothing but the name (2.6.3); None if there is nothing."""
        self.sweep()
        kept = self._kept.get(key)
        return kept if kept is not None and kept.end is not None else None

    def claim(
        self,
        key: Key,
        host: str | None,
        retention: Retention,
        holder: Holder,
        end: Source | Target,
        *,
        forgotten: bool,
    ) -> Kept:
        """The terminus of this link, for ``holder`` from now on; a new one if there is none.

        If the peer has ``forgotten`` the link, what it was sent before goes back first.
        """
        self.sweep()
        origin = key.origin(host)
        kept = self._kept.get(key)
        if kept is None:
            self._make_room(key, origin)
            kept = Kept(key, origin)
            self._add(kept)
        else:
            self._orphans[kept.key.user is None].discard(kept.origin, kept)
            self._unweigh(kept)
            self._uncount(kept)
            kept.origin = origin
            self._count(kept)
        if forgotten and key.role is Role.SENDER:
            self._expire(kept)
            kept.terminus = kept.new_terminus()
        kept.retention = retention
        kept.end = end
        kept.holder = holder
        kept.attached = True
        _stop(kept)
        if self._archive is not None:
            self._archive.keep(kept)
        return kept

    def has(self, kept: Kept) -> bool:
        """Whether it is kept still."""
        return self._kept.get(kept.key) is kept

    def held_by(self, key: Key, holder: Holder) -> Kept | None:
        """The terminus of this name, if ``holder`` has it, or had it last."""
        kept = self._kept.get(key)
        return kept if kept is not None and kept.holder is holder else None

    def release(self, kept: Kept, holder: Holder, *, closed: bool) -> None:
        """The link of ``holder`` is gone, for good or for now. A link that was stolen says nothing here."""
        if kept.holder is holder and kept.attached:
            kept.attached = False
            self._orphans[kept.key.user is None].add(kept.origin, kept)
            self._weigh(kept)
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
            kept.deadline = self._now() + kept.retention.timeout
            if kept.retention.timeout:
                self._expect(kept)
                if self._archive is not None:
                    self._archive.write(kept)
            else:
                self._expire(kept)
                self._remove(kept)

    def sweep(self) -> None:
        """Forget what has expired."""
        if self._deadlines:
            for kept in self._deadlines.due(self._now()):
                self._expire(kept)
                self._remove(kept)

    def _expect(self, kept: Kept) -> None:
        """Its deadline is set; infinite for never."""
        kept.timer = self._deadlines.add(kept.deadline, kept)
        self._alarm.expect(kept.deadline)

    def _make_room(self, key: Key, origin: str) -> None:
        if self._is_full(key) and (kept := self._expendable(key, origin)) is not None:
            _log.warning(
                "the oldest terminus of %s without a link is given up for one of %s", kept.origin, origin
            )
            self._expire(kept)
            self._remove(kept)

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
        self._count(kept)

    def _remove(self, kept: Kept) -> None:
        del self._kept[kept.key]
        _stop(kept)
        self._uncount(kept)
        self._unweigh(kept)
        self._orphans[kept.key.user is None].discard(kept.origin, kept)
        if self._archive is not None:
            self._archive.forget(kept)

    def _weigh(self, kept: Kept) -> None:
        """Count what came on the link and is not taken or not settled; what came in part is given up where that is too much."""
        terminus = kept.terminus
        if isinstance(terminus, ReceiverTerminus):
            if self._watermark.high:
                for tag in list(terminus.partials):
                    terminus.forget(tag)
            kept.octets = sum(map(len, terminus.partials.values()))
            kept.octets += sum(len(each.payload) for each in terminus.queue)
            kept.octets += REMEMBERED * len(terminus.unsettled)
            self._watermark.add(kept.octets, 0)

    def _unweigh(self, kept: Kept) -> None:
        octets, kept.octets = kept.octets, 0
        self._watermark.remove(octets, 0)

    def _count(self, kept: Kept) -> None:
        self._counts[kept.origin] += 1
        self._anonymous += kept.key.user is None

    def _uncount(self, kept: Kept) -> None:
        self._anonymous -= kept.key.user is None
        self._counts[kept.origin] -= 1
        if not self._counts[kept.origin]:
            del self._counts[kept.origin]
            self._full.discard(kept.origin)


def _stop(kept: Kept) -> None:
    """It does not expire: it is attached, or not kept any more."""
    kept.deadline = inf
    if kept.timer is not None:
        kept.timer.cancel()
