"""Loans: messages that a link has a lease on, and that go out once the store knows of it.

The receiver of such a link may say after a restart what became of a message that it was sent before. So
nobody else may get that message meanwhile, and the lease has to be on disk before the first octet leaves. What
waits here has no credit of its own yet: an outlet takes no more than it has credit for, and sends in order.

What is left when the link goes was never sent, and goes back to its node.

Knows leases and when they are safe; what is written is told in ``archive``.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from .archive import why
from .watch import return_unsent

if TYPE_CHECKING:
    from trio_amqp10.container.nodes.node import Lease
    from trio_amqp10.container.stores.base import StoreError

    from .archive import OutletKeeper
    from .outlets import SenderOutlet

__all__ = ["Loans"]

_MOST: Final = 1_000
_MOST_OCTETS: Final = 1024 * 1024
"""What one link may have on its way to the disk: its credit alone does not bound what it takes at once."""


class _Loan:
    """A message with its lease, on its way to the disk.

    Attributes:
        tag: the name that the delivery will have; None where the store does not have the message.
        safe: whether that is on disk.
    """

    __slots__ = ("lease", "message_format", "payload", "safe", "tag")

    def __init__(self, payload: bytes, message_format: int, lease: Lease, tag: bytes | None) -> None:
        self.payload = payload
        self.message_format = message_format
        self.lease = lease
        self.tag = tag
        self.safe = tag is None


class Loans:
    """What one outlet was given, and has not sent yet.

    Args:
        outlet: whose they are.
        keeper: of its terminus.
    """

    __slots__ = ("_keeper", "_octets", "_outlet", "_waiting")

    def __init__(self, outlet: SenderOutlet, keeper: OutletKeeper) -> None:
        self._outlet = outlet
        self._keeper = keeper
        self._octets = 0
        self._waiting: deque[_Loan] = deque()

    def has_room(self, credit: int) -> bool:
        """Whether one more may be added, of a link with so much credit."""
        return len(self._waiting) < min(credit, _MOST) and self._octets < _MOST_OCTETS

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, payload: bytes, message_format: int, lease: Lease) -> None:
        """One more; sent at once, if neither it nor anything before it waits for the store."""
        self._octets += len(payload)
        record = lease.record
        if record is not None:
            loan = _Loan(payload, message_format, lease, self._keeper.lend(record))
            self._waiting.append(loan)
            self._keeper.journal.after(partial(self._written, loan))
        else:
            self._waiting.append(_Loan(payload, message_format, lease, None))
            try:
                self.send()
            except Exception:
                self._outlet.fail()

    def _written(self, loan: _Loan, failure: StoreError | None) -> None:
        if failure is None:
            loan.safe = True
            self._outlet.wake()
        elif self._waiting:
            self._outlet.suspend(*why(failure))

    def send(self) -> None:
        """Send what may go out now."""
        waiting = self._waiting
        while waiting and waiting[0].safe and self._outlet.can_send():
            loan = waiting.popleft()
            try:
                self._outlet.send_lent(loan.payload, loan.message_format, loan.lease, loan.tag)
            except Exception:
                self._waiting.appendleft(loan)  # it goes back with the others, when the link ends
                raise
            self._octets -= len(loan.payload)

    def release(self) -> None:
        """The link is gone, or detached."""
        waiting, self._waiting = self._waiting, deque()
        for loan in waiting:
            if loan.tag is not None:
                self._keeper.drop(loan.tag)
            return_unsent(loan.lease)
