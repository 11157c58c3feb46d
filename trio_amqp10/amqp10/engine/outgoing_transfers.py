"""Split a delivery into transfers, as far as the window allows (2.6.14, 2.7.5).

There are two kinds of delivery. Either all octets of the message exist from the start. Or the delivery is
open-ended (``SenderLink.begin``): the caller appends blocks, one at a time, and ends it by ``finish`` or
``abort``; no more than the current block is held here.

The links of a session take turns, frame by frame (``SessionCore.feed_partials``). Knows nothing of how a
message is encoded.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp10.spec.transport import Transfer
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.frames import FRAME_HEADER_SIZE
from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from .delivery import OutgoingDelivery
    from .sender import SenderLink


class Outgoing:
    """A delivery whose last transfer was not sent yet.

    Attributes:
        delivery: the delivery.
        size: octets of payload that were passed so far.
        complete: whether the last transfer was sent, and it was not an abort.
    """

    __slots__ = (
        "_aborted",
        "_ended",
        "_head",
        "_link",
        "_octets",
        "_offset",
        "_settled",
        "_state",
        "complete",
        "delivery",
        "size",
    )

    def __init__(
        self,
        link: SenderLink,
        delivery: OutgoingDelivery,
        head: bytes,
        octets: bytes,
        state: Any = None,
        *,
        ended: bool,
    ) -> None:
        self._link = link
        self.delivery: OutgoingDelivery = delivery
        self.size: int = len(octets)
        self._head: bytes | None = head
        self._octets: bytes | memoryview = octets
        self._offset = 0
        self._state = state
        self._ended = ended
        self._aborted = False
        self._settled: bool | None = None
        self.complete: bool = False

    @property
    def pending(self) -> int:
        """Octets that wait for the window or the write buffer; the owner is woken at 0."""
        return len(self._octets) - self._offset

    @property
    def in_progress(self) -> bool:
        """Whether the last transfer must still be sent; False if the link is gone."""
        return self._link.partial is self

    def append(self, octets: bytes | memoryview) -> None:
        """Append a block of octets.

        The block is not copied: do not change it while octets are ``pending``.

        Raises:
            LocalProtocolError: the block before is pending; the delivery is finished, aborted, or its link
                gone; or the message would be larger than the peer accepts (2.7.3).
        """
        if self._ended or self._aborted or not self.in_progress:
            raise LocalProtocolError(f"cannot append to delivery {self.delivery.tag!r}: it is over")
        if self.pending:
            raise LocalProtocolError(
                f"{self.pending} octets of the block before this one are still to be sent"
            )
        size = self.size + len(octets)
        self._link.check_size(size)
        if octets:
            self._octets = octets
            self._offset = 0
            self.size = size
            self._send_when_possible()

    def finish(self) -> None:
        """End the delivery: the last transfer follows the pending octets.

        Raises:
            LocalProtocolError: the delivery was finished or aborted before, or its link is gone.
        """
        if self._ended or self._aborted or not self.in_progress:
            raise LocalProtocolError(f"cannot finish delivery {self.delivery.tag!r}: it is over")
        self._ended = True
        self._send_when_possible()

    def abort(self) -> None:
        """Abort the delivery: the receiver drops it, and it is settled (2.7.5).

        Nothing happens if the last transfer was sent, or the link is gone.
        """
        if self._aborted or not self.in_progress:
            return
        self._aborted = True
        self._octets = b""
        self._offset = 0
        self._link.session.settlement.forget_outgoing(self.delivery)
        self._send_when_possible()

    def settle(self, state: Any) -> None:
        """Settle the delivery by its next transfer, instead of a disposition (2.7.6)."""
        self._settled, self._state = True, state

    def _send_when_possible(self) -> None:
        session = self._link.session
        session.await_window(self._link)
        session.feed_partials()

    def send_part(self) -> None:
        """Write one more transfer; the caller has checked window and write buffer."""
        link = self._link
        session = link.session
        # An abort needs no payload: the receiver drops the whole delivery (2.7.5).
        if self._aborted:
            session.write_body(encode(Transfer(handle=link.handle, more=False, aborted=True)))
            last = True
        else:
            last = self.complete = self._send_octets()
        session.windows.sent()
        if last:
            # The delivery is complete: the next one may begin on this link.
            link.drop_partial()
            link.wake()
        elif not self.pending:
            # The block was sent, and the delivery waits for the next one: release the caller's buffer.
            self._octets = b""
            self._offset = 0
            session.partials.pop(link, None)
            link.wake()

    def _send_octets(self) -> bool:
        """Write a transfer with as many octets as fit; return whether it was the last."""
        link = self._link
        # Only the first transfer names delivery-id, tag and format (2.7.5); later ones have a short head.
        first, self._head = self._head, None
        head = self._continuation(more=True) if first is None else first
        room = link.context.write_buffer.frame_size - FRAME_HEADER_SIZE - len(head)
        last = first is None and self._ended and self.pending <= room
        if last:
            # Nothing follows these octets: ``more`` is false. The head of the first transfer always has
            # ``more``, so a delivery that fits it entirely needs one more, empty transfer.
            head = self._continuation(more=False)
        octets = memoryview(self._octets)[self._offset : self._offset + room]
        # The caller may change a mutable buffer after this call, so it is copied; bytes are not.
        link.session.write_body(head, octets if octets.obj.__class__ is bytes else bytes(octets))
        self._offset += len(octets)
        return last

    def _continuation(self, *, more: bool) -> bytes:
        """Return the performative of a transfer that continues the delivery."""
        handle, state = self._link.handle, self._state
        if self._settled is None and state is None:
            return _plain_continuation(handle, more)
        # Every transfer of a delivery names its transaction (4.4.1), and the settlement if there is one (2.7.6).
        return encode(Transfer(handle=handle, more=more, settled=self._settled, state=state))


@lru_cache(1024)
def _plain_continuation(handle: int, more: bool) -> bytes:
    return encode(Transfer(handle=handle, more=more))


def drop_outgoing(link: SenderLink) -> None:
    """Drop the delivery in progress, because its link is detaching or gone.

    If the link has a terminus that can resume the delivery, the terminus keeps it.
    """
    if link.partial is not None:
        delivery, session = link.partial.delivery, link.session
        is_kept = link.terminus is not None and delivery.tag in link.terminus.unsettled
        if is_kept:
            # The next endpoint of the terminus resumes the delivery (2.6.13).
            assert link.terminus is not None
            link.terminus.begun = delivery.tag
        elif session.settlement.release(delivery):
            # The receiver has only a part of it, and no answer will come: the outcome is unknown.
            link.in_doubt += 1
            link.context.touch(delivery.watcher)
    link.stop()
