"""Transfers of a receiving link put together into deliveries, each rule of 2.7.5 checked on the way.

A whole message in one frame, by far the most frequent, takes the short way in ``on_transfer``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10 import rules

from .delivery import MAX_TAG
from .inflow import Inflow
from .receiver import ReceiverLink
from .resuming import retake
from .serial import MASK
from .states import LinkState

if TYPE_CHECKING:
    from trio_amqp10.spec.transport import Transfer

    from .connection import Connection
    from .delivery import IncomingDelivery
    from .session import Session

__all__ = ["Incoming", "drop_incoming", "on_transfer", "skip"]

_ATTACHED = LinkState.ATTACHED


class Incoming:
    """A delivery of which some transfers have come, and not the last.

    Attributes:
        ignored: it resumes a delivery that we do not know, and nothing is made of it (2.7.5).
        size: octets so far; those of a streamed delivery are kept, and counted, by its ``inflow``.
        settled: whether a transfer so far was settled by the sender; we may settle without that.
    """

    __slots__ = ("chunks", "delivery", "empty", "ignored", "settled", "size")

    def __init__(self, delivery: IncomingDelivery, *, ignored: bool = False) -> None:
        self.delivery = delivery
        self.ignored = ignored
        self.chunks: list[bytes] = []
        self.size = 0
        self.empty = 0
        self.settled = False

    @property
    def held(self) -> int:
        """Octets that are kept of it."""
        inflow = self.delivery.inflow
        return self.size if inflow is None else inflow.size


def on_transfer(
    link: ReceiverLink,
    delivery_id: int | None,
    tag: bytes | None,
    message_format: int | None,
    settled: bool | None,
    more: bool,
    payload: bytes,
    rare: Transfer | None = None,
) -> None:
    """One transfer for ``link``; ``rare`` is the whole performative where it has unusual fields."""
    session = link.session
    if (
        rare is None
        and not more
        and tag is not None
        and delivery_id is not None
        and delivery_id == session.next_incoming_delivery_id
        and link.credit > 0
        and link.incoming is None
        and not link.incomplete_here
        and len(tag) <= MAX_TAG
        and tag not in link.tags
        and link.state is _ATTACHED
        and (link.max_message_size is None or len(payload) <= link.max_message_size)
    ):
        connection = session.connection
        session.next_incoming_delivery_id = (delivery_id + 1) & MASK
        link.credit -= 1
        link.delivery_count = ((link.delivery_count or 0) + 1) & MASK
        delivery = connection.incoming_class(
            link, delivery_id, tag, message_format or 0, settled is True, payload
        )
        if not settled:
            session.settlement.incoming[delivery_id] = delivery
            link.tags[tag] = delivery
            if link.terminus is not None:
                link.terminus.unsettled[tag] = delivery
        link.enqueue(delivery)
        connection.touch(link.owner)
    else:
        _general(link, delivery_id, tag, message_format, settled, more, payload, rare)


def _general(
    link: ReceiverLink,
    delivery_id: int | None,
    tag: bytes | None,
    message_format: int | None,
    settled: bool | None,
    more: bool,
    payload: bytes,
    rare: Transfer | None,
) -> None:
    """Every transfer, rule by rule."""
    session = link.session
    if link.state is LinkState.DETACH_SENT:
        if not link.check_errant():
            skip(session, delivery_id)  # in flight when we detached: dropped
        return
    if link.incoming is not None:
        _continue(link, link.incoming, delivery_id, tag, message_format, settled, more, payload, rare)
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
    resumes = rare is not None and rare.resume
    if not link.take_credit() and not (resumes and link.terminus is not None):
        link.fail(rules.LINK_CREDIT.broken("a delivery without credit"))
        return
    if link.incomplete_here and not resumes:
        link.fail(rules.INCOMPLETE_UNSETTLED.broken("a new delivery, where our unsettled map was incomplete"))
        return
    if rare is not None and rare.resume and (held := retake(link, delivery_id, tag, rare)) is not None:
        _go_on(link, *held)
        assert link.incoming is not None
        _continue(link, link.incoming, None, None, None, settled, more, payload, rare)
        session.connection.touch(held[0].watcher)
        return
    delivery = session.connection.incoming_class(
        link, delivery_id, tag, message_format or 0, settled is True, payload
    )
    if resumes:
        link.incoming = Incoming(delivery, ignored=True)
    elif _register(link, delivery, rare):
        if not more and (rare is None or not rare.aborted) and not _is_too_large(link, len(payload)):
            link.enqueue(delivery)
            link.wake()
            return
        link.incoming = Incoming(delivery)
        if link.streaming and more and (rare is None or not rare.aborted):
            delivery.payload = b""
            delivery.inflow = Inflow(link)
            link.enqueue(delivery)
            link.wake()
    else:
        return
    _continue(link, link.incoming, None, None, None, settled, more, payload, rare)


def _go_on(link: ReceiverLink, delivery: IncomingDelivery, have: bytes | None) -> None:
    """A delivery is resumed behind these octets; None: it is all there, or what comes is not wanted."""
    incoming = link.incoming = Incoming(delivery, ignored=have is None)
    if have:
        incoming.chunks.append(have)
        incoming.size = len(have)
        link.session.connection.partial_octets += len(have)


def skip(session: Session, delivery_id: int | None) -> None:
    """A delivery that is dropped counts like any other, or the next one would seem out of order (2.6.6)."""
    if delivery_id is not None and delivery_id == session.next_incoming_delivery_id:
        session.next_incoming_delivery_id = (delivery_id + 1) & MASK


def _register(link: ReceiverLink, delivery: IncomingDelivery, rare: Transfer | None) -> bool:
    """Take note of a delivery that begins; False where it must not (2.7.5)."""
    settlement = link.session.settlement
    if delivery.tag in link.tags:
        link.fail(rules.UNIQUE_TAG.broken(f"delivery-tag {delivery.tag!r} is that of an unsettled delivery"))
        return False
    if not delivery.settled:
        settlement.incoming[delivery.delivery_id] = delivery
        link.tags[delivery.tag] = delivery
        if link.terminus is not None:
            link.terminus.unsettled[delivery.tag] = delivery
    if rare is not None:
        delivery.word = rare.state
        if rare.rcv_settle_mode is not None and not delivery.settled:
            if rare.rcv_settle_mode > link.rcv_settle_mode:
                link.fail(
                    rules.TRANSFER_SETTLE_MODE.broken("rcv-settle-mode second on a link that settles first")
                )
                return False
            settlement.modes[delivery.delivery_id] = rare.rcv_settle_mode
    return True


def _continue(
    link: ReceiverLink,
    incoming: Incoming,
    delivery_id: int | None,
    tag: bytes | None,
    message_format: int | None,
    settled: bool | None,
    more: bool,
    payload: bytes,
    rare: Transfer | None,
) -> None:
    delivery = incoming.delivery
    if rare is not None and rare.aborted:
        _drop(link, incoming)
        link.session.settlement.drop(delivery)
        delivery.settled = True
        if delivery.inflow is not None:
            delivery.inflow.abort()
            _withdraw(link, delivery)
        link.wake()  # its credit is used up, though nothing will be handed out
        return
    if (
        (delivery_id is not None and delivery_id != delivery.delivery_id)
        or (tag is not None and tag != delivery.tag)
        or (message_format is not None and message_format != delivery.message_format)
    ):
        skip(link.session, delivery_id)
        link.fail(
            rules.CONTINUATION.broken(f"delivery {delivery.tag!r} continues under another id, tag or format")
        )
        return
    if rare is not None:
        delivery.on_remote_state(rare.state)
    if settled:
        link.session.settlement.drop(delivery)
        incoming.settled = delivery.settled = True
    elif settled is False and incoming.settled:
        link.fail(rules.SETTLED_STAYS.broken(f"delivery {delivery.tag!r} was settled, and is not any more"))
        return
    if not payload:
        incoming.empty += 1
    elif not incoming.ignored:
        incoming.size += len(payload)
        if delivery.inflow is None:
            incoming.chunks.append(payload)
            link.session.connection.partial_octets += len(payload)
        else:
            delivery.inflow.append(payload)
            link.session.connection.touch(delivery.watcher)
    if _is_within_limits(link, incoming) and not more:
        _complete(link, incoming)


def _is_within_limits(link: ReceiverLink, incoming: Incoming) -> bool:
    connection = link.session.connection
    limits = connection.limits
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
    elif limits.partial_octets is not None and connection.partial_octets > limits.partial_octets:
        _drop_largest(connection)
    return link.incoming is incoming


def _complete(link: ReceiverLink, incoming: Incoming) -> None:
    _drop(link, incoming)
    delivery = incoming.delivery
    if delivery.inflow is not None:
        delivery.inflow.finish()
        link.session.connection.touch(delivery.watcher)
    elif not incoming.ignored:
        delivery.payload = b"".join(incoming.chunks)
        link.enqueue(delivery)
    link.wake()


def _is_too_large(link: ReceiverLink, size: int) -> bool:
    return link.max_message_size is not None and size > link.max_message_size


def _drop_largest(connection: Connection) -> None:
    """Deliveries in progress fill the budget: the largest goes, with its link."""
    begun = [
        (link.incoming.held, position, link)
        for position, link in enumerate(connection.names)
        if isinstance(link, ReceiverLink) and link.incoming is not None
    ]
    largest = max(begun)[2]
    drop_incoming(largest)
    largest.fail(
        rules.PARTIAL_DELIVERIES.broken(
            f"deliveries in progress take more than {connection.limits.partial_octets} octets on this connection"
        )
    )


def _drop(link: ReceiverLink, incoming: Incoming) -> None:
    if incoming.delivery.inflow is None:
        link.session.connection.partial_octets -= incoming.size
    link.incoming = None


def _withdraw(link: ReceiverLink, delivery: IncomingDelivery) -> None:
    """It will never be complete: take it back, or wake who has it."""
    if link.queue and link.queue[-1] is delivery:  # nothing is queued behind what is not complete
        link.queue.pop()
    link.session.connection.touch(delivery.watcher)


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
        _drop(link, incoming)
        _keep(link, incoming)
        if link.terminus is None or incoming.delivery.tag not in link.terminus.unsettled:
            link.session.settlement.release(incoming.delivery)
            link.session.connection.touch(incoming.delivery.watcher)
        if incoming.delivery.inflow is not None:
            _withdraw(link, incoming.delivery)
    for inflow in tuple(link.inflows):
        inflow.detach()
    link.inflows.clear()
