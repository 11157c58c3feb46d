"""Join the transfers of a receiver link into deliveries (2.7.5).

A whole message in one frame is by far the most frequent case: ``fast_transfer`` handles it without decoding
the performative. Knows nothing of how a message is encoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp10.spec.transport import Transfer
from trio_amqp10.core import peer_rules as rules
from trio_amqp10.core.errors import LocalProtocolError

from .receiver import ReceiverLink
from .receiver_resume import retake
from .serial_numbers import MASK
from .states import LinkState
from .streamed_delivery import StreamedDelivery
from .unsettled_map import MAX_TAG

if TYPE_CHECKING:
    from trio_amqp10.core.partial_pool import Pool

    from .codec_shortcut import Transferred
    from .connection_context import Context
    from .delivery import IncomingDelivery
    from .session_core import SessionCore

_ATTACHED = LinkState.ATTACHED

_SMALL: Final = 512
"""Transfers of fewer octets are joined with the transfer before."""


class Incoming:
    """A delivery whose last transfer has not arrived yet.

    Attributes:
        delivery: the delivery.
        ignored: whether it resumes a delivery that is unknown here, so that its octets are dropped (2.7.5).
        chunks: the payloads so far, in order.
        size: octets so far; the octets of a streamed delivery are kept and counted by its ``inflow``.
        empty: the number of transfers without payload.
        settled: whether the sender has settled it in a transfer so far. This end may settle without that.
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
        """Octets that are buffered."""
        inflow = self.delivery.inflow
        return self.size if inflow is None else inflow.size

    def drop_and_detach(self, limit: str) -> None:
        """Drop the delivery and detach its link, because a budget is exceeded."""
        drop_incoming(self._link)
        self._link.fail(rules.PARTIAL_DELIVERIES.broken(f"deliveries in progress take more than {limit}"))


def fast_transfer(session: SessionCore, buf: bytes, pos: int, end: int) -> bool:
    """Process a transfer of a common shape, or return False for the general path."""
    fields = session.transfers.read(buf, pos, end)
    if fields is None:
        # The performative has an unusual shape (or is malformed): the generic codec reads it.
        return False
    handle, delivery_id, tag, message_format, settled, more, state, start = fields
    link = session.by_remote_handle.get(handle)
    if not isinstance(link, ReceiverLink):
        # No link has this handle, or it is our sender: the general path raises the error (2.6.2).
        return False
    # Every transfer uses one place of the incoming window, whatever happens to it on its link (2.5.6).
    windows = session.windows
    left = windows.received()
    if left <= windows.low:
        if left < 0:
            # The peer exceeded our window. The general path ends the session, or forgives it. The call
            # above has changed nothing then, so the general path may call it again.
            return False
        session.refill_if_due()
    payload = buf[start:end]
    # The usual case, a whole message in one transfer: every rule of ``_take`` and ``_begin`` is checked
    # here in one expression, and a transfer that breaks any of them goes to ``on_transfer`` below.
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
            # Delivery-ids are consecutive in a session (2.7.5), and each delivery uses one credit (2.6.7).
            session.next_incoming_delivery_id = (delivery_id + 1) & MASK
            link.credit -= 1
            link.delivery_count = ((link.delivery_count or 0) + 1) & MASK
            delivery: IncomingDelivery = context.incoming_class(
                link, delivery_id, tag, message_format or 0, settled is True, payload
            )
            if state is not None:
                delivery.word = state
            # An unsettled delivery is found by its id (dispositions, 2.7.6), by its tag (to refuse a second
            # use, 2.6.12), and by its terminus (to resume it, 2.6.13).
            if not settled:
                session.settlement.incoming[delivery_id] = delivery
                link.tags[tag] = delivery
                if link.terminus is not None:
                    link.terminus.unsettled[tag] = delivery
            link.enqueue(delivery)
            # As ``link.wake()``.
            owner = link.owner
            if owner is not None and not owner.touched:
                context.touch(owner)
        elif (
            # A transfer that only continues the delivery in progress: it names no id, tag, format,
            # settlement or state, which could contradict the first transfer (2.7.5).
            link.incoming is not None
            and (delivery_id, tag, message_format, settled, state) == (None, None, None, None, None)
            and link.state is _ATTACHED
        ):
            _append(link, link.incoming, payload, more)
        else:
            # All other transfers: the first of several, one without credit, one on a link that is
            # detaching, etc. ``on_transfer`` checks them rule by rule.
            on_transfer(link, _as_performative(fields), payload)
    except LocalProtocolError as failure:
        cannot_answer(session, failure)
    return True


