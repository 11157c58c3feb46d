"""The octets that an engine has to write, for protocols without credit.

The queue has two kinds of octets. *Paced* octets are those that the application or its queues decide to send, and only while
there is room: publishes of a client, deliveries of a server. All others are counted as *answers*: answers to the peer, but
also requests, closes and heartbeats. The peer causes most of them, so above the limit its commands wait, and its octets are
not read. Only answers stop the reading: otherwise two ends that both
have much to send, and meanwhile read nothing, would wait for each other forever.

Knows octets and their limit; knows no frames and no protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable


class OutputQueue:
    """Octets that wait to be written.

    Args:
        bound: octets above which senders wait; also the octets of answers (those not paced) above which the peer is not read.
        on_output: called when octets are added to an empty queue.

    Attributes:
        size: octets that wait.
        answers: how many of them are not paced; never an underestimate.
        wrote: whether octets were added since it was last set to False.
    """

    __slots__ = ("_bound", "_on_output", "_parts", "answers", "size", "wrote")

    def __init__(self, bound: int, on_output: Callable[[], object]) -> None:
        self._bound: Final = bound
        self._on_output: Final = on_output
        self._parts: list[bytes] = []
        self.size: int = 0
        self.answers: int = 0
        self.wrote: bool = False

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def has_room(self) -> bool:
        """Whether paced octets may be added."""
        return self.size < self._bound

    @property
    def has_room_for_answers(self) -> bool:
        """Whether the peer may cause more output."""
        return self.answers < self._bound

    def add(self, octets: bytes) -> None:
        """Append octets that are not paced: requests, answers, closes, heartbeats."""
        self.answers += len(octets)
        self.add_paced(octets)

    def add_paced(self, octets: bytes) -> None:
        """Append paced octets."""
        parts = self._parts
        if not parts:
            self._on_output()
        parts.append(octets)
        self.size += len(octets)
        self.wrote = True

    def take(self) -> bytes:
        """Remove and return all octets."""
        data = b"".join(self._parts)
        self.clear()
        return data

    def clear(self) -> None:
        """Remove all octets."""
        self._parts.clear()
        self.size = self.answers = 0
