"""What an engine has to write, for protocols whose peers have no credit for what they make the other end write.

Two kinds of octets wait here. *Paced* octets are those that the application or its queues decide to send, and only while
there is room: publishes of a client, deliveries of a server. All others are *answers*: the peer made us write them, so over
the bound its commands wait, and what it sends is not read. Answers alone stop the reading. Otherwise two ends that both
have much to send, and read nothing meanwhile, would wait for each other.

Knows octets and their bound; knows no frames and no protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OutputQueue"]


class OutputQueue:
    """Octets on their way to the transport.

    Args:
        bound: octets above which senders wait; and as many octets of answers, above which the peer is not read.

    Attributes:
        size: octets that wait.
        answers: those of them that are answers; never less than there are.
        wrote: whether octets were added since this was last set to False.
        on_output: called when there is something to write and there was nothing before; None for no call.
    """

    __slots__ = ("_bound", "_parts", "answers", "on_output", "size", "wrote")

    def __init__(self, bound: int) -> None:
        self._bound: Final = bound
        self._parts: list[bytes] = []
        self.size: int = 0
        self.answers: int = 0
        self.wrote: bool = False
        self.on_output: Callable[[], object] | None = None

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def has_room(self) -> bool:
        """Whether paced octets may be added."""
        return self.size < self._bound

    @property
    def has_room_for_answers(self) -> bool:
        """Whether the peer may make us write more."""
        return self.answers < self._bound

    def add(self, octets: bytes) -> None:
        """Write an answer after all else."""
        self.answers += len(octets)
        self.add_paced(octets)

    def add_paced(self, octets: bytes) -> None:
        """Write octets that were only made because there was room."""
        parts = self._parts
        if not parts and self.on_output is not None:
            self.on_output()
        parts.append(octets)
        self.size += len(octets)
        self.wrote = True

    def notify(self) -> None:
        """Call ``on_output`` for the end of all output, which is no octets."""
        if self.on_output is not None:
            self.on_output()

    def take(self) -> bytes:
        """All octets that wait."""
        data = b"".join(self._parts)
        self.clear()
        return data

    def clear(self) -> None:
        """Write nothing of what waits."""
        self._parts.clear()
        self.size = self.answers = 0