def _as_performative(fields: Transferred) -> Transfer:
    handle, delivery_id, tag, message_format, settled, more, state, _ = fields
    return Transfer(
        handle=handle,
        delivery_id=delivery_id,
        delivery_tag=tag,
        message_format=message_format,
        settled=settled,
        more=more,
        state=state,
    )


def cannot_answer(session: SessionCore, failure: LocalProtocolError) -> None:
    """End the session, because an answer does not fit the peer's frame size (2.8.14)."""
    session.fail(rules.ANSWER_SIZE.broken(str(failure)))


def on_transfer(link: ReceiverLink, part: Transfer, payload: bytes) -> None:
    """Process one transfer for ``link``, rule by rule."""
    if link.state is not LinkState.DETACH_SENT:
        _take(link, part, payload)
    elif not link.check_errant():
        # The peer sent it before it read our detach: drop it (2.6.6).
        skip(link.session, part.delivery_id)
    if link.state is LinkState.DETACH_SENT:
        # Also if this transfer broke a rule, which has detached the link.
        link.context.note_dropped(part.state)


def _take(link: ReceiverLink, part: Transfer, payload: bytes) -> None:
    session = link.session
    delivery_id, tag = part.delivery_id, part.delivery_tag
    if link.incoming is not None:
        # A delivery is in progress: deliveries do not interleave on a link, so the transfer must continue it
        # (2.6.14).
        if _is_continuation(link, link.incoming.delivery, part):
            _continue(link, link.incoming, part, payload)
        return
    if delivery_id is None:
        # The first transfer of a delivery must have a delivery-id (2.7.5).
        link.fail(rules.FIRST_DELIVERY_ID.broken("the first transfer of a delivery needs a delivery-id"))
        return
    expected = session.next_incoming_delivery_id
    if expected is not None and delivery_id != expected:
        # Delivery-ids count the deliveries of all links of the session (2.7.5), so a gap is an error of
        # the session.
        session.fail(rules.DELIVERY_ID_ORDER.broken(f"delivery-id {delivery_id} where {expected} comes next"))
        return
    session.next_incoming_delivery_id = (delivery_id + 1) & MASK
    if tag is None or len(tag) > MAX_TAG:
        link.fail(rules.DELIVERY_TAG.broken(f"a delivery needs a tag of at most {MAX_TAG} octets"))
        return
    if not link.take_credit() and not (part.resume and link.terminus is not None):
        # A resumed delivery may arrive without credit, because it had credit when it was first sent
        # (2.6.13).
        link.fail(rules.LINK_CREDIT.broken("a delivery without credit"))
        return
    if link.incomplete_here and not part.resume:
        # While our unsettled map was incomplete, the sender may only resume deliveries (2.7.3).
        link.fail(rules.INCOMPLETE_UNSETTLED.broken("a new delivery, where an unsettled map was incomplete"))
        return
    if part.resume and (held := retake(link, delivery_id, tag, part)) is not None:
        # The transfer resumes a delivery of our unsettled map: append to the octets that this end holds
        # (2.6.13).
        _continue(link, _resume_incoming(link, *held), part, payload)
        link.context.touch(held[0].watcher)
        return
    _begin(link, delivery_id, tag, part, payload)


