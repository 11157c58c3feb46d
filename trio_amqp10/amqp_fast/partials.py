"""Messages of which only a part has come, kept for a sender that comes again (RFC 006, 3.3.2.2, 3.5.13).

A message is known by all octets of its head. One that is being received belongs to one connection; a second connection that
prepares the same message meanwhile begins a new one. Knows no clock: the caller says what time it is, in seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .spec import MessageHead

__all__ = ["PartialMessage", "PartialMessages"]


class PartialMessage:
    """A message of which a part has come.

    Attributes:
        head: its head.
        body: what has come of its body.
        content_hash: what the hash of the whole body has to be; empty to check nothing.
        expires_at: when it may be forgotten; None while it is received.
    """

    __slots__ = ("body", "content_hash", "expires_at", "head", "key")

    def __init__(self, key: tuple[str, bytes], head: MessageHead, body: bytes, content_hash: str) -> None:
        self.key = key
        self.head = head
        self.body = bytearray(body)
        self.content_hash = content_hash
        self.expires_at: float | None = None


class PartialMessages:
    """The messages of which a part has come, of any number of connections.

    Args:
        kept: seconds that one is kept after its connection has ended.
        max_messages: how many are kept.
        max_octets: octets of bodies that are kept; the oldest go first.
    """

    def __init__(
        self, *, kept: float = 3600.0, max_messages: int = 1000, max_octets: int = 256 * 1024 * 1024
    ) -> None:
        self._kept = kept
        self._max_messages = max_messages
        self._max_octets = max_octets
        self._there: dict[tuple[str, bytes], PartialMessage] = {}

    def __len__(self) -> int:
        return len(self._there)

    @property
    def octets(self) -> int:
        """Octets of the bodies that are kept for a sender to come."""
        return sum(len(each.body) for each in self._there.values() if each.expires_at is not None)

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
        found = self._there.get(key)
        if found is None or found.content_hash != content_hash:
            found = PartialMessage(key, head, body, content_hash)
            known = self._there.get(key)
            if known is None or known.expires_at is not None:
                self._there[key] = found
        elif found.expires_at is None:
            return PartialMessage(key, head, body, content_hash)
        found.expires_at = None
        return found

    def finish(self, message: PartialMessage) -> None:
        """It has come whole, or is of no use."""
        if self._there.get(message.key) is message:
            del self._there[message.key]

    def release(self, message: PartialMessage, now: float) -> None:
        """Its transfer was broken off: keep it for a while."""
        if self._there.get(message.key) is message:
            message.expires_at = now + self._kept
            self._there[message.key] = self._there.pop(message.key)  # the last to go
            self._forget(now)

    def _forget(self, now: float) -> None:
        """Drop what is too old, or too much."""
        octets = self.octets
        for key, each in list(self._there.items()):
            if each.expires_at is None:
                continue
            if each.expires_at <= now or octets > self._max_octets or len(self._there) > self._max_messages:
                octets -= len(each.body)
                del self._there[key]
