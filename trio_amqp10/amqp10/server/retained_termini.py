"""Termini that outlive their links, until they expire or are resumed (2.6.1, 3.5).

The expiry policy decides when the timer of a terminus starts (3.5.6): when its link is detached, when the
session of that link ends, when the connection is closed, or never. A peer that attaches a link of the
same name gets the terminus that is kept for it. If a link of that name is attached already, on any connection, it is
stolen, even if no terminus is kept for it. The peer is the same if its container-id is the
same and it proved to be the same user.

Limits
------

================  ==================================================================================
each origin       ``limit_each``. The origin is the user; all peers of one network (an IPv4 address, the /64 of an
                  IPv6 address) that are not authenticated are one
anonymous         half of ``limit``: all peers that are not authenticated, so that they cannot displace users
all               ``limit``. A new terminus displaces the oldest without a link, of the origin that has
                  most of these, if that origin has more than the new one's; the same within the anonymous half
each by age       ``longest`` seconds without a link. If the policy ``never`` is asked for, the answer is
                  ``connection-close`` and this time, because that is what happens
================  ==================================================================================

An attach that is beyond a limit is accepted, but its terminus is not kept: its answer has ``link-detach`` and a timeout
of 0, and the reason is logged.

Knows when termini expire; does not know what a terminus holds.
"""

from __future__ import annotations

import logging
from collections import Counter
from math import inf
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.engine.settlement import REMEMBERED
from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus
from trio_amqp10.amqp10.peer.terminus_store import Retention
from trio_amqp10.amqp10.spec.messaging import ExpiryPolicy, TerminusDurability
from trio_amqp10.amqp10.spec.transport import Role
from trio_amqp10.broker.nodes.deadline_timer import DeadlineTimer
from trio_amqp10.broker.nodes.watermark import Watermark
from trio_amqp10.core.timer_heap import TimerHeap
from trio_amqp10.net.largest_owner import OwnerShares

from .retained_terminus import NOTHING, RetainedTerminus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trio_amqp10.amqp10.spec.messaging import Source, Target
    from trio_amqp10.broker.nodes.deadline_timer import CallAt

    from .link_end_base import LinkEnd
    from .link_store import LinkStore
    from .retained_terminus import Key

_log = logging.getLogger("trio_amqp10.container")

LONGEST: Final = 86_400.0
"""The most seconds that a terminus is kept without a link by default: a day."""

_POLICIES: Final = (
    ExpiryPolicy.LINK_DETACH,
    ExpiryPolicy.SESSION_END,
    ExpiryPolicy.CONNECTION_CLOSE,
    ExpiryPolicy.NEVER,
)


