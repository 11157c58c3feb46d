"""MessageSessions: the sessions of an entity, their locks and state.

A session is named by the ``group-id`` of its messages. One receiver at a time has it; receivers may ask for one by
name, or for whichever has messages, and then wait for one.

Knows names and times; knows no messages.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trio_amqp10.container.nodes.node import RefusedError

from .constants import SESSION_LOCK_LOST, SESSION_LOCKED

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.container.nodes.clock import Clock
    from trio_amqp10.container.nodes.node import Outlet

__all__ = ["MessageSessions", "SessionLock", "SessionWaiter"]


class SessionLock:
    """One receiver has this session.

    Attributes:
        session: which.
        outlet: the receiver, once its link is there.
        expires_at: when it ends, on the clock.
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
        expires_at: until when it waits, on the clock.
        found: called with the session; it locks it.
        given_up: called when the time is over.
    """

    expires_at: float
    found: Callable[[str], object]
    given_up: Callable[[], object]


class MessageSessions:
    """Those of one entity.

    Args:
        lock_duration: seconds.
        clock: what locks end by.

    Attributes:
        states: what receivers keep with a session, and when they last did, in milliseconds since 1970.
        seekers: those who wait, in turn.
    """

    def __init__(self, lock_duration: float, clock: Clock) -> None:
        self._duration = lock_duration
        self._clock = clock
        self._session_locks: dict[str, SessionLock] = {}  # the next to end comes first
        self.states: dict[str, tuple[bytes | None, int]] = {}
        self.seekers: deque[SessionWaiter] = deque()

    def __contains__(self, session: str | None) -> bool:
        return session in self._session_locks

    def lock(self, session: str) -> SessionLock:
        """Let one receiver have it.

        Raises:
            RefusedError: another has it.
        """
        if session in self._session_locks:
            raise RefusedError(SESSION_LOCKED, f"the session {session!r} is locked by another receiver")
        self._session_locks[session] = SessionLock(session)
        return self.renew(session)

    def renew(self, session: str) -> SessionLock:
        """Its time begins anew.

        Raises:
            RefusedError: nobody has it.
        """
        lock = self._session_locks.pop(session, None)
        if lock is None:
            raise RefusedError(SESSION_LOCK_LOST, f"nobody has the session {session!r} locked")
        self._session_locks[session] = lock
        lock.expires_at = self._clock.now() + self._duration
        lock.wall = round((self._clock.wall() + self._duration) * 1000)
        return lock

    def end(self, lock: SessionLock) -> bool:
        """Nobody has it any more; False if that was so before."""
        if self._session_locks.get(lock.session) is not lock:
            return False
        del self._session_locks[lock.session]
        return True

    def ended(self) -> list[SessionLock]:
        """Those whose time is over."""
        now = self._clock.now()
        return [lock for lock in self._session_locks.values() if lock.expires_at <= now]

    def keep(self, session: str, state: bytes | None) -> None:
        """Keep a state with the session, in place of the last; None for none."""
        self.states[session] = state, round(self._clock.wall() * 1000)

    def next_deadline(self) -> float:
        """When a lock ends, or somebody's patience; infinite for never."""
        first = next(iter(self._session_locks.values()), None)
        waits = min((seeker.expires_at for seeker in self.seekers), default=math.inf)
        return waits if first is None else min(first.expires_at, waits)