def _begin(link: ReceiverLink, delivery_id: int, tag: bytes, part: Transfer, payload: bytes) -> None:
    """Process the first transfer of a delivery that this end does not hold yet."""
    delivery: IncomingDelivery = link.context.incoming_class(
        link, delivery_id, tag, part.message_format or 0, part.settled is True, payload
    )
    if part.resume:
        # It resumes a delivery that is unknown here: its octets are ignored up to the last transfer
        # (2.7.5).
        incoming = Incoming(link, delivery, ignored=True)
    elif not _register(link, delivery, part):
        return
    elif not part.more and not part.aborted and not _is_too_large(link, len(payload)):
        # A whole message in one transfer.
        link.enqueue(delivery)
        link.wake()
        return
    else:
        # The first of several transfers, or one that is aborted or too large, which ``_continue`` handles.
        incoming = Incoming(link, delivery)
        if link.streaming and part.more and not part.aborted:
            # The delivery is handed out now, and its octets are read while they arrive (2.6.14).
            delivery.payload = b""
            delivery.inflow = StreamedDelivery(link.session.count_unread, link.inflows)
            link.enqueue(delivery)
            link.wake()
    _continue(link, incoming, part, payload)


def _resume_incoming(link: ReceiverLink, delivery: IncomingDelivery, have: bytes | None) -> Incoming:
    """Continue a delivery after the octets ``have``, which arrived before.

    None means that the rest is not needed: its octets are ignored.
    """
    incoming = Incoming(link, delivery, ignored=have is None)
    if have:
        incoming.chunks.append(have)
        incoming.size = len(have)
        link.context.partial_octets += len(have)
    return incoming


def skip(session: SessionCore, delivery_id: int | None) -> None:
    """Count a delivery that is dropped, to keep the delivery-ids in order (2.6.6)."""
    if delivery_id is not None and delivery_id == session.next_incoming_delivery_id:
        session.next_incoming_delivery_id = (delivery_id + 1) & MASK


def _register(link: ReceiverLink, delivery: IncomingDelivery, part: Transfer) -> bool:
    """Register a delivery that begins; return False if it breaks a rule (2.7.5)."""
    settlement = link.session.settlement
    # The settle mode of the link is checked as soon as it is known whether the delivery is settled, which
    # the last transfer decides.
    if (delivery.settled or not part.more) and not (part.aborted or link.fits_mode(settled=delivery.settled)):
        return False
    if delivery.tag in link.tags:
        link.fail(rules.UNIQUE_TAG.broken(f"an unsettled delivery has the delivery-tag {delivery.tag!r}"))
        return False
    if not delivery.settled:
        settlement.incoming[delivery.delivery_id] = delivery
        link.tags[delivery.tag] = delivery
        if link.terminus is not None:
            link.terminus.unsettled[delivery.tag] = delivery
    delivery.word = part.state
    if part.rcv_settle_mode is not None and not delivery.settled:
        # A transfer may choose mode first on a link of mode second, but not the reverse (2.7.5).
        if part.rcv_settle_mode > link.rcv_settle_mode:
            link.fail(
                rules.TRANSFER_SETTLE_MODE.broken("rcv-settle-mode second on a link that settles first")
            )
            return False
        settlement.modes[delivery.delivery_id] = part.rcv_settle_mode
    return True


def _is_continuation(link: ReceiverLink, delivery: IncomingDelivery, part: Transfer) -> bool:
    """Whether a transfer names the delivery in progress, or no delivery (2.7.5)."""
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
    """Process a further transfer of ``incoming``, rule by rule."""
    delivery = incoming.delivery
    # The sender takes the delivery back: drop its octets; it is settled at both ends (2.7.5).
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
        # The delivery is settled if any of its transfers is (2.7.5).
        # If this end settled the delivery first, the sender confirms that in its next transfer (2.7.6), in any mode.
        if not (delivery.settled or part.resume or link.fits_mode(settled=True)):
            return
        link.session.settlement.drop(delivery)
        incoming.settled = delivery.settled = True
    elif part.settled is False and incoming.settled:
        # A delivery that was settled cannot become unsettled again (2.7.5).
        link.fail(rules.SETTLED_STAYS.broken(f"delivery {delivery.tag!r} was settled, and is not any more"))
        return
    _append(link, incoming, payload, part.more)


