"""How much memory the messages of a container take, and whether more may come.

Counted are the octets of message bodies with their other sections, and ``OVERHEAD`` for each message. A message counts
while a node holds it, leased or not; while it waits at its link because the node has no room; and while it waits for the end of its
transaction; and while it, or a part of it, waits for a link that may come back. Messages that a store has as well count in full: they are held in memory too. A message that several
subscriptions of a topic hold counts once, and ``OVERHEAD`` for each.

Above the limit nothing more is taken from peers, until the octets are below nine tenths of it; consumers go on. What the container
does by itself goes on too: dead letters only move, and the commit of a transaction brings what was counted before.

Counting costs the same whatever there is. Knows octets; knows no message, node or link.
"""

from __future__ import annotations

import logging
from math import inf
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OVERHEAD", "SharedWeight", "Watermark"]

_log = logging.getLogger("trio_amqp10.container")

OVERHEAD: Final = 512
"""Octets that a message takes beyond its own: what is kept to find it, lease it and end it."""


class Watermark:
    """Counts octets against a limit.

    Args:
        limit: octets; None for any number.

    Attributes:
        limit: as given.
        octets: counted now.
        high: whether nothing more is taken.
        refused: how many messages were not taken for this reason.
        rise_at: octets above which ``rise`` is due; infinite while it is high.
        fall_at: octets below which ``fall`` is due; negative while it is low.
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
        """So many octets of so many messages are held."""
        self.octets += octets + messages * OVERHEAD
        if self.octets > self.rise_at:
            self.rise()

    def remove(self, octets: int, messages: int = 1) -> None:
        """They are not held any more."""
        self.octets -= octets + messages * OVERHEAD
        if self.octets < self.fall_at:
            self.fall()

    def when_low(self, call: Callable[[], object]) -> None:
        """Call back, once and under trio, when more is taken again; the same function is called once."""
        self._waiting[call] = None

    def forget(self, call: Callable[[], object]) -> None:
        """Do not call back."""
        self._waiting.pop(call, None)

    def describe(self) -> str:
        """The description for a peer from which nothing is taken."""
        return f"the container holds as many octets of messages as it may, {self.limit}"

    def rise(self) -> None:
        """There are more octets than ``rise_at``."""
        assert self.limit is not None
        self.high = True
        self.rise_at = inf
        self.fall_at = self.limit * 9 // 10
        _log.warning(
            "the container holds %d octets of messages, more than its limit of %d: it takes none from its peers "
            "until there are less than %d",
            self.octets,
            self.limit,
            self.fall_at,
        )

    def fall(self) -> None:
        """There are less octets than ``fall_at``."""
        assert self.limit is not None
        self.high = False
        self.rise_at = self.limit
        self.fall_at = -inf
        _log.warning("the container holds %d octets of messages, and takes messages again", self.octets)
        if self._waiting:  # not from within what a node is doing
            trio.lowlevel.current_trio_token().run_sync_soon(self._call)

    def _call(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for call in waiting:
            if self.high:
                self._waiting[call] = None
            else:
                call()


class SharedWeight:
    """A message that several hold: its octets count once, for as long as any of them holds it.

    Args:
        watermark: that counts it.
        octets: of the message.
    """

    __slots__ = ("_holders", "_octets", "_watermark")

    def __init__(self, watermark: Watermark, octets: int) -> None:
        self._watermark = watermark
        self._octets = octets
        self._holders = 0

    def take(self) -> None:
        """One more holds it."""
        self._watermark.add(0 if self._holders else self._octets)
        self._holders += 1

    def leave(self) -> None:
        """One less holds it."""
        self._holders -= 1
        self._watermark.remove(0 if self._holders else self._octets)
