"""Join the transfers of a receiving link into deliveries (2.7.5).

A whole message in one frame, by far the most frequent, takes the short way in ``fast_transfer``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10 import protocol_rules as rules
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spec.transport import Transfer

from .receiver import ReceiverLink
from .receiver_resume import retake
from .serial_numbers import MASK
from .states import LinkState
from .streamed_delivery import StreamedDelivery
from .unsettled_map import MAX_TAG

if TYPE_CHECKING:
    from trio_amqp10.partial_pool import Pool

    from .connection_context import Context
    from .delivery import IncomingDelivery
    from .fast_codec import Transferred
    from .session_core import SessionCore

__all__ = ["Incoming", "cannot_answer", "drop_incoming", "fast_transfer", "on_transfer", "skip"]

_ATTACHED = LinkState.ATTACHED

_SMALL: Final = 512
"""Octets of a transfer under which they are joined with those before."""


class Incoming:
    """A delivery of which some transfers have come, and not the last.

    Attributes:
        ignored: it resumes a delivery that we do not know, and nothing is made of it (2.7.5).
        size: octets so far; those of a streamed delivery are kept, and counted, by its ``inflow``.
        settled: whether a transfer so far was settled by the sender; we may settle without that.
    """

    __slots__ = ("_link", "chunks", "delivery", "empty", "ignored", "settled", "size")

    def __init__(self, link: ReceiverLink, delivery: IncomingDelivery, *, ignored: bool = False) -> None:
        self._link = link
        self.delivery: IncomingDelivery = delivery
        self.ignored: Final = ignored
        self.chunks: list[bytes | bytearray] = []
        self.size: int = 0
        self.empty: int = 0
        self.settled: bool = False
        link.incoming = self
        link.context.receiving[self] = None

    @property
    def held(self) -> int:
        """Octets that are kept of it."""
        inflow = self.delivery.inflow
        return self.size if inflow is None else inflow.size

    def drop_and_detach(self, limit: str) -> None:
        """Drop it, and detach its link, because deliveries in progress take more than ``limit``."""
        drop_incoming(self._link)
        self._link.fail(rules.PARTIAL_DELIVERIES.broken(f"deliveries in progress take more than {limit}"))


def fast_transfer(session: SessionCore, buf: bytes, pos: int, end: int) -> bool:
    """A transfer of a common shape; False leaves it to the general path.

    A whole message for which there is credit is queued right here. What only goes on with a message is appended.
    """
    fields = session.transfers.read(buf, pos, end)
    if fields is None:
        return False
    handle, delivery_id, tag, message_format, settled, more, start = fields
    link = session.by_remote_handle.get(handle)
    if not isinstance(link, ReceiverLink):
        return False
    windows = session.windows
    left = windows.received()
    if left <= windows.low:
        if left < 0:
            return False
        session.refill_if_due()
    payload = buf[start:end]
    try:
        if (
            not more
            and tag is not None
            and delivery_id is not None
            and delivery_id == session.next_incoming_delivery_id
            and link.credit > 0
            and link.incoming is None
            and not link.incomplete_here
            and len(tag) <= MAX_TAG
            and tag not in link.tags
            and link.state is _ATTACHED
            and (settled is True) is not link.misfit
            and (link.max_message_size is None or len(payload) <= link.max_message_size)
        ):
            context = link.context
            session.next_incoming_delivery_id = (delivery_id + 1) & MASK
            link.credit -= 1
            link.delivery_count = ((link.delivery_count or 0) + 1) & MASK
            delivery: IncomingDelivery = context.incoming_class(
                link, delivery_id, tag, message_format or 0, settled is True, payload
            )
            if not settled:
                session.settlement.incoming[delivery_id] = delivery
                link.tags[tag] = delivery
                if link.terminus is not None:
                    link.terminus.unsettled[tag] = delivery
            link.enqueue(delivery)
            owner = link.owner
            if owner is not None and not owner.touched:
                context.touch(owner)
        elif (
            link.incoming is not None
            and delivery_id is None
            and tag is None
            and message_format is None
            and settled is None
            and link.state is _ATTACHED
        ):
            _append(link, link.incoming, payload, more)
        else:
            on_transfer(link, _as_performative(fields), payload)
    except LocalProtocolError as failure:
        cannot_answer(session, failure)
    return True


def _as_performative(fields: Transferred) -> Transfer:
    handle, delivery_id, tag, message_format, settled, more, _ = fields
    return Transfer(
        handle=handle,
        delivery_id=delivery_id,
        delivery_tag=tag,
        message_format=message_format,
        settled=settled,
        more=more,
    )


def cannot_answer(session: SessionCore, failure: LocalProtocolError) -> None:
    """The peer asked for an answer that is larger than the frames it takes (2.8.14)."""
    session.fail(rules.ANSWER_SIZE.broken(str(failure)))


def on_transfer(link: ReceiverLink, part: Transfer, payload: bytes) -> None:
    """One transfer for ``link``, rule by rule."""
    if link.state is not LinkState.DETACH_SENT:
        _take(link, part, payload)
    elif not link.check_errant():
        skip(link.session, part.delivery_id)  # in flight when we detached: dropped
    if link.state is LinkState.DETACH_SENT:
        link.context.note_dropped(part.state)


def _take(link: ReceiverLink, part: Transfer, payload: bytes) -> None:
    session = link.session
    delivery_id, tag = part.delivery_id, part.delivery_tag
    if link.incoming is not None:
        if _is_continuation(link, link.incoming.delivery, part):
            _continue(link, link.incoming, part, payload)
        return
    if delivery_id is None:
        link.fail(rules.FIRST_DELIVERY_ID.broken("the first transfer of a delivery needs a delivery-id"))
        return
    expected = session.next_incoming_delivery_id
    if expected is not None and delivery_id != expected:
        session.fail(rules.DELIVERY_ID_ORDER.broken(f"delivery-id {delivery_id} where {expected} comes next"))
        return
    session.next_incoming_delivery_id = (delivery_id + 1) & MASK
    if tag is None or len(tag) > MAX_TAG:
        link.fail(rules.DELIVERY_TAG.broken(f"a delivery needs a tag of at most {MAX_TAG} octets"))
        return
    if not link.take_credit() and not (part.resume and link.terminus is not None):
        link.fail(rules.LINK_CREDIT.broken("a delivery without credit"))
        return
    if link.incomplete_here and not part.resume:
        link.fail(rules.INCOMPLETE_UNSETTLED.broken("a new delivery, where our unsettled map was incomplete"))
        return
    if part.resume and (held := retake(link, delivery_id, tag, part)) is not None:
        _continue(link, _resume_incoming(link, *held), part, payload)
        link.context.touch(held[0].watcher)
        return
    _begin(link, delivery_id, tag, part, payload)


def _begin(link: ReceiverLink, delivery_id: int, tag: bytes, part: Transfer, payload: bytes) -> None:
    """The first transfer of a delivery that is not known yet."""
    delivery: IncomingDelivery = link.context.incoming_class(
        link, delivery_id, tag, part.message_format or 0, part.settled is True, payload
    )
    if part.resume:
        incoming = Incoming(link, delivery, ignored=True)
    elif not _register(link, delivery, part):
        return
    elif not part.more and not part.aborted and not _is_too_large(link, len(payload)):
        link.enqueue(delivery)
        link.wake()
        return
    else:
        incoming = Incoming(link, delivery)
        if link.streaming and part.more and not part.aborted:
            delivery.payload = b""
            delivery.inflow = StreamedDelivery(link.session.count_unread, link.inflows)
            link.enqueue(delivery)
            link.wake()
    _continue(link, incoming, part, payload)


def _resume_incoming(link: ReceiverLink, delivery: IncomingDelivery, have: bytes | None) -> Incoming:
    """A delivery is resumed behind these octets; None: it is all there, or what comes is not wanted."""
    incoming = Incoming(link, delivery, ignored=have is None)
    if have:
        incoming.chunks.append(have)
        incoming.size = len(have)
        link.context.partial_octets += len(have)
    return incoming


def skip(session: SessionCore, delivery_id: int | None) -> None:
    """A delivery that is dropped counts like any other, or the next one would seem out of order (2.6.6)."""
    if delivery_id is not None and delivery_id == session.next_incoming_delivery_id:
        session.next_incoming_delivery_id = (delivery_id + 1) & MASK


def _register(link: ReceiverLink, delivery: IncomingDelivery, part: Transfer) -> bool:
    """Take note of a delivery that begins; False where it must not (2.7.5)."""
    settlement = link.session.settlement
    if (delivery.settled or not part.more) and not (part.aborted or link.fits_mode(settled=delivery.settled)):
        return False
    if delivery.tag in link.tags:
        link.fail(rules.UNIQUE_TAG.broken(f"delivery-tag {delivery.tag!r} is that of an unsettled delivery"))
        return False
    if not delivery.settled:
        settlement.incoming[delivery.delivery_id] = delivery
        link.tags[delivery.tag] = delivery
        if link.terminus is not None:
            link.terminus.unsettled[delivery.tag] = delivery
    delivery.word = part.state
    if part.rcv_settle_mode is not None and not delivery.settled:
        if part.rcv_settle_mode > link.rcv_settle_mode:
            link.fail(
                rules.TRANSFER_SETTLE_MODE.broken("rcv-settle-mode second on a link that settles first")
            )
            return False
        settlement.modes[delivery.delivery_id] = part.rcv_settle_mode
    return True


def _is_continuation(link: ReceiverLink, delivery: IncomingDelivery, part: Transfer) -> bool:
    """Whether a further transfer names the delivery that it goes on with, as far as it names any (2.7.5)."""
    if part.aborted or (
        part.delivery_id in (None, delivery.delivery_id)
        and part.delivery_tag in (None, delivery.tag)
        and part.message_format in (None, delivery.message_format)
    ):
        return True
    skip(link.session, part.delivery_id)
    link.fail(
        rules.CONTINUATION.broken(f"delivery {delivery.tag!r} continues under another id, tag or format")
    )
    return False


def _continue(link: ReceiverLink, incoming: Incoming, part: Transfer, payload: bytes) -> None:
    delivery = incoming.delivery
    if part.aborted:
        _drop(link, incoming)
        link.session.settlement.drop(delivery)
        delivery.settled = True
        if delivery.inflow is not None:
            delivery.inflow.abort()
            _withdraw(link, delivery)
        link.wake()  # its credit is used up, though nothing will be handed out
        return
    delivery.on_remote_state(part.state)
    if part.settled:
        # If we have settled it, the sender answers that with its next transfer (2.7.6).
        if not (delivery.settled or part.resume or link.fits_mode(settled=True)):
            return
        link.session.settlement.drop(delivery)
        incoming.settled = delivery.settled = True
    elif part.settled is False and incoming.settled:
        link.fail(rules.SETTLED_STAYS.broken(f"delivery {delivery.tag!r} was settled, and is not any more"))
        return
    _append(link, incoming, payload, part.more)


def _append(link: ReceiverLink, incoming: Incoming, payload: bytes, more: bool) -> None:
    """The octets of one transfer of a delivery that goes on, and nothing else that it says."""
    delivery = incoming.delivery
    if not payload:
        incoming.empty += 1
    elif not incoming.ignored:
        incoming.size += len(payload)
        if delivery.inflow is None:
            _keep_chunk(incoming.chunks, payload)
            link.context.partial_octets += len(payload)
        else:
            delivery.inflow.append(payload)
            link.context.touch(delivery.watcher)
    if _is_within_limits(link, incoming) and not more:
        _complete(link, incoming)


def _keep_chunk(chunks: list[bytes | bytearray], payload: bytes) -> None:
    """Add octets to those of a delivery: small ones are joined, so that an object for each costs no more than they do."""
    if len(payload) >= _SMALL:
        chunks.append(payload)
    elif chunks and isinstance(chunks[-1], bytearray):
        chunks[-1] += payload
    else:
        chunks.append(bytearray(payload))


def _is_within_limits(link: ReceiverLink, incoming: Incoming) -> bool:
    context = link.context
    limits = context.limits
    if _is_too_large(link, incoming.size):
        link.fail(
            rules.MAX_MESSAGE_SIZE.broken(
                f"{incoming.size} octets of a message so far, of {link.max_message_size} allowed"
            )
        )
    elif limits.empty_transfers is not None and incoming.empty > limits.empty_transfers:
        raise rules.EMPTY_TRANSFERS.broken(
            f"more than {limits.empty_transfers} empty transfers in one delivery"
        )
    elif limits.partial_octets is not None and context.partial_octets > limits.partial_octets:
        context.drop_largest(f"{limits.partial_octets} octets on this connection")
    elif context.pool is not None and context.pool.octets > context.pool.limit:
        _drop_in_pool(context, context.pool)
    return link.incoming is incoming


def _complete(link: ReceiverLink, incoming: Incoming) -> None:
    _drop(link, incoming)
    delivery = incoming.delivery
    if not (delivery.settled or incoming.ignored or link.fits_mode(settled=False)):
        return
    if delivery.inflow is not None:
        delivery.inflow.finish()
        link.context.touch(delivery.watcher)
    elif not incoming.ignored:
        delivery.payload = b"".join(incoming.chunks)
        link.enqueue(delivery)
    link.wake()


def _is_too_large(link: ReceiverLink, size: int) -> bool:
    return link.max_message_size is not None and size > link.max_message_size


def _drop_in_pool(context: Context, pool: Pool) -> None:
    """Deliveries in progress fill the budget of several connections: the one that has most has to give.

    Where that has nothing in progress, only streams that are not read, this one does.
    """
    if not pool.relieve(context):
        context.drop_largest(str(pool))


def _drop(link: ReceiverLink, incoming: Incoming) -> None:
    if incoming.delivery.inflow is None:
        link.context.partial_octets -= incoming.size
    link.incoming = None
    del link.context.receiving[incoming]


def _withdraw(link: ReceiverLink, delivery: IncomingDelivery) -> None:
    """It will never be complete: take it back, or wake who has it."""
    if link.queue and link.queue[-1] is delivery:  # nothing is queued behind what is not complete
        link.queue.pop()
    link.context.touch(delivery.watcher)


def _keep(link: ReceiverLink, incoming: Incoming) -> None:
    """Remember how far a delivery came whose link may be taken up again."""
    terminus, delivery = link.terminus, incoming.delivery
    if terminus is None or delivery.tag not in terminus.unsettled or incoming.ignored:
        return
    if delivery.inflow is None:
        terminus.partials[delivery.tag] = b"".join(incoming.chunks)
    else:
        terminus.forget(delivery.tag)  # what was read of it cannot be had again: it has to come anew


def drop_incoming(link: ReceiverLink) -> None:
    """The link is gone, or its delivery is too much: what came of it so far is dropped."""
    incoming = link.incoming
    if incoming is not None:
        if link.state is LinkState.DETACH_SENT:
            link.context.note_dropped(incoming.delivery.remote_state)
        _drop(link, incoming)
        _keep(link, incoming)
        if link.terminus is None or incoming.delivery.tag not in link.terminus.unsettled:
            link.session.settlement.release(incoming.delivery)
            link.context.touch(incoming.delivery.watcher)
        if incoming.delivery.inflow is not None:
            _withdraw(link, incoming.delivery)
    for inflow in tuple(link.inflows):
        inflow.detach()
    link.inflows.clear()