def _append(link: ReceiverLink, incoming: Incoming, payload: bytes, more: bool) -> None:
    """Append the payload of a transfer to the delivery in progress."""
    delivery = incoming.delivery
    if not payload:
        # Empty transfers are legal, but counted, because each costs this end work for no octets.
        incoming.empty += 1
    elif not incoming.ignored:
        incoming.size += len(payload)
        if delivery.inflow is None:
            # The delivery is buffered until it is complete.
            _keep_chunk(incoming.chunks, payload)
            link.context.partial_octets += len(payload)
        else:
            # The delivery is a stream: its reader gets the octets at once.
            delivery.inflow.append(payload)
            link.context.touch(delivery.watcher)
    if _is_within_limits(link, incoming) and not more:
        _complete(link, incoming)


def _keep_chunk(chunks: list[bytes | bytearray], payload: bytes) -> None:
    """Append octets to ``chunks``; short ones are joined to save an object for each."""
    if len(payload) >= _SMALL:
        chunks.append(payload)
    elif chunks and isinstance(chunks[-1], bytearray):
        chunks[-1] += payload
    else:
        chunks.append(bytearray(payload))


def _is_within_limits(link: ReceiverLink, incoming: Incoming) -> bool:
    """Check the limits; return whether the delivery is still in progress."""
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
    # Either branch may have detached this link, or another link whose delivery was larger.
    return link.incoming is incoming


def _complete(link: ReceiverLink, incoming: Incoming) -> None:
    """Hand out a delivery whose last transfer has arrived."""
    _drop(link, incoming)
    delivery = incoming.delivery
    if not (delivery.settled or incoming.ignored or link.fits_mode(settled=False)):
        # No transfer settled the delivery, although the sender's mode is settled (2.7.5).
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
    """Free octets in the pool: the connection that holds most drops a delivery.

    If that connection has no delivery in progress, but only streams that are not read, this connection drops
    one.
    """
    if not pool.relieve(context):
        context.drop_largest(str(pool))


def _drop(link: ReceiverLink, incoming: Incoming) -> None:
    """Remove the delivery in progress from its link."""
    if incoming.delivery.inflow is None:
        link.context.partial_octets -= incoming.size
    link.incoming = None
    del link.context.receiving[incoming]


def _withdraw(link: ReceiverLink, delivery: IncomingDelivery) -> None:
    """Withdraw a streamed delivery that will never be complete."""
    if link.queue and link.queue[-1] is delivery:  # an incomplete delivery is always the last in the queue
        link.queue.pop()
    link.context.touch(delivery.watcher)


def _keep(link: ReceiverLink, incoming: Incoming) -> None:
    """Keep the octets of an incomplete delivery in the terminus, to resume (2.6.13)."""
    terminus, delivery = link.terminus, incoming.delivery
    if terminus is None or delivery.tag not in terminus.unsettled or incoming.ignored:
        return
    if delivery.inflow is None:
        terminus.partials[delivery.tag] = b"".join(incoming.chunks)
    else:
        # The reader has consumed a part of the stream, so the sender must send it again from the beginning.
        terminus.forget(delivery.tag)


def drop_incoming(link: ReceiverLink) -> None:
    """Drop the delivery in progress, because its link is gone or it is too large."""
    incoming = link.incoming
    if incoming is not None:
        if link.state is LinkState.DETACH_SENT:
            link.context.note_dropped(incoming.delivery.remote_state)
        _drop(link, incoming)
        _keep(link, incoming)
        if link.terminus is None or incoming.delivery.tag not in link.terminus.unsettled:
            # No terminus resumes it, so its id and its tag are free.
            link.session.settlement.release(incoming.delivery)
            link.context.touch(incoming.delivery.watcher)
        if incoming.delivery.inflow is not None:
            _withdraw(link, incoming.delivery)
    for inflow in tuple(link.inflows):
        inflow.detach()
    link.inflows.clear()