class Termini:
    """All termini that one container keeps.

    Args:
        now: returns seconds on any clock.
        call_at: schedules a call of ``sweep`` at a time on that clock.
        link_store: stores the durable termini; None without a store.
        limit: how many are kept.
        limit_each: how many of one origin: a user, or a network for peers that are not authenticated.
        longest: seconds that each is kept at most without a link, whatever its peer asks for; infinite for no limit.
        watermark: counts messages that arrived, in part or whole, and wait for their link.
    """

    def __init__(
        self,
        now: Callable[[], float],
        call_at: CallAt,
        *,
        link_store: LinkStore | None = None,
        limit: int = 10_000,
        limit_each: int = 2_500,
        longest: float = LONGEST,
        watermark: Watermark | None = None,
    ) -> None:
        self._now = now
        self._link_store = link_store
        self._limit = limit
        self._limit_each = limit_each
        self._longest = longest
        self._watermark = Watermark() if watermark is None else watermark
        self._retained: dict[Key, RetainedTerminus] = {}
        self._attached: dict[Key, LinkEnd[Any]] = {}
        self._counts: Counter[str] = Counter()
        self._anonymous = 0
        self._orphans = (OwnerShares[RetainedTerminus](), OwnerShares[RetainedTerminus]())
        """The termini without a link: of users, and of peers that are not authenticated."""
        self._full: set[str] = set()
        self._deadlines: TimerHeap[RetainedTerminus] = TimerHeap()
        self._deadline_timer = DeadlineTimer(self._deadlines.next, self.sweep, call_at)

    def __len__(self) -> int:
        return len(self._retained)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._retained)

    def restore(self) -> None:
        """Read the termini of the store, once, before the nodes read theirs.

        Termini that were attached have lost their links.
        """
        if self._link_store is None:
            return
        for retained in self._link_store.restore():
            self._add(retained)
            self._orphans[retained.key.user is None].add(retained.origin, retained)
            if retained.retention.expiry_policy == ExpiryPolicy.NEVER:
                retained.retention = self._bounded(retained.retention)
            if retained.deadline == inf and retained.retention.expiry_policy != ExpiryPolicy.NEVER:
                retained.deadline = self._now() + retained.retention.timeout
                self._link_store.write(retained)
            self._expect(retained)

    # -- grants -----------------------------------------------------------------------------

    def grant(self, key: Key, host: str | None, asked: Any, *, storable: bool) -> Retention:
        """Return the retention that a peer gets; durable if it can be stored.

        Args:
            key: of its link.
            host: the IP address that the peer comes from; None for a peer without one.
            asked: its source or target.
            storable: whether deliveries of the node can be in the store.
        """
        policy = asked.expiry_policy if asked.expiry_policy in _POLICIES else ExpiryPolicy.SESSION_END
        durable = TerminusDurability.NONE
        if storable and self._link_store is not None:
            durable = TerminusDurability(min(asked.durable, TerminusDurability.UNSETTLED_STATE))
        given = self._bounded(Retention(durable, policy, asked.timeout))
        if not given.survives or (key not in self._retained and not self._has_room(key, key.origin(host))):
            return NOTHING
        return given

    def _bounded(self, asked: Retention) -> Retention:
        """Return the retention that is asked for, cut to the longest time."""
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
        if origin not in self._full:  # Log once each time that an origin reaches its limit.
            self._full.add(origin)
            _log.warning("the termini of links of %s are not kept: %s", origin, why)
        _log.info("the terminus of link %.64r of %s is not kept", key.name, origin)
        return False

    def _obstacle(self, key: Key, origin: str) -> str | None:
        """Return why no more termini are kept for this origin; None if they are."""
        if self._counts[origin] >= self._limit_each:
            return f"there are {self._limit_each} already, the most for one user or network"
        if self._is_full(key) and self._expendable(key, origin) is None:
            return "the limit of all termini is reached, and no other user or network has more to displace"
        return None

    def _is_full(self, key: Key) -> bool:
        if key.user is None and self._anonymous >= (self._limit + 1) // 2:
            return True
        return len(self._retained) >= self._limit

    def _expendable(self, key: Key, origin: str) -> RetainedTerminus | None:
        """Return the terminus that a new one of this origin would displace, or None.

        A terminus of a user is displaced only for a user.
        """
        most, found = self._counts[origin], None
        for orphans in self._orphans[key.user is None :]:
            greediest = orphans.greediest()
            if greediest is not None and orphans.count(greediest) > most:
                most, found = orphans.count(greediest), orphans.oldest(greediest)
        return found

    # -- links that are attached ------------------------------------------------------------

    def steal(self, key: Key) -> None:
        """Take the name from the link that is attached under it, if any (2.6.1).

        The peer attaches another link of this name; the old link may be on any connection of the peer.
        """
        holder = self._attached.pop(key, None)
        if holder is not None:
            holder.steal()

    def attach(self, key: Key, holder: LinkEnd[Any]) -> None:
        """Note that ``holder`` is attached under this name; steal an older link."""
        self.steal(key)
        self._attached[key] = holder

    def detach(self, key: Key, holder: LinkEnd[Any]) -> None:
        """Note that ``holder`` is detached.

        Nothing happens if another link has the name by now.
        """
        if self._attached.get(key) is holder:
            del self._attached[key]

    # -- termini that are kept --------------------------------------------------------------

    def recall(self, key: Key) -> RetainedTerminus | None:
        """Return the terminus kept for a link that the peer knows by name only (2.6.3).

        Return None if none is kept.
        """
        self.sweep()
        retained = self._retained.get(key)
        return retained if retained is not None and retained.end is not None else None

    def claim(
        self,
        key: Key,
        host: str | None,
        retention: Retention,
        holder: LinkEnd[Any],
        end: Source | Target,
        *,
        forgotten: bool,
    ) -> RetainedTerminus:
        """Give ``holder`` the terminus of this link, or a new one if there is none.

        If the peer has ``forgotten`` the link, the messages that it was sent before go back to their node first. So
        they do if it receives from another node now: whether it may still receive from theirs was not asked.
        """
        self.sweep()
        origin = key.origin(host)
        retained = self._retained.get(key)
        if retained is None:
            self._make_room(key, origin)
            retained = RetainedTerminus(key, origin)
            self._add(retained)
        else:
            # The peer may reconnect from another network, so that another limit counts.
            self._orphans[retained.key.user is None].discard(retained.origin, retained)
            self._unweigh(retained)
            self._uncount(retained)
            retained.origin = origin
            self._count(retained)
        moved = retained.end is not None and retained.end.address != end.address
        if (forgotten or moved) and key.role is Role.SENDER:
            # An attach without an unsettled map starts with no deliveries (2.6.13).
            self._expire(retained)
            retained.terminus = retained.new_terminus()
        retained.retention = retention
        retained.end = end
        retained.holder = holder
        retained.attached = True
        _stop(retained)
        if self._link_store is not None:
            self._link_store.keep(retained)
        return retained

    def has(self, retained: RetainedTerminus) -> bool:
        """Whether this terminus is still kept."""
        return self._retained.get(retained.key) is retained

    def held_by(self, key: Key, holder: LinkEnd[Any]) -> RetainedTerminus | None:
        """Return the terminus of this name, if ``holder`` has it, or had it last."""
        retained = self._retained.get(key)
        return retained if retained is not None and retained.holder is holder else None

    def release(self, retained: RetainedTerminus, holder: LinkEnd[Any], *, closed: bool) -> None:
        """Note that the link of ``holder`` is closed or detached.

        Nothing happens for a link that was stolen.
        """
        if retained.holder is holder and retained.attached:
            retained.attached = False
            self._orphans[retained.key.user is None].add(retained.origin, retained)
            self._weigh(retained)
            if closed:
                self._remove(retained)
            elif retained.retention.expiry_policy == ExpiryPolicy.LINK_DETACH:
                self._start(retained)

    def session_ended(self, retained: RetainedTerminus, holder: LinkEnd[Any]) -> None:
        """Note that the session of the link of ``holder`` has ended."""
        if retained.holder is holder and retained.retention.expiry_policy == ExpiryPolicy.SESSION_END:
            self._start(retained)

    def connection_closed(self, retained: RetainedTerminus, holder: LinkEnd[Any]) -> None:
        """Note that the connection of the link of ``holder`` is over."""
        if retained.holder is holder and retained.retention.expiry_policy != ExpiryPolicy.NEVER:
            self._start(retained)

    def _start(self, retained: RetainedTerminus) -> None:
        if (
            not retained.attached
            and retained.deadline == inf
            and self._retained.get(retained.key) is retained
        ):
            retained.deadline = self._now() + retained.retention.timeout
            if retained.retention.timeout:
                self._expect(retained)
                if self._link_store is not None:
                    self._link_store.write(retained)
            else:
                self._expire(retained)
                self._remove(retained)

    def sweep(self) -> None:
        """Forget the termini that have expired."""
        if self._deadlines:
            for retained in self._deadlines.pop_due(self._now()):
                self._expire(retained)
                self._remove(retained)

    def _expect(self, retained: RetainedTerminus) -> None:
        """Schedule the deadline of a terminus, unless it is infinite."""
        retained.timer = self._deadlines.add(retained.deadline, retained)
        self._deadline_timer.schedule(retained.deadline)

    def _make_room(self, key: Key, origin: str) -> None:
        if self._is_full(key) and (retained := self._expendable(key, origin)) is not None:
            _log.warning(
                "the oldest terminus of %s without a link is displaced by one of %s", retained.origin, origin
            )
            self._expire(retained)
            self._remove(retained)

    def _expire(self, retained: RetainedTerminus) -> None:
        """End the unsettled deliveries: their outcomes will never be known.

        The leases end before the rows are deleted, so that both are in one commit.
        """
        if retained.holder is not None:
            retained.holder.expire()
        elif self._link_store is not None:
            self._link_store.expire(retained)
        if self._link_store is not None:
            self._link_store.forget(retained)

    def _add(self, retained: RetainedTerminus) -> None:
        self._retained[retained.key] = retained
        self._count(retained)

    def _remove(self, retained: RetainedTerminus) -> None:
        del self._retained[retained.key]
        retained.outlet_key.end()
        _stop(retained)
        self._uncount(retained)
        self._unweigh(retained)
        self._orphans[retained.key.user is None].discard(retained.origin, retained)
        if self._link_store is not None:
            self._link_store.forget(retained)

    def _weigh(self, retained: RetainedTerminus) -> None:
        """Count the messages that arrived on the link and are not taken or not settled.

        Partly received messages are dropped first, if memory is short.
        """
        terminus = retained.terminus
        if isinstance(terminus, ReceiverTerminus):
            if self._watermark.high:
                for tag in list(terminus.partials):
                    terminus.forget(tag)
            retained.octets = sum(map(len, terminus.partials.values()))
            retained.octets += sum(len(each.payload) for each in terminus.queue)
            retained.octets += REMEMBERED * len(terminus.unsettled)
            self._watermark.add(retained.octets, 0)

    def _unweigh(self, retained: RetainedTerminus) -> None:
        octets, retained.octets = retained.octets, 0
        self._watermark.remove(octets, 0)

    def _count(self, retained: RetainedTerminus) -> None:
        self._counts[retained.origin] += 1
        self._anonymous += retained.key.user is None

    def _uncount(self, retained: RetainedTerminus) -> None:
        self._anonymous -= retained.key.user is None
        self._counts[retained.origin] -= 1
        if not self._counts[retained.origin]:
            del self._counts[retained.origin]
            self._full.discard(retained.origin)


def _stop(retained: RetainedTerminus) -> None:
    """Remove the deadline of a terminus that is attached, or not kept any more."""
    retained.deadline = inf
    if retained.timer is not None:
        retained.timer.cancel()
