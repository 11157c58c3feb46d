"""The sessions of a connection, by the channels of both ends (2.5.1).

A channel is free when both ends have sent end (2.5.4). Some peers notice this a moment later: RabbitMQ 4.0
sends its end before it has released the channel, and never answers a begin that arrives in between. So a
channel is not used again until eight more sessions have ended, if there is another channel. The standard
recommends the lowest free channel (2.5.1), so that peers can have small tables; numbers stay low here too: at
most eight above the lowest.

Before the peer's open is read, only channel 0 is used, because the peer may announce that it accepts no other
(2.4.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.core import peer_rules as rules
from trio_amqp10.core.errors import LocalProtocolError

from .free_numbers import FreeNumbers
from .states import SessionState

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.spec.transport import Begin

    from .session import Session

_COOLING: Final = 8
"""The largest number of freed channels that wait before they are used again."""


class SessionChannels:
    """The mapping of channels to sessions, for both ends.

    Args:
        channel_max: the highest channel that we accept (2.7.1).

    Attributes:
        ours: every session by our channel, also one that has not begun yet.
        theirs: the sessions that the peer has begun, by the peer's channel.
    """

    __slots__ = ("_cooling", "_free", "_max", "_remote_max", "ours", "theirs")

    def __init__(self, channel_max: int) -> None:
        self._max = channel_max
        self._remote_max = 0  # only channel 0 may be used before the peer's open is read (2.4.1)
        self.ours: dict[int, Session] = {}
        self.theirs: dict[int, Session] = {}
        self._cooling: dict[int, None] | None = None  # None before a session has ended
        self._free = FreeNumbers()

    def add(self, make: Callable[[int], Session]) -> Session:
        """Add a new session, made by ``make``, on the lowest usable channel.

        Raises:
            LocalProtocolError: one of the ends has no free channel (2.7.1).
        """
        if not self.has_room:
            raise LocalProtocolError(
                f"no channel is free: channel-max allows {len(self.ours)} sessions (2.7.1): end one first"
            )
        return self._add(make)

    @property
    def has_room(self) -> bool:
        """Whether both ends have a free channel."""
        return len(self.ours) <= self._highest()

    def _highest(self) -> int:
        return min(self._max, self._remote_max)

    def peer_opened(self, channel_max: int) -> None:
        """Set the peer's channel-max, from its open."""
        self._remote_max = channel_max

    def _add(self, make: Callable[[int], Session]) -> Session:
        if self._free.lowest() <= self._highest():
            channel = self._free.take()
        else:
            # All other channels are in use: take the one that has waited longest.
            assert self._cooling is not None
            channel = next(iter(self._cooling))
            del self._cooling[channel]
        session = self.ours[channel] = make(channel)
        return session

    def on_begin(self, begin: Begin, channel: int, make: Callable[[int], Session]) -> Session:
        """Process the peer's begin; return its session, which ``make`` makes if new.

        Raises:
            RemoteProtocolError: the channel is in use, there is no free one, or no session waits for this
                answer.
        """
        if channel in self.theirs:
            raise rules.CHANNEL_IN_USE.broken(f"begin on channel {channel}, which is mapped already")
        if begin.remote_channel is None:
            # The peer begins a session (2.5.1).
            if not self.has_room:
                raise rules.SESSIONS.broken(
                    f"one session more than {len(self.ours)}: the channel-max of both is used up"
                )
            session = self._add(make)
        else:
            # The peer answers our begin, which it names by our channel (2.5.1).
            answered = self.ours.get(begin.remote_channel)
            if answered is None or answered.state is SessionState.UNMAPPED or answered.remote is not None:
                raise rules.REMOTE_CHANNEL.broken(
                    f"begin answers channel {begin.remote_channel}, which waits for no answer"
                )
            session = answered
        self.theirs[channel] = session
        session.on_begin(begin, channel)
        return session

    def at(self, channel: int) -> Session:
        """Return the session on the peer's ``channel``.

        Raises:
            RemoteProtocolError: no session is mapped to it.
        """
        session = self.theirs.get(channel)
        if session is None:
            raise rules.MAPPED_CHANNEL.broken(f"a frame on channel {channel}, which is not mapped")
        return session

    def release(self, session: Session) -> None:
        """Free the channels of a session that is over."""
        if session.state is SessionState.ENDED:
            assert session.remote_channel is not None  # both ends have begun, and ended
            self.ours.pop(session.channel, None)
            self.theirs.pop(session.remote_channel, None)
            if self._cooling is None:
                self._cooling = {}
            self._cooling[session.channel] = None
            if len(self._cooling) > _COOLING:
                cooled = next(iter(self._cooling))
                del self._cooling[cooled]
                self._free.free(cooled)

    def drop(self) -> None:
        """End every session, because the connection is over."""
        for session in dict.fromkeys((*self.ours.values(), *self.theirs.values())):
            session.lost()

    def clear(self) -> None:
        """Forget all sessions."""
        self.ours.clear()
        self.theirs.clear()
