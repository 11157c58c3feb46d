"""How much memory the messages of a container take, and whether it accepts more.

Counts the octets of messages with all their sections, and ``OVERHEAD`` for each message. A message counts while a node holds
it, leased or not; while it waits at its link because the node has no room; while it waits for the end of its transaction; and
while it, or a part of it, waits for a link that may be resumed. A stored message counts in full while it is in memory too.
A message that several subscriptions of a topic hold counts once, and ``OVERHEAD`` for each.

Above the limit nothing is taken from peers until the octets are below nine tenths of it; consumers go on. The container's own
work goes on too: dead letters only move, and the messages of a committed transaction were counted before.

Counting has a constant cost. Knows octets; knows no message, node or link.
"""

from __future__ import annotations

import logging
from math import inf
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger("trio_amqp10.container")

OVERHEAD: Final = 512
"""Octets of memory for each message beyond its own: its entry and its places."""


class Watermark:
    """Counts octets against a limit.

    Args:
        limit: octets; None for any number.

    Attributes:
        limit: as given.
        octets: the present count.
        high: whether nothing more is taken.
        refused: how many messages were not taken because of the limit.
        rise_at: octets above which ``rise`` must be called; infinity while it is high.
        fall_at: octets below which ``fall`` must be called; negative infinity while it is low.
    """

    __slots__ = ("_waiting", "fall_at", "high", "limit", "octets", "refused", "rise_at")

    def __init__(self, limit: int | None = None) -> None:
        self.limit: int | None = limit
        self.octets: int = 0
        self.high: bool = False
        self.refused: int = 0
        self.rise_at: float = inf if limit is None else limit
        self.fall_at: float = -inf
        self._waiting: dict[Callable[[], object], None] = {}

    def add(self, octets: int, messages: int = 1) -> None:
        """Count so many more octets and messages."""
        self.octets += octets + messages * OVERHEAD
        if self.octets > self.rise_at:
            self.rise()

    def remove(self, octets: int, messages: int = 1) -> None:
        """Count so many fewer octets and messages."""
        self.octets -= octets + messages * OVERHEAD
        if self.octets < self.fall_at:
            self.fall()

    def when_low(self, call: Callable[[], object]) -> None:
        """Call ``call`` once, under trio, when messages are taken again.

        The same function is called once, even if it was given twice.
        """
        self._waiting[call] = None

    def forget(self, call: Callable[[], object]) -> None:
        """Cancel ``when_low``."""
        self._waiting.pop(call, None)

    def describe(self) -> str:
        """Return the error description for a peer whose message is not taken."""
        return f"the container holds more than its limit of {self.limit} octets of messages: try again later"

    def rise(self) -> None:
        """Stop taking messages: there are more octets than ``rise_at``."""
        assert self.limit is not None
        self.high = True
        self.rise_at = inf
        self.fall_at = self.limit * 9 // 10
        _log.warning(
            "the container holds %d octets of messages, more than its limit of %d: it takes none from its peers "
            "until there are fewer than %d",
            self.octets,
            self.limit,
            self.fall_at,
        )

    def fall(self) -> None:
        """Take messages again: there are fewer octets than ``fall_at``."""
        assert self.limit is not None
        self.high = False
        self.rise_at = self.limit
        self.fall_at = -inf
        _log.warning("the container holds %d octets of messages, and takes messages again", self.octets)
        if self._waiting:  # Later, because a node may be in the middle of its work.
            trio.lowlevel.current_trio_token().run_sync_soon(self._call)

    def _call(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for call in waiting:
            if self.high:
                self._waiting[call] = None
            else:
                call()


class SharedWeight:
    """The weight of a message that several queues hold: its octets count once.

    Args:
        watermark: the watermark that counts it.
        octets: the size of the message.
    """

    __slots__ = ("_holders", "_octets", "_watermark")

    def __init__(self, watermark: Watermark, octets: int) -> None:
        self._watermark = watermark
        self._octets = octets
        self._holders = 0

    def take(self) -> None:
        """Count one more holder."""
        self._watermark.add(0 if self._holders else self._octets)
        self._holders += 1

    def leave(self) -> None:
        """Count one holder less; the octets are removed with the last."""
        self._holders -= 1
        self._watermark.remove(0 if self._holders else self._octets)
