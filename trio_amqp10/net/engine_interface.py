"""What a pump can drive: the calls that the engine of every dialect offers.

No call waits, and none of them knows a clock, a socket or a task: octets and the time are arguments. A call that the peer
may make fail raises an ``AmqpError``; the engine has then prepared its last words, and ``data_to_send`` gives them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["BrakingEngine", "ClosedByPeerEngine", "Engine", "Wakeable"]


class Wakeable(Protocol):
    """What the engine touched, as a link or a channel."""

    def wake(self) -> None:
        """Let the tasks that wait for it look again; must not raise."""
        ...


class Engine(Protocol):
    """One conversation, in any dialect. Times are seconds on the caller's clock.

    An engine may offer two calls more: ``BrakingEngine.wants_data``, without which all that comes is read at once, and
    ``ClosedByPeerEngine.awaits_eof``, without which the stream is closed as soon as ``data_to_send`` gives None.

    Attributes:
        on_output: called each time that there is something for ``data_to_send`` where there was nothing before, whoever made the
            engine write it; the end of all output counts. The pump sets it to wake its writer, so no caller of an engine has to.
    """

    @property
    def on_output(self) -> Callable[[], object] | None:
        """As above."""
        ...

    @on_output.setter
    def on_output(self, call: Callable[[], object] | None) -> None: ...

    def receive_slice(self, data: bytes, now: float) -> None:
        """Take octets of the peer, and read as much of all that came as one connection may read in one go."""
        ...

    def has_input(self) -> bool:
        """Whether octets are left that were not read: then ``receive_slice(b"", now)`` is called again."""
        ...

    def receive_eof(self, now: float) -> None:
        """The peer will send no more octets."""
        ...

    def transport_lost(self) -> None:
        """No octets come or go any more. May be called more than once, and after the end."""
        ...

    def next_event(self) -> Any | None:
        """What happened, oldest first; None if there is nothing more to report."""
        ...

    def data_to_send(self) -> bytes | None:
        """All octets to write now; ``b""`` for none now, None for never again: then the stream is closed."""
        ...

    def has_output(self) -> bool:
        """Whether ``data_to_send`` may have more than ``b""`` to give; asked after all that happens, so it costs little."""
        ...

    def next_deadline(self) -> float | None:
        """When to call ``handle_timer``; None for never."""
        ...

    def handle_timer(self, now: float) -> None:
        """Do what is due."""
        ...

    def take_touched(self) -> Iterable[Wakeable]:
        """What to wake now: what changed since the last call."""
        ...


class BrakingEngine(Engine, Protocol):
    """An engine of a dialect without credit: only a transport that is not read holds its peer back."""

    def wants_data(self) -> bool:
        """Whether the transport is to be read.

        While it is False nothing is read, not even that the peer is gone, until a write fails; what is written
        and the timer go on. The pump asks again at each ``wake_writer``, and when it has taken what is to be written. What
        the engine did not read of earlier octets (``has_input``) it is given to read before any new ones.

        So an engine that wants no data suspends its own judgement of a silent peer, and wants data once it
        closes: otherwise the peer's answer would never arrive.
        """
        ...


class ClosedByPeerEngine(Engine, Protocol):
    """An engine of a dialect in which the peer closes the transport after our last words."""

    def awaits_eof(self) -> bool:
        """Whether the peer is to end the transport, once ``data_to_send`` has given None.

        Then the pump ends its own direction, and reads until the peer ends the other, for a second at most. What comes
        is given to the engine, which drops it. A stream that is closed over octets that nobody read is reset, and the
        peer may lose our last words.
        """
        ...
