"""Termini that outlive the links they were made for, until their time is up or somebody comes back (2.6.1, 3.5).

When the timer of a terminus starts, its expiry policy says (3.5.6): when its link is detached, when the
session of that link ends, when the connection is closed, or never. A peer that attaches a link of the
same name gets the terminus that is kept for it, and takes it from the link that has it, if that still
lives: that one is stolen. All this only where it is the same peer, by name and by identity.

Knows when things are over; does not know what a terminus holds.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from trio_amqp10.engine.terminus import ReceiverTerminus, SenderTerminus
from trio_amqp10.errors import Condition
from trio_amqp10.peer.memory import Retention
from trio_amqp10.spec.messaging import ExpiryPolicy, TerminusDurability
from trio_amqp10.spec.transport import Role

from .node import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Kept", "Key", "Termini"]

_POLICIES: Final = (
    ExpiryPolicy.LINK_DETACH,
    ExpiryPolicy.SESSION_END,
    ExpiryPolicy.CONNECTION_CLOSE,
    ExpiryPolicy.NEVER,
)
_NOTHING: Final = Retention(expiry_policy=ExpiryPolicy.LINK_DETACH)


class Key(NamedTuple):
    """Which link: names are unique between two containers, in one direction (2.6.1)."""

    container_id: str
    name: str
    role: bool


class Holder(Protocol):
    """The link that has a terminus."""

    def steal(self) -> None:
        """Another link has it now."""
        ...

    def expire(self) -> None:
        """The link is long gone, and nobody came back: what is unsettled on it never will be settled."""
        ...


class Kept:
    """One terminus.

    Attributes:
        key: of its link.
        identity: the user that the peer proved to be.
        terminus: what is unsettled.
        retention: what was agreed.
        holder: the link that has it, or had it last.
        attached: whether that link lives.
        deadline: when it expires, while it is not attached.
    """

    __slots__ = ("attached", "deadline", "holder", "identity", "key", "retention", "terminus")

    def __init__(self, key: Key, identity: Any) -> None:
        self.key = key
        self.identity = identity
        self.terminus = SenderTerminus() if key.role is Role.SENDER else ReceiverTerminus()
        self.retention = _NOTHING
        self.holder: Holder | None = None
        self.attached = False
        self.deadline = inf


class Termini:
    """All that one container keeps.

    Args:
        now: seconds on any clock.
        call_at: has ``sweep`` called at a time on that clock.
        limit: how many are kept; beyond, peers are told that theirs is not.
        longest: seconds that one is kept at most, whatever its peer asks for.
    """

    def __init__(
        self,
        now: Callable[[], float],
        call_at: Callable[[float, Callable[[], object]], object],
        *,
        limit: int = 10_000,
        longest: float = 86_400.0,
    ) -> None:
        self._now = now
        self._call_at = call_at
        self._limit = limit
        self._longest = longest
        self._kept: dict[Key, Kept] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def grant(self, key: Key, asked: Any) -> Retention:
        """What a peer gets that asks for this; of unsettled state nothing outlasts this process, so it is never durable."""
        policy = asked.expiry_policy if asked.expiry_policy in _POLICIES else ExpiryPolicy.SESSION_END
        timeout = min(asked.timeout, int(self._longest))
        given = Retention(TerminusDurability.NONE, policy, timeout)
        if not given.survives or (len(self._kept) >= self._limit and key not in self._kept):
            return _NOTHING
        return given

    def claim(
        self, key: Key, identity: Any, retention: Retention, holder: Holder, *, forgotten: bool
    ) -> Kept:
        """The terminus of this link, for ``holder`` from now on; a new one where there is none.

        Where the peer has ``forgotten`` the link, what it was sent before comes back first of all.

        Raises:
            RefusedError: ``amqp:unauthorized-access``, where it is somebody else's.
        """
        self.sweep()
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = Kept(key, identity)
        elif kept.identity != identity:
            raise RefusedError(
                Condition.UNAUTHORIZED_ACCESS,
                f"link {key.name!r} of {key.container_id!r} is another's (2.6.1)",
            )
        if kept.holder is not None and kept.attached:
            kept.holder.steal()
        if forgotten and key.role is Role.SENDER:
            if kept.holder is not None:
                kept.holder.expire()
            kept.terminus = SenderTerminus()
        kept.retention = retention
        kept.holder = holder
        kept.attached = True
        kept.deadline = inf
        return kept

    def release(self, kept: Kept, holder: Holder, *, closed: bool) -> None:
        """The link of ``holder`` is gone, for good or for now. Who has lost it to another says nothing here."""
        if kept.holder is holder and kept.attached:
            kept.attached = False
            if closed:
                del self._kept[kept.key]
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
                self._call_at(kept.deadline, self.sweep)
            else:
                self.sweep()

    def sweep(self) -> None:
        """Forget what has expired."""
        now = self._now()
        for kept in [kept for kept in self._kept.values() if kept.deadline <= now]:
            del self._kept[kept.key]
            if kept.holder is not None:
                kept.holder.expire()
