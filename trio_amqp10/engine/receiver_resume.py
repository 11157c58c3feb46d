"""Resume a receiving link: compare both unsettled maps (2.6.13).

By the sender's map each delivery that we hold is settled, or awaited: the sender must resume it, and
until then it has no delivery-id. A resumed transfer brings the rest of a message that had begun to
come, or only the sender's last word; one of a delivery that we do not hold is ignored. The other
side of the comparison is told in ``sender_resume``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from trio_amqp10.spec.messaging import Received
from trio_amqp10.spec.transport import ReceiverSettleMode

from .outcomes import RELEASED, is_terminal
from .section_offsets import offset_of
from .unsettled_state import final

if TYPE_CHECKING:
    from trio_amqp10.spec.transport import Transfer

    from .delivery import IncomingDelivery
    from .receiver import ReceiverLink
    from .unsettled_state import ReceiverTerminus

__all__ = ["resume_receiver", "retake"]

_CHEAPER: Final = 16
"""How much less it costs to pass over a delivery in a queue than to compare it when a link is resumed."""


def resume_receiver(link: ReceiverLink, terminus: ReceiverTerminus) -> None:
    """Both ends are attached: what the sender does not name it has settled."""
    assert link.remote is not None
    theirs = link.remote.unsettled
    terminus.awaited.clear()
    for tag, delivery in list(terminus.unsettled.items()):
        if theirs is not None and tag in theirs:
            terminus.awaited.add(tag)
        elif theirs is None or not link.remote.incomplete_unsettled:
            terminus.forget(tag)
            delivery.settled = True
            link.context.touch(delivery.watcher)
    link.tags.update(terminus.unsettled)


def _withdraw(link: ReceiverLink, delivery: IncomingDelivery) -> None:
    """The sender has an outcome, so nobody here may give it one: take it out of the queue, if it waits there."""
    link.context.resumed += len(link.queue) // _CHEAPER
    link.context.charge_resumed()
    with suppress(ValueError):
        link.queue.remove(delivery)


def retake(
    link: ReceiverLink, delivery_id: int, tag: bytes, rare: Transfer
) -> tuple[IncomingDelivery, bytes | None] | None:
    """The delivery that a first transfer resumes, and what came of it before; None for one that is not held.

    The octets are None where nothing that the transfer carries is wanted.
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
        if final(delivery.state) is None:
            _withdraw(link, delivery)
        if not rare.aborted and not rare.settled:
            delivery.state = None  # the sender's outcome counts; in mode second it settles first (2.7.5)
            settlement.dispose(delivery, rare.state)
        return delivery, None
    if is_terminal(delivery.state):
        state, delivery.state = delivery.state, None
        settlement.dispose(delivery, state)  # the sender does not know it yet
        return delivery, None
    if have is None:
        return delivery, None
    start = rare.state if isinstance(rare.state, Received) else Received(section_number=0, section_offset=0)
    offset = offset_of(have, delivery.message_format, start)
    if offset is None:
        settlement.dispose(delivery, RELEASED)  # what is between the two is lost: it has to come anew
        return delivery, None
    return delivery, have[:offset]
