"""The result of the negotiation: limits and names of headers (3.2.5.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp_fast import spec

    from .limits import Limits


class Tuning:
    """The values that both ends have agreed on (3.2.5.1).

    Attributes:
        frame_max: octets of a command or a fragment: the lower of both values.
        channel_max, handle_max: the limits of the server; 0 for any number.
        heartbeat: interval in seconds at which the peer wants pings; 0 for no pings.
        txn_limit: the server's limit for messages of a transaction; 0 for any number.
        aliases: full names of headers by their short names (3.2.5.2).
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
        """Return a received head with the full names of its headers.

        The head is unchanged if dictionaries are disabled.
        """
        return self._renamed(head, self.aliases)

    def short(self, head: spec.MessageHead) -> spec.MessageHead:
        """Return a head to send, with short names of headers where they exist.

        The head is unchanged if dictionaries are disabled.
        """
        return self._renamed(head, {full: short for short, full in self.aliases.items()})

    def _renamed(self, head: spec.MessageHead, names: Mapping[str, str]) -> spec.MessageHead:
        if not self._exchanges or not names or not head.headers:
            return head
        return replace(head, headers={names.get(name, name): value for name, value in head.headers.items()})
