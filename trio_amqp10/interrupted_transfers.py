"""What has come of transfers that were broken off, kept for a sender that comes again, within bounds of time, number and octets.

Messages of AMQP/Fast (RFC 006, 3.5.13) and files of AMQ Protocol 10.3 (C 1215-1237) are both kept so. A transfer is *active* while a
connection receives it, and *idle* between two. Only idle ones are forgotten, the oldest first; so each call looks at those that it
forgets, and at one more. Knows no clock: the caller says what time it is, in seconds. Knows no dialect.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from .partial_pool import Pool

__all__ = ["InterruptedTransfer", "InterruptedTransfers", "Key"]

Key = tuple[object, object]
"""Whose a transfer is, and which of theirs."""


class InterruptedTransfer:
    """A transfer of which a part may have come.

    Attributes:
        key: whose it is, and which of theirs.
        body: the octets that have come; they change only while it is active.
        until: when it may be forgotten, once it was released.
    """

    __slots__ = ("body", "key", "until")

    def __init__(self, key: Key, body: bytes = b"") -> None:
        self.key: Final = key
        self.body: bytearray = bytearray(body)
        self.until: float = 0.0


T = TypeVar("T", bound=InterruptedTransfer)


class InterruptedTransfers(Generic[T]):
    """Transfers by their keys; its length is the number of all, active and idle.

    Args:
        kept: seconds that a transfer is kept after it was released.
        max_number: transfers, active and idle, above which idle ones are forgotten.
        max_octets: octets of the bodies of idle ones, above which they are forgotten.

    Attributes:
        pool: counts the octets of idle ones with those of connections; None for none. See ``share``.
    """

    def __init__(self, kept: float, max_number: int, max_octets: int) -> None:
        self._kept = kept
        self._max_number = max_number
        self._max_octets = max_octets
        self._octets = 0
        self._active: dict[Key, T] = {}
        self._idle: OrderedDict[Key, T] = OrderedDict()  # the first ends first; a dict finds its first slowly
        self.pool: Pool | None = None

    def __len__(self) -> int:
        return len(self._active) + len(self._idle)

    @property
    def octets(self) -> int:
        """Octets of the bodies that are kept for a sender to come."""
        return self._octets

    @property
    def partial_octets(self) -> int:
        """As of ``PoolMember``: those of active transfers count for their connections."""
        return self._octets

    def drop_largest(self, limit: str) -> bool:
        """As of ``PoolMember``: forget the idle transfer that was broken off first."""
        _ = limit
        if not self._idle:
            return False
        _, oldest = self._idle.popitem(last=False)
        self._weigh(-len(oldest.body))
        return True

    def share(self, pool: Pool | None) -> None:
        """Have idle transfers count in this pool, and in no other; None for none."""
        if pool is not self.pool:
            if self.pool is not None:
                self.pool.leave(self)
            if pool is not None:
                pool.join(self)

    def finish(self, transfer: T) -> None:
        """It has come whole, or is of no use. Nothing happens if it is not active here."""
        self._deactivate(transfer)

    def release(self, transfer: T, now: float) -> None:
        """It was broken off: keep it for a while. Nothing happens if it is not active here."""
        if self._deactivate(transfer):
            transfer.until = now + self._kept
            self._idle[transfer.key] = transfer
            self._weigh(len(transfer.body))
            self._forget(now)
            while self.pool is not None and not self.pool.relieve(self):
                self.drop_largest(
                    str(self.pool)
                )  # there is one: these transfers are what the pool has most of

    def _find(self, key: Key) -> T | None:
        """The transfer with this key, active or idle."""
        return self._active.get(key) or self._idle.get(key)

    def _activate(self, transfer: T) -> None:
        """A connection receives it from now on; an idle one with the same key is forgotten."""
        idle = self._idle.pop(transfer.key, None)
        if idle is not None:
            self._weigh(-len(idle.body))
        self._active[transfer.key] = transfer

    def _deactivate(self, transfer: T) -> bool:
        """No connection receives it any more; returns whether one did."""
        if self._active.get(transfer.key) is not transfer:
            return False
        del self._active[transfer.key]
        return True

    def _forget(self, now: float) -> None:
        """Forget what is too old, or too much."""
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
