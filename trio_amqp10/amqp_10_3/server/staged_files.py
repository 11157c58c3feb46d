"""Files that clients stage: complete or in part, kept for an hour (C 1215-1237).

A client names a file by an identifier of its own, and finds it again when it returns as the same client, which means the same
``connection_name`` and user. While a channel stages a file, another channel of the client is refused with 405. The files that one
client stages at a time are limited in number and size; more are refused with 506.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.core.interrupted_transfers import InterruptedTransfer, InterruptedTransfers
from trio_amqp10.core.reply_codes import ReplyCode091

if TYPE_CHECKING:
    from trio_amqp10.amqp091.wire.content import Properties
    from trio_amqp10.core.interrupted_transfers import Key

_KEPT: Final = 3600.0


class StagedFile(InterruptedTransfer):
    """A file that is staged; see ``InterruptedTransfer``.

    Attributes:
        size: octets of the whole file.
        properties: properties of the latest content; None before.
        channel: the channel that stages the file, or was the last one to do so.
    """

    __slots__ = ("channel", "properties", "size")

    def __init__(self, key: Key, size: int, channel: object) -> None:
        super().__init__(key)
        self.size: int = size
        self.properties: Properties | None = None
        self.channel: object = channel

    @property
    def whole(self) -> bool:
        """Whether all octets and the properties are here."""
        return self.properties is not None and len(self.body) == self.size


class StagedFiles(InterruptedTransfers[StagedFile]):
    """The files of all clients of a server; see ``InterruptedTransfers``.

    Args:
        kept: seconds to keep a file after its channel has ended.
        max_files: how many files to keep; the oldest are dropped first.
        max_octets: octets of files to keep.
        max_active: how many files the channels of one client may stage at a time.
        max_active_octets: the limit for the sum of their sizes. A single file may be larger: its limit is that of a message.

    Attributes:
        max_active, max_active_octets: as given.
    """

    def __init__(
        self,
        *,
        kept: float = _KEPT,
        max_files: int = 1000,
        max_octets: int = 256 * 1024 * 1024,
        max_active: int = 100,
        max_active_octets: int = 256 * 1024 * 1024,
    ) -> None:
        super().__init__(kept, max_files, max_octets)
        self.max_active = max_active
        self.max_active_octets = max_active_octets
        self._staged: dict[object, tuple[int, int]] = {}  # number and octets of the active files, by client

    def open(self, key: Key, size: int, channel: object, now: float) -> StagedFile:
        """Return the file with this key, or a new one if there is none of this size.

        Raises:
            ReplyError: 405: another channel stages it; 506: the client stages too many files, or too many octets.
        """
        self._forget(now)
        found = self._find(key)
        if found is not None and key in self._active:
            if found.channel != channel:
                raise ReplyError(ReplyCode091.RESOURCE_LOCKED, f"the file {key[1]!r} is being staged")
            if found.size == size:
                return found
            self._deactivate(found)
        self._check_bounds(key[0], size)
        if found is None or found.size != size:
            found = StagedFile(key, size, channel)
        found.channel = channel
        self._activate(found)
        return found

    def _check_bounds(self, client: object, size: int) -> None:
        files, octets = self._staged.get(client, (0, 0))
        if files >= self.max_active:
            raise ReplyError(
                ReplyCode091.RESOURCE_ERROR, f"{files} files are already being staged, which is the maximum"
            )
        if files and octets + size > self.max_active_octets:
            raise ReplyError(
                ReplyCode091.RESOURCE_ERROR,
                f"the files being staged would exceed {self.max_active_octets} octets",
            )

    def _activate(self, transfer: StagedFile) -> None:
        super()._activate(transfer)
        self._count(transfer, 1)

    def _deactivate(self, transfer: StagedFile) -> bool:
        was = super()._deactivate(transfer)
        if was:
            self._count(transfer, -1)
        return was

    def _count(self, file: StagedFile, change: int) -> None:
        client = file.key[0]
        files, octets = self._staged.pop(client, (0, 0))
        if files + change:
            self._staged[client] = files + change, octets + change * file.size
