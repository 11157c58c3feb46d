"""ChannelEngine: what the engines of protocols without credit share.

The peer of such an engine can only be slowed down by the transport: while ``wants_data`` is False the pump reads nothing, and
neither the peer's silence nor the time for its answers counts. This also stops a peer that causes output and does not read it.

Knows no frames, no methods and no clock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import inf
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from .answer_deadlines import AwaitedAnswers
from .heartbeats import Heartbeats

if TYPE_CHECKING:
    from collections.abc import Callable
    from enum import Enum

    from .endpoint_role import EndpointRole
    from .errors import RemoteProtocolError
    from .partial_pool import Pool
    from .state_machine import StateMachine

_READING: Final = "reading"
"""The reason to stop the timers of answers while the transport is not read."""


class _Limits(Protocol):
    @property
    def buffer(self) -> int: ...
    @property
    def handshake_timeout(self) -> float | None: ...
    @property
    def max_partial(self) -> int: ...


LimitsT = TypeVar("LimitsT", bound=_Limits)
StateT = TypeVar("StateT", bound="Enum")
ChannelT = TypeVar("ChannelT")
EventT = TypeVar("EventT")


class ChannelEngine(ABC, Generic[LimitsT, StateT, ChannelT, EventT]):
    """One connection: input, events, deadlines, and the count of incomplete messages.

    Args:
        role: which end this is.
        now: seconds of the caller's clock; the time for the handshake begins here.
        limits: the limits to enforce.
        lifecycle: the state of the connection.
        answer_timeout: seconds that the peer has for each answer; None for any time.

    Attributes:
        role: which end this is.
        limits: as given.
        partial: octets of incomplete messages.
        pool: counts them together with those of other connections; None for none. See ``Pool.join``.
        held: octets of arrivals that were not taken yet.
        braked: set by the application to stop reading. Call ``Pump.wake_writer`` after clearing it.
        crowded: a function of the application that returns True to stop reading an open connection, for example while a store is
            full. It is called before each read. None for never. Call ``Pump.wake_writer`` when its result changes.
        now: the time of the last call that had one.
        answers: the answers that the peer owes.
        on_output: see ``net.engine_interface.Engine``.
    """

    __slots__ = (
        "_buffer",
        "_channels",
        "_deadline",
        "_events",
        "_heartbeats",
        "_lifecycle",
        "_more",
        "_touched",
        "answers",
        "braked",
        "crowded",
        "held",
        "limits",
        "now",
        "on_output",
        "partial",
        "pool",
        "role",
    )

    def __init__(
        self,
        role: EndpointRole,
        now: float,
        limits: LimitsT,
        lifecycle: StateMachine[StateT, Any],
        answer_timeout: float | None,
    ) -> None:
        self.role: EndpointRole = role
        self.limits: LimitsT = limits
        self.partial: int = 0
        self.pool: Pool | None = None
        self.held: int = 0
        self.braked: bool = False
        self.crowded: Callable[[], bool] | None = None
        self.on_output: Callable[[], object] | None = None
        self.now: float = now
        self.answers: AwaitedAnswers = AwaitedAnswers(answer_timeout)
        self._lifecycle = lifecycle
        self._heartbeats = Heartbeats()
        self._buffer: bytearray = bytearray()
        self._more = False
        self._events: list[EventT] = []  # a list is enough, because there are few, taken after each slice
        self._touched: dict[ChannelT, None] = {}
        self._channels: dict[int, ChannelT] = {}
        wait = limits.handshake_timeout
        self._deadline: float | None = None if wait is None else now + wait

    @property
    def state(self) -> StateT:
        """The state of the connection, named after what is expected next until it is OPEN."""
        return self._lifecycle.state

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether both ends have opened the connection."""

    @property
    @abstractmethod
    def queued(self) -> int:
        """Octets that wait to be written."""

    @property
    @abstractmethod
    def has_room_for_answers(self) -> bool:
        """Whether the peer may cause more output; otherwise its commands wait unread.

        Channels are woken when there is room again.
        """

    @property
    def partial_octets(self) -> int:
        """See ``PoolMember``."""
        return self.partial

    @property
    @abstractmethod
    def _reads(self) -> bool:
        """Whether received octets may be processed: no decision is pending."""

    # -- called by a pump -------------------------------------------------------------------

    def receive_data(self, data: bytes, now: float) -> None:
        """Receive octets from the transport.

        Raises:
            ReplyError: the peer violated a rule that ends the connection; the close for the peer is queued.
        """
        self.receive_slice(data, now)
        while self.has_input():
            self.receive_slice(b"", now)

    @abstractmethod
    def receive_slice(self, data: bytes, now: float) -> None:
        """Receive octets, but process only a slice of them; see ``has_input``.

        Raises:
            ReplyError: as ``receive_data``.
        """

    def has_input(self) -> bool:
        """Whether received octets are left: call ``receive_slice`` again, with no octets."""
        return self._more and self._reads

    def unread_input(self) -> bytes:
        """Return the octets that were received and not read yet."""
        return bytes(self._buffer)

    def wants_data(self) -> bool:
        """Whether the transport should be read.

        If not, the call suspends the watch for the peer's heartbeats and the timers of its answers.

        False during a decision of the application, while ``braked`` or ``crowded`` is set, or while a buffer of either direction is
        full.
        """
        wants = self._lifecycle.over or (
            self._reads
            and not self.braked
            and self.held <= self.limits.buffer
            and self.has_room_for_answers
            and not (self.is_open and self.crowded is not None and self.crowded())
        )
        if wants:
            self.answers.go_on(_READING)
        else:
            self._heartbeats.suspend()
            self.answers.hold(_READING)
        return wants

    def receive_eof(self, now: float) -> None:
        """Note that the peer will send no more octets."""
        self.now = now
        self._lose("the peer ended the transport without a close")

    def transport_lost(self) -> None:
        """Note that the transport failed."""
        self._drop_output()
        self.on_output = None  # nothing is written any more
        self._lose("the transport was lost")

    def next_event(self) -> EventT | None:
        """Return the oldest event that was not taken yet; None if there is none."""
        return self._events.pop(0) if self._events else None

    def next_deadline(self) -> float | None:
        """Return the time at which to call ``handle_timer``; None for never."""
        if self._lifecycle.over:
            return None
        deadlines = (self._deadline, self._heartbeats.deadline(), self.answers.deadline())
        return min((each for each in deadlines if each is not None), default=None)

    def take_touched(self) -> list[ChannelT]:
        """Return the channels to wake now."""
        touched = list(self._touched)
        self._touched.clear()
        return touched

    # -- called by a channel ----------------------------------------------------------------

    def count_partial(self, octets: int) -> None:
        """Count ``octets`` more of incomplete messages; fewer if it is negative.

        Raises:
            ReplyError: 506, this connection stores too much; or all connections together do, and this one the most.
        """
        self.partial += octets
        pool = self.pool
        if pool is not None:
            pool.octets += octets
        if octets <= 0:
            return
        if self.partial > self.limits.max_partial:
            raise self._too_much(f"{self.limits.max_partial} octets on this connection")
        if pool is not None and pool.octets > pool.limit and not pool.relieve(self):
            raise self._too_much(str(pool))

    @abstractmethod
    def drop_largest(self, limit: str) -> bool:
        """Drop the largest incomplete message; see ``PoolMember``."""

    def emit(self, event: EventT) -> None:
        """Add an event for ``next_event``."""
        self._events.append(event)

    def touch(self, channel: ChannelT) -> None:
        """Wake the channel after this slice."""
        self._touched[channel] = None

    # -- called by the application ----------------------------------------------------------

    def open_by(self, deadline: float) -> None:
        """Shorten the time until the connection must be open; infinite changes nothing."""
        if deadline != inf:
            self._deadline = deadline if self._deadline is None else min(self._deadline, deadline)

    def _read_on(self, now: float) -> None:
        """Process octets that arrived while a decision of the application was pending."""
        if self._buffer:
            self.receive_data(b"", now)

    # -- the end ----------------------------------------------------------------------------

    def _lose(self, reason: str) -> None:
        if not self._lifecycle.over:
            self._finish()
            self.emit(self._lost(reason))

    def _finish(self) -> None:
        """End the connection: nothing more is read; queued octets are still written."""
        self._lifecycle.step(self._lifecycle.LOST)
        self._buffer.clear()
        self._more = False
        self._lose_channels()
        self._note_output()  # the writer must also learn that no more output will come

    def _note_output(self) -> None:
        """Tell the pump that ``data_to_send`` has something to return."""
        if self.on_output is not None:
            self.on_output()

    @abstractmethod
    def _lose_channels(self) -> None:
        """Tell all channels that the connection is over, and forget them."""

    @abstractmethod
    def _drop_output(self) -> None:
        """Drop all octets that wait to be written."""

    @abstractmethod
    def _lost(self, reason: str) -> EventT:
        """Return the event for a loss of the connection."""

    @abstractmethod
    def _too_much(self, limit: str) -> RemoteProtocolError:
        """Return the error for incomplete messages above a limit."""
