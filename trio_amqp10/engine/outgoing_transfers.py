"""Split a delivery into transfers, as far as the window allows (2.6.14, 2.7.5).

There are two kinds. The octets of a whole message are all there from the start. A delivery that was
begun by ``SenderLink.begin`` is open-ended: blocks are appended, one at a time, and no more than
the block in hand is ever held here; it is ended by ``finish``, or taken back by ``abort``.

Links of a session take turns, frame by frame (``Session.feed_partials``). Knows nothing of what
the octets mean.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.frames import FRAME_HEADER_SIZE
from trio_amqp10.spec.transport import Transfer
from trio_amqp10.wire.encode import encode

if TYPE_CHECKING:
    from .delivery import OutgoingDelivery
    from .sender import SenderLink

__all__ = ["Outgoing", "drop_outgoing"]


class Outgoing:
    """A delivery of which some transfers may have gone out, and not the last.

    Attributes:
        delivery: what is sent.
        size: octets of payload that were handed over so far.
        complete: whether the last transfer has gone out, and it was no abort.
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
        """Octets that wait for window or room; the link's owner is woken when there are none any more."""
        return len(self._octets) - self._offset

    @property
    def in_progress(self) -> bool:
        """Whether its last transfer is still to go out; False also where the link is gone."""
        return self._link.partial is self

    def append(self, octets: bytes | memoryview) -> None:
        """Have a block follow. It is not copied: leave it as it is until nothing is ``pending``.

        Raises:
            LocalProtocolError: the block before it is pending; the delivery is finished, aborted, or its
                link gone; the message would be larger than the peer takes (2.7.3).
        """
        if self._ended or self._aborted or not self.in_progress:
            raise LocalProtocolError(f"delivery {self.delivery.tag!r} takes no more octets: it is over")
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
        """No more octets follow: the last transfer goes out when what is pending has.

        Raises:
            LocalProtocolError: the delivery was finished or aborted before, or its link is gone.
        """
        if self._ended or self._aborted or not self.in_progress:
            raise LocalProtocolError(f"delivery {self.delivery.tag!r} cannot be finished: it is over")
        self._ended = True
        self._send_when_possible()

    def abort(self) -> None:
        """Take the delivery back: the receiver drops what it has of it, and both have settled it (2.7.5).

        Nothing happens where the last transfer is out, or the link gone.
        """
        if self._aborted or not self.in_progress:
            return
        self._aborted = True
        self._octets = b""
        self._offset = 0
        self._link.session.settlement.forget_outgoing(self.delivery)
        self._send_when_possible()

    def settle(self, state: Any) -> None:
        """The delivery is settled: its next transfer says so, rather than a disposition (2.7.6)."""
        self._settled, self._state = True, state

    def _send_when_possible(self) -> None:
        session = self._link.session
        session.await_window(self._link)
        session.feed_partials()

    def send_part(self) -> None:
        """One more frame; the caller has checked window and room."""
        link = self._link
        session = link.session
        if self._aborted:
            session.write_body(encode(Transfer(handle=link.handle, more=False, aborted=True)))
            last = True
        else:
            last = self.complete = self._send_octets()
        session.windows.sent()
        if last:
            link.drop_partial()
            link.wake()
        elif not self.pending:
            self._octets = b""  # the caller's, and it may be large
            self._offset = 0
            session.partials.pop(link, None)
            link.wake()

    def _send_octets(self) -> bool:
        """A transfer with as much of what is pending as fits; whether it was the last."""
        link = self._link
        first, self._head = self._head, None
        head = self._continuation(more=True) if first is None else first
        room = link.context.write_buffer.frame_size - FRAME_HEADER_SIZE - len(head)
        last = first is None and self._ended and self.pending <= room
        if last:
            head = self._continuation(more=False)
        octets = memoryview(self._octets)[self._offset : self._offset + room]
        # What may change once the caller goes on is copied, and bytes are not.
        link.session.write_body(head, octets if octets.obj.__class__ is bytes else bytes(octets))
        self._offset += len(octets)
        return last

    def _continuation(self, *, more: bool) -> bytes:
        handle, state = self._link.handle, self._state
        if self._settled is None and state is None:
            return _plain_continuation(handle, more)
        # Every frame of a delivery names its transaction (4.4.1).
        return encode(Transfer(handle=handle, more=more, settled=self._settled, state=state))


@lru_cache(1024)
def _plain_continuation(handle: int, more: bool) -> bytes:
    return encode(Transfer(handle=handle, more=more))


def drop_outgoing(link: SenderLink) -> None:
    """The link is detaching or gone: unless it can be taken up again, what was begun on it will not be complete."""
    if link.partial is not None:
        delivery, session = link.partial.delivery, link.session
        is_kept = link.terminus is not None and delivery.tag in link.terminus.unsettled
        if is_kept:
            assert link.terminus is not None
            link.terminus.begun = delivery.tag
        elif session.settlement.release(delivery):
            link.in_doubt += 1
            link.context.touch(delivery.watcher)
    link.stop()
