"""MessageSessions: the sessions of an entity, their locks and state.

A session is named by the ``group-id`` of its messages. One receiver at a time has it. A receiver requests a session by name, or
any session with messages, and then may have to wait.

Knows names and times; knows no messages.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trio_amqp10.broker.nodes.node import RefusedError

from .constants import SESSION_LOCK_LOST, SESSION_LOCKED

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.broker.nodes.clock import Clock
    from trio_amqp10.broker.nodes.node import Outlet


class SessionLock:
    """The lock of one receiver on a session.

    Attributes:
        session: the name of the session.
        outlet: the receiver, after its link is attached.
        expires_at: when the lock ends, by the clock.
        wall: the same in milliseconds since 1970.
    """

    __slots__ = ("expires_at", "outlet", "session", "wall")

    def __init__(self, session: str) -> None:
        self.session: str = session
        self.outlet: Outlet | None = None
        self.expires_at: float = math.inf
        self.wall: int = 0


@dataclass(eq=False, slots=True)
class SessionWaiter:
    """A receiver that waits for any session.

    Attributes:
        expires_at: when the wait ends, by the clock.
        found: called with the session, which it locks.
        given_up: called when the wait ends without a session.
    """

    expires_at: float
    found: Callable[[str], object]
    given_up: Callable[[], object]


class MessageSessions:
    """The sessions of one entity.

    Args:
        lock_duration: seconds that a lock lasts.
        clock: the clock for locks.

    Attributes:
        states: the state that receivers stored for each session, and when, in milliseconds since 1970.
        seekers: the receivers that wait for any session, in order.
    """

    def __init__(self, lock_duration: float, clock: Clock) -> None:
        self._duration = lock_duration
        self._clock = clock
        self._session_locks: dict[str, SessionLock] = {}  # in the order of their ends
        self.states: dict[str, tuple[bytes | None, int]] = {}
        self.seekers: deque[SessionWaiter] = deque()

    def __contains__(self, session: str | None) -> bool:
        return session in self._session_locks

    def lock(self, session: str) -> SessionLock:
        """Lock a session.

        Raises:
            RefusedError: another receiver has locked it.
        """
        if session in self._session_locks:
            raise RefusedError(SESSION_LOCKED, f"the session {session!r} is locked by another receiver")
        self._session_locks[session] = SessionLock(session)
        return self.renew(session)

    def renew(self, session: str) -> SessionLock:
        """Restart the time of a session's lock.

        Raises:
            RefusedError: the session is not locked.
        """
        self.check_locked(session)
        lock = self._session_locks[session] = self._session_locks.pop(session)
        lock.expires_at = self._clock.now() + self._duration
        lock.wall = round((self._clock.wall() + self._duration) * 1000)
        return lock

    def check_locked(self, session: str) -> None:
        """Check that a receiver has this session.

        Raises:
            RefusedError: the session is not locked.
        """
        if session not in self._session_locks:
            raise RefusedError(SESSION_LOCK_LOST, f"the session {session!r} is not locked")

    def end(self, lock: SessionLock) -> bool:
        """End a lock; return False if it had ended before."""
        if self._session_locks.get(lock.session) is not lock:
            return False
        del self._session_locks[lock.session]
        return True

    def ended(self) -> list[SessionLock]:
        """Return the locks whose time is over."""
        now = self._clock.now()
        return [lock for lock in self._session_locks.values() if lock.expires_at <= now]

    def keep(self, session: str, state: bytes | None) -> None:
        """Store a state for a session, instead of the last one; None deletes it."""
        self.states[session] = state, round(self._clock.wall() * 1000)

    def next_deadline(self) -> float:
        """Return when the next lock or wait ends; infinite if never."""
        first = next(iter(self._session_locks.values()), None)
        waits = min((seeker.expires_at for seeker in self.seekers), default=math.inf)
        return waits if first is None else min(first.expires_at, waits)
