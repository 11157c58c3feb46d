"""Incomplete messages that their sender may continue (RFC 006, 3.3.2.2, 3.5.13).

A message is identified by the octets of its head. While one connection receives a message, a second connection that prepares the
same message starts a new one. This module does not know the clock: the caller passes the time in seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.core.interrupted_transfers import InterruptedTransfer, InterruptedTransfers

if TYPE_CHECKING:
    from trio_amqp10.amqp_fast.spec import MessageHead
    from trio_amqp10.core.interrupted_transfers import Key


class PartialMessage(InterruptedTransfer):
    """A message of which a part was received; see ``InterruptedTransfer``.

    Attributes:
        head: the head of the message.
        content_hash: the expected hash of the whole body; empty to check nothing.
    """

    __slots__ = ("content_hash", "head")

    def __init__(self, key: Key, head: MessageHead, body: bytes, content_hash: str) -> None:
        super().__init__(key, body)
        self.head: Final = head
        self.content_hash: Final = content_hash


class PartialMessages(InterruptedTransfers[PartialMessage]):
    """The incomplete messages of any number of connections.

    See ``InterruptedTransfers``.

    Args:
        kept: seconds to keep a message after its connection has ended.
        max_messages: how many messages to keep.
        max_octets: octets of bodies to keep; the oldest messages are dropped first.
    """

    def __init__(
        self, *, kept: float = 3600.0, max_messages: int = 1000, max_octets: int = 256 * 1024 * 1024
    ) -> None:
        super().__init__(kept, max_messages, max_octets)

    def prepare(
        self, owner: str, octets: bytes, head: MessageHead, body: bytes, content_hash: str, now: float
    ) -> PartialMessage:
        """Return the stored part of a message, or store the part given here.

        Args:
            owner: identity of the sender; a sender finds only its own messages.
            octets: the encoded head.
            head: the decoded head.
            body: the part of the body that came with the head.
            content_hash: hash of the whole body; empty for none.
            now: the current time.
        """
        self._forget(now)
        key = owner, octets
        known = self._idle.get(key)
        if known is None or known.content_hash != content_hash:
            known = PartialMessage(key, head, body, content_hash)
        if key not in self._active:
            self._activate(known)
        return known
