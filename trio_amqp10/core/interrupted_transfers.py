"""Parts of interrupted transfers, kept until their sender resumes them.

Their time, number and octets are limited. It keeps messages of AMQP/Fast (RFC 006, 3.5.13) and files of AMQ Protocol 10.3
(C 1215-1237). A transfer is *active* while a connection receives it, and *idle* between two connections. Only idle ones are
dropped, the oldest first; so each call examines those that it drops, and one more. Knows no clock: the caller passes the
time, in seconds. Knows no dialect.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from .partial_pool import Pool

Key = tuple[object, object]
"""The owner of a transfer, and its identity within the owner."""


class InterruptedTransfer:
    """A transfer of which a part may have been received.

    Attributes:
        key: its owner, and its identity within the owner.
        body: the octets received; they change only while it is active.
        until: when it may be dropped, after it was released.
    """

    __slots__ = ("body", "key", "until")

    def __init__(self, key: Key, body: bytes = b"") -> None:
        self.key: Final = key
        self.body: bytearray = bytearray(body)
        self.until: float = 0.0


T = TypeVar("T", bound=InterruptedTransfer)


class InterruptedTransfers(Generic[T]):
    """Transfers by their keys; the length counts active and idle ones.

    Args:
        kept: seconds that a transfer is kept after it was released.
        max_number: active and idle transfers above which idle ones are dropped.
        max_octets: octets of the bodies of idle transfers above which they are dropped.

    Attributes:
        pool: counts the octets of idle transfers together with those of connections; None for none. See ``share``.
    """

    def __init__(self, kept: float, max_number: int, max_octets: int) -> None:
        self._kept = kept
        self._max_number = max_number
        self._max_octets = max_octets
        self._octets = 0
        self._active: dict[Key, T] = {}
        self._idle: OrderedDict[Key, T] = (
            OrderedDict()
        )  # the first expires first; a dict finds its first slowly
        self.pool: Pool | None = None

    def __len__(self) -> int:
        return len(self._active) + len(self._idle)

    @property
    def octets(self) -> int:
        """Octets of the bodies of idle transfers."""
        return self._octets

    @property
    def partial_octets(self) -> int:
        """Octets for the pool; connections count those of active transfers."""
        return self._octets

    def drop_largest(self, limit: str) -> bool:
        """Drop the idle transfer that was interrupted first, for ``PoolMember``."""
        _ = limit
        if not self._idle:
            return False
        _, oldest = self._idle.popitem(last=False)
        self._weigh(-len(oldest.body))
        return True

    def share(self, pool: Pool | None) -> None:
        """Count idle transfers in this pool, and in no other; None for none."""
        if pool is not self.pool:
            if self.pool is not None:
                self.pool.leave(self)
            if pool is not None:
                pool.join(self)

    def finish(self, transfer: T) -> None:
        """Forget an active transfer: it is complete, or useless. Otherwise do nothing."""
        self._deactivate(transfer)

    def release(self, transfer: T, now: float) -> None:
        """Keep an active transfer that was interrupted, for a while. Otherwise do nothing."""
        if self._deactivate(transfer):
            transfer.until = now + self._kept
            self._idle[transfer.key] = transfer
            self._weigh(len(transfer.body))
            self._forget(now)
            while self.pool is not None and not self.pool.relieve(self):
                # There is an idle transfer: this member has the most octets of the pool.
                self.drop_largest(str(self.pool))

    def _find(self, key: Key) -> T | None:
        """Return the active or idle transfer with this key, or None."""
        return self._active.get(key) or self._idle.get(key)

    def _activate(self, transfer: T) -> None:
        """Make a transfer active; drop the idle one with the same key."""
        idle = self._idle.pop(transfer.key, None)
        if idle is not None:
            self._weigh(-len(idle.body))
        self._active[transfer.key] = transfer

    def _deactivate(self, transfer: T) -> bool:
        """Make a transfer inactive; return whether it was active."""
        if self._active.get(transfer.key) is not transfer:
            return False
        del self._active[transfer.key]
        return True

    def _forget(self, now: float) -> None:
        """Drop idle transfers that are too old, or too many."""
        idle = self._idle
        while idle:
            oldest = next(iter(idle.values()))
            few = len(self) <= self._max_number and self._octets <= self._max_octets
            if few and oldest.until > now:
                return
            del idle[oldest.key]
            self._weigh(-len(oldest.body))

    def _weigh(self, octets: int) -> None:
        self._octets += octets
        if self.pool is not None:
            self.pool.octets += octets
