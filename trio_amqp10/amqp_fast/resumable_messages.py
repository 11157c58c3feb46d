"""Messages of which only a part has come, kept for a sender that comes again (RFC 006, 3.3.2.2, 3.5.13).

A message is known by all octets of its head. One that is being received belongs to one connection; a second connection that
prepares the same message meanwhile begins a new one. Knows no clock: the caller says what time it is, in seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.interrupted_transfers import InterruptedTransfer, InterruptedTransfers

if TYPE_CHECKING:
    from trio_amqp10.interrupted_transfers import Key

    from .spec import MessageHead

__all__ = ["PartialMessage", "PartialMessages"]


class PartialMessage(InterruptedTransfer):
    """A message of which a part has come; see ``InterruptedTransfer``.

    Attributes:
        head: its head.
        content_hash: what the hash of the whole body has to be; empty to check nothing.
    """

    __slots__ = ("content_hash", "head")

    def __init__(self, key: Key, head: MessageHead, body: bytes, content_hash: str) -> None:
        super().__init__(key, body)
        self.head: Final = head
        self.content_hash: Final = content_hash


class PartialMessages(InterruptedTransfers[PartialMessage]):
    """The messages of which a part has come, of any number of connections; see ``InterruptedTransfers``.

    Args:
        kept: seconds that one is kept after its connection has ended.
        max_messages: how many are kept.
        max_octets: octets of bodies that are kept; the oldest go first.
    """

    def __init__(
        self, *, kept: float = 3600.0, max_messages: int = 1000, max_octets: int = 256 * 1024 * 1024
    ) -> None:
        super().__init__(kept, max_messages, max_octets)

    def prepare(
        self, owner: str, octets: bytes, head: MessageHead, body: bytes, content_hash: str, now: float
    ) -> PartialMessage:
        """What is there of a message; if it is new, the part of its body that came with its head.

        Args:
            owner: who sends it: a sender finds its own messages.
            octets: of its head.
            head: the same, read.
            body: what came with the head.
            content_hash: of the whole body; empty for none.
            now: the time.
        """
        self._forget(now)
        key = owner, octets
        known = self._idle.get(key)
        if known is None or known.content_hash != content_hash:
            known = PartialMessage(key, head, body, content_hash)
        if key not in self._active:
            self._activate(known)
        return known
