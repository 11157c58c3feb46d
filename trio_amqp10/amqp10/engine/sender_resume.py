"""Resume a sender link: compare unsettled maps, send again (2.6.13, 3.4.6).

For each delivery that we have not settled, the last state at each end decides:

=========================  ===================================  =======================================
state here                 state there                          action here
=========================  ===================================  =======================================
no outcome                 not in the map                       send it as new: it never arrived, or
                                                                the receiver has forgotten it
no outcome                 no state, or ``received``            resume it from there
no outcome                 an outcome                           take the outcome, settle
an outcome                 not in the map                       settle: both ends know the outcome
an outcome                 no state, or ``received``            abort it there
an outcome                 an outcome                           settle, with our outcome
no outcome                 (the link itself is forgotten)       send it as new, or leave it in doubt:
                                                                ``SenderTerminus.resend``
an outcome                 (the link itself is forgotten)       settle
=========================  ===================================  =======================================

A message that is larger than the link accepts now (2.7.3) is not sent, because it would end the link each
time. It counts as released, and it is aborted if the receiver has all or a part of it without an outcome.

A resumed transfer is not settled on a link in mode ``unsettled``, unless it is aborted (2.7.5): a disposition
follows and settles the delivery.

The receiver itself settles deliveries that only it holds. If either map was too large for its frame
(``incomplete-unsettled``), a missing entry has no meaning: deliveries in both maps are resumed, nothing new
is sent, and the link must be detached and attached again, until both maps are complete (2.7.3).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp10.spec.messaging import RELEASED, Received
from trio_amqp10.amqp10.spec.transport import SenderSettleMode, Transfer
from trio_amqp10.amqp10.wire.encode import encode

from .section_offsets import offset_of
from .unsettled_state import Sent, final

if TYPE_CHECKING:
    from .sender import SenderLink
    from .unsettled_state import SenderTerminus

_NOT_THERE = object()
"""The receiver does not have the delivery; in place of its state, and not final."""


def resume_sender(link: SenderLink, terminus: SenderTerminus) -> None:
    """Compare both unsettled maps, after both ends have attached, and begin to resend."""
    assert link.remote is not None
    theirs = link.remote.unsettled
    steps: deque[tuple[Sent, Any]] = deque()
    for tag, sent in list(terminus.unsettled.items()):
        if theirs is not None and tag in theirs:
            # Both ends hold it.
            steps.append((sent, theirs[tag]))
        elif link.remote.incomplete_unsettled:
            # The receiver's map is incomplete, so nothing is known about this delivery yet (2.7.3).
            continue
        elif final(sent.delivery.state) is not None:
            # The receiver has settled it, and its outcome is known here: settle (2.6.12).
            _settle(link, terminus, sent)
        elif theirs is None and not terminus.resend:
            # The receiver has forgotten the link. To send again might deliver twice.
            terminus.drop(tag)
            terminus.in_doubt.append(sent)
            link.context.touch(sent.delivery.watcher)
        else:
            # The receiver does not hold it: send it as a new delivery.
            steps.append((sent, _NOT_THERE))
    if steps or link.incomplete:
        link.resending = resending = Resending(link, terminus, steps)
        # The receiver forgets a delivery as soon as it reads that we know its outcome, so outcomes are
        # stored first.
        _take_outcomes(link, steps)
        link.after_outcomes(resending.begin)


def _take_outcomes(link: SenderLink, steps: deque[tuple[Sent, Any]]) -> None:
    """Store the outcomes in the receiver's map, before anything is sent about them."""
    for sent, theirs in steps:
        there = final(theirs)
        if there is not None and final(sent.delivery.state) is None:
            sent.delivery.state = link.permitted(there)
            link.record_outcome(sent.delivery, lambda: None)


def _settle(link: SenderLink, terminus: SenderTerminus, sent: Sent) -> None:
    """Forget a delivery, and wake its watcher."""
    delivery = sent.delivery
    terminus.drop(delivery.tag)
    delivery.settled = True
    link.context.touch(delivery.watcher)


class Resending:
    """The deliveries to send again, in their old order; new ones wait until then."""

    __slots__ = ("_begun", "_link", "_steps", "_terminus")

    def __init__(self, link: SenderLink, terminus: SenderTerminus, steps: deque[tuple[Sent, Any]]) -> None:
        self._link = link
        self._terminus = terminus
        self._steps = steps
        self._begun = False

    @property
    def done(self) -> bool:
        """Whether everything was sent.

        With ``incomplete-unsettled`` the link must be attached again then.
        """
        return not self._steps

    def begin(self) -> None:
        """Begin to send, as far as credit, window and room allow."""
        link = self._link
        self._begun = True
        if link.resending is self:
            link.session.await_window(link)
            link.session.feed_partials()

    def send_next(self) -> None:
        """Send the next delivery. The caller has checked window and room."""
        link = self._link
        if self._steps and self._begun and link.credit > 0:
            self._resume(*self._steps.popleft())
        else:
            link.session.partials.pop(link, None)  # no credit: the next flow adds the link again
        if not self._steps and not link.in_progress:
            # All was sent. If a map was incomplete, nothing new may be sent before the next attach (2.7.3).
            if not link.incomplete:
                link.resending = None
            link.session.partials.pop(link, None)
            link.wake()

    def _resume(self, sent: Sent, theirs: Any) -> None:
        """Resume one delivery by the table of this module."""
        link, delivery = self._link, sent.delivery
        ours = final(delivery.state)
        there = final(theirs)
        if ours is None and there is None and not link.takes(len(sent.payload)):
            # The message is larger than the receiver accepts now: it counts as released.
            ours = delivery.state = RELEASED
            if theirs is _NOT_THERE:
                _settle(link, self._terminus, sent)
                return
        link.adopt(delivery)
        if ours is None and there is None:
            # The receiver needs the message, or the rest of it.
            self._send(sent, theirs)
            return
        # No octet is sent: the transfer has only the outcome, or aborts a delivery that is without an
        # outcome there.
        abort = there is None
        settled = abort or link.snd_settle_mode != SenderSettleMode.UNSETTLED
        link.session.write_body(
            encode(
                Transfer(
                    handle=link.handle,
                    delivery_id=delivery.delivery_id,
                    delivery_tag=delivery.tag,
                    message_format=sent.message_format,
                    settled=settled,
                    state=None if abort else delivery.state,
                    resume=True,
                    aborted=abort,
                )
            )
        )
        link.session.windows.sent()
        if not settled:
            # In mode ``unsettled`` a transfer must not be settled (2.7.5), so a disposition settles the
            # delivery.
            link.keep(delivery)
            link.session.settlement.settle_outgoing(delivery)
        _settle(link, self._terminus, sent)

    def _send(self, sent: Sent, theirs: Any) -> None:
        """Send the message, or the part that the receiver does not have."""
        link = self._link
        resume = theirs is not _NOT_THERE
        offset = 0
        if isinstance(theirs, Received):
            # The receiver names the first octet that it needs (3.4.1). If the message has no such
            # place, it is sent from the beginning, with a state that names the beginning.
            offset = offset_of(sent.payload, sent.message_format, theirs) or 0
            if not offset:
                theirs = Received(section_number=0, section_offset=0)
        link.keep(sent.delivery)
        link.send_parts(
            sent.delivery,
            sent.payload[offset:],
            sent.message_format,
            theirs if isinstance(theirs, Received) else None,
            resume=resume,
        )
