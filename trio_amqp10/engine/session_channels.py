"""The sessions of a connection, by the channels of both ends (2.5.1).

A channel is free when both ends have said end (2.5.4). There are peers that take a moment longer to see it: RabbitMQ 4.0
sends its end before it has released the channel, and a begin that comes meanwhile is never answered. So a channel rests
while eight more sessions end, if there is another. The standard recommends the lowest free channel (2.5.1) so
that peers can keep small tables; numbers stay low here too: at most eight above the lowest.

Before the peer's open only channel 0 is used, because it may announce no more than that (2.4.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10 import protocol_rules as rules
from trio_amqp10.errors import LocalProtocolError

from .free_numbers import FreeNumbers
from .states import SessionState

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.spec.transport import Begin

    from .session import Session

__all__ = ["SessionChannels"]

_RESTING: Final = 8
"""Channels that are not used again at once, at most: numbers stay low."""


class SessionChannels:
    """Which channel is which session's.

    Args:
        channel_max: the highest channel that we take (2.7.1).

    Attributes:
        ours: every session by the channel that we write it on, from before it begins.
        theirs: those that the peer has begun, by the channel that it writes them on.
    """

    __slots__ = ("_free", "_max", "_remote_max", "_resting", "ours", "theirs")

    def __init__(self, channel_max: int) -> None:
        self._max = channel_max
        self._remote_max = 0  # Before the peer's open there is only channel 0 (2.4.1).
        self.ours: dict[int, Session] = {}
        self.theirs: dict[int, Session] = {}
        self._resting: dict[int, None] = {}
        self._free = FreeNumbers()

    def add(self, make: Callable[[int], Session]) -> Session:
        """A new session, which ``make`` makes, on our lowest free channel that does not rest.

        Raises:
            LocalProtocolError: there is none, for both ends have to have one left (2.7.1).
        """
        if not self.has_room:
            raise LocalProtocolError(
                f"{len(self.ours)} sessions are all that channel-max allows (2.7.1): end one first"
            )
        return self._add(make)

    @property
    def has_room(self) -> bool:
        """Whether both ends have a channel left."""
        return len(self.ours) <= self._highest()

    def _highest(self) -> int:
        return min(self._max, self._remote_max)

    def peer_opened(self, channel_max: int) -> None:
        """The peer's open was read: it takes channels up to this one."""
        self._remote_max = channel_max

    def _add(self, make: Callable[[int], Session]) -> Session:
        if self._free.lowest() <= self._highest():
            channel = self._free.take()
        else:
            channel = next(iter(self._resting))
            del self._resting[channel]
        session = self.ours[channel] = make(channel)
        return session

    def on_begin(self, begin: Begin, channel: int, make: Callable[[int], Session]) -> Session:
        """The peer's begin, first or second: the session that it is about; ``make`` makes it if it is new.

        Raises:
            RemoteProtocolError: it is about none that could be.
        """
        if channel in self.theirs:
            raise rules.CHANNEL_IN_USE.broken(f"begin on channel {channel}, which is mapped already")
        if begin.remote_channel is None:
            if not self.has_room:
                raise rules.SESSIONS.broken(
                    f"one session more than {len(self.ours)}: the channel-max of both is used up"
                )
            session = self._add(make)
        else:
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
        """The session that the peer writes on ``channel``.

        Raises:
            RemoteProtocolError: there is none.
        """
        session = self.theirs.get(channel)
        if session is None:
            raise rules.MAPPED_CHANNEL.broken(f"a frame on channel {channel}, which is not mapped")
        return session

    def release(self, session: Session) -> None:
        """Free the channels of a session, once it is over."""
        if session.state is SessionState.ENDED:
            assert session.remote_channel is not None  # both ends have said end
            self.ours.pop(session.channel, None)
            self.theirs.pop(session.remote_channel, None)
            self._resting[session.channel] = None
            if len(self._resting) > _RESTING:
                rested = next(iter(self._resting))
                del self._resting[rested]
                self._free.free(rested)

    def drop(self) -> None:
        """The connection is over: so is every session."""
        for session in dict.fromkeys((*self.ours.values(), *self.theirs.values())):
            session.lost()

    def clear(self) -> None:
        """Nobody asks for a session by its channel any more."""
        self.ours.clear()
        self.theirs.clear()
