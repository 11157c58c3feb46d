"""What both ends of a connection have agreed on (3.2.5.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from . import spec
    from .limits import Limits

__all__ = ["Tuning"]


class Tuning:
    """What both ends have agreed on (3.2.5.1).

    Attributes:
        frame_max: octets of a command or a fragment, the lower of both ends' values.
        channel_max, handle_max: as the server says; 0 for any number.
        heartbeat: seconds at which the peer wants to be pinged; 0 for not at all.
        txn_limit: messages of a transaction, as the server says; 0 for any number.
        aliases: full names of headers by their short ones (3.2.5.2).
    """

    __slots__ = ("_exchanges", "aliases", "channel_max", "frame_max", "handle_max", "heartbeat", "txn_limit")

    def __init__(self, limits: Limits) -> None:
        self.frame_max: int = limits.frame_max
        self.channel_max: int = limits.channel_max
        self.handle_max: int = limits.handle_max
        self.txn_limit: int = limits.txn_limit
        self.heartbeat: int = 0
        self.aliases: dict[str, str] = {}
        self._exchanges = limits.dictionaries

    def full(self, head: spec.MessageHead) -> spec.MessageHead:
        """The head of a message that came, with the full names of its headers; as it is where dictionaries are off."""
        return self._renamed(head, self.aliases)

    def short(self, head: spec.MessageHead) -> spec.MessageHead:
        """The head of a message that goes, with short names where there are any; as it is where dictionaries are off."""
        return self._renamed(head, {full: short for short, full in self.aliases.items()})

    def _renamed(self, head: spec.MessageHead, names: Mapping[str, str]) -> spec.MessageHead:
        if not self._exchanges or not names or not head.headers:
            return head
        return replace(head, headers={names.get(name, name): value for name, value in head.headers.items()})
