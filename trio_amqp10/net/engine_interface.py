"""The calls that the engine of every dialect offers, so that a pump can drive it.

No call waits, and none knows a clock, a socket or a task: octets and the time are arguments. A call that fails because of the
peer raises an ``AmqpError``; the engine has then prepared its last octets, and ``data_to_send`` returns them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Wakeable(Protocol):
    """An object that the engine touched, such as a link or a channel."""

    def wake(self) -> None:
        """Let the tasks that wait for the object check it again; must not raise."""
        ...


class Engine(Protocol):
    """One connection, in any dialect. Times are seconds on the caller's clock.

    An engine may offer three further methods: ``BrakingEngine.wants_data``, without which all input is read at once;
    ``ClosedByPeerEngine.awaits_eof``, without which the stream is closed as soon as ``data_to_send`` returns None; and
    ``WatchableEngine.unread_input``, without which the frames of the peer cannot be watched.

    Attributes:
        on_output: called each time ``data_to_send`` begins to have something to return, whichever call of the engine caused
            it; the end of all output counts. The pump sets it to wake its writer, so callers of the engine need not do so.
    """

    @property
    def on_output(self) -> Callable[[], object] | None:
        """The callback described above."""
        ...

    @on_output.setter
    def on_output(self, call: Callable[[], object] | None) -> None: ...

    def receive_slice(self, data: bytes, now: float) -> None:
        """Take octets of the peer, and read a limited part of the input so far.

        The limit is the work that one connection may do without a pause.
        """
        ...

    def has_input(self) -> bool:
        """Whether octets are left to read; then call ``receive_slice(b"", now)`` again."""
        ...

    def receive_eof(self, now: float) -> None:
        """Note that the peer will send no more octets."""
        ...

    def transport_lost(self) -> None:
        """Note that no octets can be sent or received any more.

        May be called more than once, and after the end.
        """
        ...

    def next_event(self) -> Any | None:
        """Return the oldest event not yet reported; None if there is none."""
        ...

    def data_to_send(self) -> bytes | None:
        """Return all octets to write now, or None after the last.

        ``b""`` means that there are none now. After None the stream is closed.
        """
        ...

    def has_output(self) -> bool:
        """Whether ``data_to_send`` may return more than ``b""``.

        The pump calls it after everything that happens, so it must be cheap.
        """
        ...

    def next_deadline(self) -> float | None:
        """Return when to call ``handle_timer``; None for never."""
        ...

    def handle_timer(self, now: float) -> None:
        """Do everything that is due at ``now``."""
        ...

    def take_touched(self) -> Iterable[Wakeable]:
        """Return the objects that changed since the last call, to be woken."""
        ...


class BrakingEngine(Engine, Protocol):
    """An engine of a dialect without credit.

    Its peer can only be slowed down by not reading the transport.
    """

    def wants_data(self) -> bool:
        """Whether the transport should be read.

        While it is False the pump reads nothing, so it does not notice that the peer is gone until a write fails; writes and the
        timer continue. The pump calls this again after each ``wake_writer``, and after it has taken the octets to write. Octets that
        the engine has not read yet (``has_input``) are given to it before new ones.

        So an engine that wants no data must not time out a silent peer, and must want data once it closes: otherwise the
        peer's answer would never arrive.
        """
        ...


class WatchableEngine(Engine, Protocol):
    """An engine whose frames can be shown from any moment on.

    Its ``data_to_send`` returns whole frames.
    """

    def unread_input(self) -> bytes | None:
        """Return the octets that were received and not read yet.

        They begin with a frame. None if it is not known where one begins.
        """
        ...


class ClosedByPeerEngine(Engine, Protocol):
    """An engine of a dialect in which the peer closes the transport last."""

    def awaits_eof(self) -> bool:
        """Whether the peer should end the transport, after ``data_to_send`` gave None.

        If so, the pump ends its own direction, and reads for at most a second until the peer ends the other direction. The engine
        gets the octets read, and drops them. If a stream is closed while octets are unread, the system resets the connection, and
        the peer may lose our last octets.
        """
        ...
