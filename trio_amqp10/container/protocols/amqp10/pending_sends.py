"""Messages that are leased to a link, and are sent once the store has the lease.

The receiver of such a link may say after a restart what became of a message that it was sent before. So
no other link may get that message meanwhile, and the lease has to be on disk before the first octet leaves. What
waits here has no credit of its own yet: an outlet takes no more than it has credit for, and sends in order.

What is left when the link goes was never sent, and goes back to its node.

Knows leases and when they are safe; ``link_store`` describes what is written.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from .delivery_watch import return_unsent
from .link_store import why

if TYPE_CHECKING:
    from trio_amqp10.container.nodes.node import Lease
    from trio_amqp10.container.stores.base import StoreError

    from .link_store import OutletStore

__all__ = ["PendingSends"]

_MOST: Final = 1_000
_MOST_OCTETS: Final = 1024 * 1024
"""What one link may have on its way to the disk: its credit alone does not bound what it takes at once."""


class SendingOutlet(Protocol):
    """The link that sends: see ``SenderOutlet``."""

    def can_send(self) -> bool:
        """Whether ``send_lent`` would send."""
        ...

    def send_lent(self, payload: bytes, message_format: int, lease: Lease, tag: bytes | None) -> None:
        """Send what the store knows of by now."""
        ...

    def wake(self) -> None:
        """Something may be sent."""
        ...

    def fail(self) -> None:
        """End the link, because an exception is being handled."""
        ...

    def suspend(self, condition: str, description: str) -> None:
        """Detach for now: the peer may attach again."""
        ...


class _PendingSend:
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


class PendingSends:
    """What one outlet was given, and has not sent yet.

    Args:
        outlet: the link that sends them.
        unsettled_store: of its terminus.
    """

    __slots__ = ("_octets", "_outlet", "_unsettled_store", "_waiting")

    def __init__(self, outlet: SendingOutlet, unsettled_store: OutletStore) -> None:
        self._outlet = outlet
        self._unsettled_store = unsettled_store
        self._octets = 0
        self._waiting: deque[_PendingSend] = deque()

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
            pending = _PendingSend(
                payload, message_format, lease, self._unsettled_store.record_sending(record)
            )
            self._waiting.append(pending)
            self._unsettled_store.journal.after(partial(self._written, pending))
        else:
            self._waiting.append(_PendingSend(payload, message_format, lease, None))
            try:
                self.send()
            except Exception:
                self._outlet.fail()

    def _written(self, pending: _PendingSend, failure: StoreError | None) -> None:
        if failure is None:
            pending.safe = True
            self._outlet.wake()
        elif self._waiting:
            self._outlet.suspend(*why(failure))

    def send(self) -> None:
        """Send what may go out now."""
        waiting = self._waiting
        while waiting and waiting[0].safe and self._outlet.can_send():
            pending = waiting.popleft()
            try:
                self._outlet.send_lent(pending.payload, pending.message_format, pending.lease, pending.tag)
            except Exception:
                self._waiting.appendleft(pending)  # it goes back with the others, when the link ends
                raise
            self._octets -= len(pending.payload)

    def release(self) -> None:
        """The link is gone, or detached."""
        waiting, self._waiting = self._waiting, deque()
        for pending in waiting:
            if pending.tag is not None:
                self._unsettled_store.drop(pending.tag)
            return_unsent(pending.lease)
