"""Files that clients of 10.3 stage: whole, or as far as they came, for an hour (C 1215-1237).

A client names a file by an identifier of its own, and finds it again when it comes back as the same client: one with the same
``connection_name`` and user. While a channel stages a file, another one of the same client cannot: it is refused with 405.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp091.faults import ReplyError
from trio_amqp10.reply_codes import ReplyCode091

if TYPE_CHECKING:
    from trio_amqp10.amqp091.content import Properties

__all__ = ["StagedFile", "StagedFiles"]

Key = tuple[object, str]

_KEPT: Final = 3600.0


class StagedFile:
    """One file.

    Attributes:
        key: whose it is, and what the client calls it.
        size: octets that the whole file has.
        body: those that came.
        properties: of the content that came last; None before.
        channel: the channel that stages it; None between two.
        expires_at: when it may be forgotten, while no channel stages it.
    """

    __slots__ = ("body", "channel", "expires_at", "key", "properties", "size")

    def __init__(self, key: Key, size: int) -> None:
        self.key = key
        self.size = size
        self.body = bytearray()
        self.properties: Properties | None = None
        self.channel: object = None
        self.expires_at = 0.0

    @property
    def whole(self) -> bool:
        """Whether it has all its octets and its properties."""
        return self.properties is not None and len(self.body) == self.size


class StagedFiles:
    """The files of all clients of a server.

    Args:
        kept: seconds that a file is kept after its channel is over.
        max_files: how many are kept; the oldest go first.
        max_octets: octets of those that are kept.
    """

    def __init__(
        self, *, kept: float = _KEPT, max_files: int = 1000, max_octets: int = 256 * 1024 * 1024
    ) -> None:
        self._kept = kept
        self._max_files = max_files
        self._max_octets = max_octets
        self._files: dict[Key, StagedFile] = {}

    def __len__(self) -> int:
        return len(self._files)

    def open(self, key: Key, size: int, channel: object, now: float) -> StagedFile:
        """The file with this key, for a channel to stage; a new one if there is none of this size.

        Raises:
            ReplyError: 405, another channel stages it.
        """
        self._forget(now)
        found = self._files.get(key)
        if found is not None and found.channel not in (None, channel):
            raise ReplyError(ReplyCode091.RESOURCE_LOCKED, f"the file {key[1]!r} is being staged")
        if found is None or found.size != size:
            found = self._files[key] = StagedFile(key, size)
        found.channel = channel
        return found

    def finish(self, file: StagedFile) -> None:
        """It has been published."""
        if self._files.get(file.key) is file:
            del self._files[file.key]

    def release(self, file: StagedFile, now: float) -> None:
        """Its channel is over: keep it for a while."""
        if self._files.get(file.key) is file:
            file.channel = None
            file.expires_at = now + self._kept
            self._files[file.key] = self._files.pop(file.key)  # the last to go
            self._forget(now)

    def _forget(self, now: float) -> None:
        idle = [each for each in self._files.values() if each.channel is None]
        octets, count = sum(len(each.body) for each in idle), len(idle)
        for each in idle:
            if each.expires_at <= now or octets > self._max_octets or count > self._max_files:
                octets -= len(each.body)
                count -= 1
                del self._files[each.key]
