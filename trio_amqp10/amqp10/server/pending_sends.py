"""Messages that are leased to a link, and are sent once the store has the lease.

After a restart, the receiver of such a link may report the outcome of a message that it was sent before. So no other
link may get that message meanwhile, and the lease must be on disk before the first octet is sent. Messages that wait
here have no credit of their own yet: an outlet takes no more than it has credit for, and sends in order.

Messages that wait when the link ends were never sent, and go back to their node.

Knows leases and when they are safe; ``link_store`` describes the rows.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from trio_amqp10.broker.stores.base import error_for_peers

from .delivery_watch import return_unsent

if TYPE_CHECKING:
    from trio_amqp10.broker.nodes.node import Lease
    from trio_amqp10.broker.stores.base import StoreError

    from .link_store import OutletStore
    from .outlets import SenderOutlet

_MOST: Final = 1_000
_MOST_OCTETS: Final = 1024 * 1024
"""Messages and octets of one link that may wait for the disk.

The credit of the link alone does not bound how much it takes at once.
"""


class _PendingSend:
    """A message with its lease, of which the row is on its way to the disk.

    Attributes:
        tag: the tag of the delivery; None if the store does not have the message.
        safe: whether the row is on disk, or none is needed.
    """

    __slots__ = ("lease", "message_format", "payload", "safe", "tag")

    def __init__(self, payload: bytes, message_format: int, lease: Lease, tag: bytes | None) -> None:
        self.payload = payload
        self.message_format = message_format
        self.lease = lease
        self.tag = tag
        self.safe = tag is None


class PendingSends:
    """The messages that one outlet was given, and has not sent yet.

    Args:
        outlet: the link that sends them.
        unsettled_store: the rows of its terminus.
    """

    __slots__ = ("_octets", "_outlet", "_unsettled_store", "_waiting")

    def __init__(self, outlet: SenderOutlet, unsettled_store: OutletStore) -> None:
        self._outlet = outlet
        self._unsettled_store = unsettled_store
        self._octets = 0
        self._waiting: deque[_PendingSend] = deque()

    def has_room(self, credit: int) -> bool:
        """Whether one more message may be added, given the credit of the link."""
        return len(self._waiting) < min(credit, _MOST) and self._octets < _MOST_OCTETS

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, payload: bytes, message_format: int, lease: Lease) -> None:
        """Add a message; send it at once, unless it or an earlier one waits for the store."""
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
            self._outlet.suspend(*error_for_peers(failure))

    def send(self) -> None:
        """Send all messages that may be sent now."""
        waiting = self._waiting
        while waiting and waiting[0].safe and self._outlet.can_send():
            pending = waiting.popleft()
            try:
                self._outlet.send_leased(pending.payload, pending.message_format, pending.lease, pending.tag)
            except Exception:
                self._waiting.appendleft(pending)  # It goes back with the others when the link ends.
                raise
            self._octets -= len(pending.payload)

    def release(self) -> None:
        """Return all messages to their node, because the link is gone or detached."""
        waiting, self._waiting = self._waiting, deque()
        for pending in waiting:
            if pending.tag is not None:
                self._unsettled_store.drop(pending.tag)
            return_unsent(pending.lease)
