"""Resume a sending link: compare unsettled maps, send again (2.6.13, 3.4.6).

For each delivery that we have not settled, by what either end last knew of it:

=========================  ===================================  =======================================
here                       there                                what we do
=========================  ===================================  =======================================
no outcome                 not in the map                       it never came, or came to nothing that
                                                                is still known: send it as new
no outcome                 no state, or ``received``            resume it from there
no outcome                 an outcome                           take the outcome, settle
an outcome                 not in the map                       settle: both know
an outcome                 no state, or ``received``            abort what is left of it there
an outcome                 an outcome                           settle, with ours
no outcome                 (it has forgotten the link itself)   send it as new, or leave it in doubt:
                                                                ``SenderTerminus.resend``
an outcome                 (the same)                           settle
=========================  ===================================  =======================================

A message that is larger than the link takes now (2.7.3) is not sent: to say so would end the link each time anew. Where the
receiver has a part of it, or all, without an outcome, it is aborted; and it counts as released.

A resumed transfer is not settled on a link in mode ``unsettled``, unless it is aborted (2.7.5): there a
disposition follows it, which settles the delivery.

What only the receiver still holds it settles by itself. Where either map was too large for its
frame (``incomplete-unsettled``), not being in it says nothing: what is in both is taken up, nothing
new is sent, and the link has to be detached and attached again, until both maps are whole (2.7.3).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from trio_amqp10.spec.messaging import Received
from trio_amqp10.spec.transport import SenderSettleMode, Transfer
from trio_amqp10.wire.encode import encode

from .outcomes import RELEASED
from .section_offsets import offset_of
from .unsettled_state import Sent, final

if TYPE_CHECKING:
    from .sender import SenderLink
    from .unsettled_state import SenderTerminus

__all__ = ["Resending", "resume_sender"]

_NOT_THERE = object()
"""In place of a state, and not final: the receiver does not have the delivery."""


def resume_sender(link: SenderLink, terminus: SenderTerminus) -> None:
    """Both ends are attached: compare what they know, and begin to say again what is needed."""
    assert link.remote is not None
    theirs = link.remote.unsettled
    steps: deque[tuple[Sent, Any]] = deque()
    for tag, sent in list(terminus.unsettled.items()):
        if theirs is not None and tag in theirs:
            steps.append((sent, theirs[tag]))
        elif link.remote.incomplete_unsettled:
            continue
        elif final(sent.delivery.state) is not None:
            _settle(link, terminus, sent)
        elif theirs is None and not terminus.resend:
            terminus.drop(tag)
            terminus.in_doubt.append(sent)
            link.context.touch(sent.delivery.watcher)
        else:
            steps.append((sent, _NOT_THERE))
    if steps or link.incomplete:
        link.resending = resending = Resending(link, terminus, steps)
        if terminus.unsettled_store is None:
            resending.begin()
        else:
            _take_outcomes(link, terminus, steps)
            terminus.unsettled_store.after(resending.begin)


def _take_outcomes(link: SenderLink, terminus: SenderTerminus, steps: deque[tuple[Sent, Any]]) -> None:
    """Write down the outcomes that the receiver has given, before it may hear that we know, and forgets them."""
    assert terminus.unsettled_store is not None
    for sent, theirs in steps:
        there = final(theirs)
        if there is not None and final(sent.delivery.state) is None:
            sent.delivery.state = link.permitted(there)
            terminus.unsettled_store.record_outcome(sent.delivery.tag, sent.delivery.state, lambda: None)


def _settle(link: SenderLink, terminus: SenderTerminus, sent: Sent) -> None:
    delivery = sent.delivery
    terminus.drop(delivery.tag)
    delivery.settled = True
    link.context.touch(delivery.watcher)


class Resending:
    """What is to be said again, in the order in which it was said first; nothing new goes out meanwhile."""

    __slots__ = ("_begun", "_link", "_steps", "_terminus")

    def __init__(self, link: SenderLink, terminus: SenderTerminus, steps: deque[tuple[Sent, Any]]) -> None:
        self._link = link
        self._terminus = terminus
        self._steps = steps
        self._begun = False

    @property
    def done(self) -> bool:
        """Whether everything was said; with ``incomplete-unsettled`` the link has to be attached anew."""
        return not self._steps

    def begin(self) -> None:
        """Say the first, as far as credit, window and room allow."""
        link = self._link
        self._begun = True
        if link.resending is self:
            link.session.await_window(link)
            link.session.feed_partials()

    def send_next(self) -> None:
        """The next delivery; the caller has checked window and room."""
        link = self._link
        if self._steps and self._begun and link.credit > 0:
            self._say(*self._steps.popleft())
        else:
            link.session.partials.pop(link, None)  # a flow brings it back
        if not self._steps and not link.in_progress:
            if not link.incomplete:
                link.resending = None
            link.session.partials.pop(link, None)
            link.wake()

    def _say(self, sent: Sent, theirs: Any) -> None:
        link, delivery = self._link, sent.delivery
        ours = final(delivery.state)
        there = final(theirs)
        if ours is None and there is None and not link.takes(len(sent.payload)):
            ours = delivery.state = RELEASED
            if theirs is _NOT_THERE:
                _settle(link, self._terminus, sent)
                return
        link.adopt(delivery)
        if ours is None and there is None:
            self._send(sent, theirs)
            return
        abort = there is None
        settled = abort or link.snd_settle_mode != SenderSettleMode.UNSETTLED
        if ours is None:
            delivery.state = link.permitted(there)
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
            link.keep(delivery)
            link.session.settlement.settle_outgoing(delivery)
        _settle(link, self._terminus, sent)

    def _send(self, sent: Sent, theirs: Any) -> None:
        """The message, or what is missing of it."""
        link = self._link
        resume = theirs is not _NOT_THERE
        offset = 0
        if isinstance(theirs, Received):
            # A place that the message does not have: from the start, and say so.
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
