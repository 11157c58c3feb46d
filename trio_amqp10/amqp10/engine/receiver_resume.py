"""Resume a receiver link: compare both unsettled maps (2.6.13).

The sender's map decides about each delivery that we hold. If it is not in the map, the sender has settled it.
Otherwise the sender must resume it, and until then it has no delivery-id. A resumed transfer brings the rest
of an incomplete message, or only the sender's outcome. A resumed transfer of a delivery that we do not hold
is ignored. For the sender's side see ``sender_resume``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from trio_amqp10.amqp10.spec.messaging import RELEASED, Received
from trio_amqp10.amqp10.spec.transport import ReceiverSettleMode

from .outcomes import is_terminal
from .section_offsets import offset_of
from .unsettled_state import final

if TYPE_CHECKING:
    from trio_amqp10.amqp10.spec.transport import Transfer

    from .delivery import IncomingDelivery
    from .receiver import ReceiverLink
    from .unsettled_state import ReceiverTerminus

_CHEAPER: Final = 16
"""How many queued deliveries are passed at the cost of comparing one."""


def resume_receiver(link: ReceiverLink, terminus: ReceiverTerminus) -> None:
    """Settle the deliveries that the sender's map does not name; await the others."""
    assert link.remote is not None
    theirs = link.remote.unsettled
    terminus.awaited.clear()
    for tag, delivery in list(terminus.unsettled.items()):
        if theirs is not None and tag in theirs:
            # The sender holds it too, and must resume it.
            terminus.awaited.add(tag)
        elif theirs is None or not link.remote.incomplete_unsettled:
            # The sender has forgotten it, which means that it is settled (2.6.12). An incomplete map proves
            # nothing (2.7.3).
            terminus.forget(tag)
            delivery.settled = True
            link.context.touch(delivery.watcher)
    link.tags.update(terminus.unsettled)


def _withdraw(link: ReceiverLink, delivery: IncomingDelivery) -> None:
    """Take a delivery out of the queue, because the sender has decided its outcome."""
    link.context.resumed += len(link.queue) // _CHEAPER
    link.context.charge_resumed()
    with suppress(ValueError):
        link.queue.remove(delivery)


def retake(
    link: ReceiverLink, delivery_id: int, tag: bytes, rare: Transfer
) -> tuple[IncomingDelivery, bytes | None] | None:
    """Return the delivery that a first transfer resumes, and its octets so far.

    The octets are None if the payload of the transfer is not needed. Return None if this end does not hold
    the delivery.
    """
    terminus = link.terminus
    if terminus is None or tag not in terminus.awaited:
        return None
    delivery = terminus.unsettled[tag]
    terminus.awaited.discard(tag)
    have = terminus.partials.pop(tag, None)
    delivery.link = link
    delivery.delivery_id = delivery_id
    delivery.word = rare.state
    settlement = link.session.settlement
    settlement.incoming[delivery_id] = link.tags[tag] = delivery
    if rare.rcv_settle_mode is not None and rare.rcv_settle_mode < link.rcv_settle_mode:
        settlement.modes[delivery_id] = ReceiverSettleMode.FIRST
    if rare.aborted or final(rare.state) is not None:
        # The sender ends the delivery: it aborts it, or has an outcome for it (2.6.13).
        if final(delivery.state) is None:
            _withdraw(link, delivery)
        if not rare.aborted and not rare.settled:
            delivery.state = (
                None  # the sender's outcome is the one that counts; in mode second it settles first (2.7.5)
            )
            settlement.dispose(delivery, rare.state)
        return delivery, None
    if is_terminal(delivery.state):
        state, delivery.state = delivery.state, None
        settlement.dispose(delivery, state)  # the sender does not know our outcome yet
        return delivery, None
    if have is None:
        # The message is complete here, and waits for its outcome.
        return delivery, None
    # The message is incomplete here. The sender names the place where its octets begin (3.4.1).
    start = rare.state if isinstance(rare.state, Received) else Received(section_number=0, section_offset=0)
    offset = offset_of(have, delivery.message_format, start)
    if offset is None:
        # That place is after our last octet, so the octets between are lost: the sender must send it again.
        settlement.dispose(delivery, RELEASED)
        return delivery, None
    return delivery, have[:offset]
