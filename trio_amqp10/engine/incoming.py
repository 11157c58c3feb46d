"""Transfers of a receiving link put together into deliveries, each rule of 2.7.5 checked on the way.

A whole message in one frame, by far the most frequent, takes the short way in ``on_transfer``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10.errors import Condition, RemoteProtocolError

from .receiver import ReceiverLink
from .serial import MASK
from .states import LinkState

if TYPE_CHECKING:
    from trio_amqp10.spec.transport import Transfer

    from .connection import Connection
    from .delivery import IncomingDelivery

__all__ = ["Incoming", "on_transfer"]

_MAX_TAG = 32
_ATTACHED = LinkState.ATTACHED


class Incoming:
    """A delivery of which some transfers have come, and not the last."""

    __slots__ = ("chunks", "delivery", "empty", "size")

    def __init__(self, delivery: IncomingDelivery) -> None:
        self.delivery = delivery
        self.chunks: list[bytes] = []
        self.size = 0
        self.empty = 0


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
        and len(tag) <= _MAX_TAG
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
        link.queue.append(delivery)
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
        # In flight when we detached: dropped, but counted like any other (2.6.6).
        if delivery_id is not None and delivery_id == session.next_incoming_delivery_id:
            session.next_incoming_delivery_id = (delivery_id + 1) & MASK
        return
    connection = session.connection
    if link.incoming is not None:
        _continue(link, link.incoming, delivery_id, tag, message_format, settled, more, payload, rare)
        return
    if delivery_id is None or tag is None or len(tag) > _MAX_TAG:
        missing = "delivery-id" if delivery_id is None else f"delivery-tag of at most {_MAX_TAG} octets"
        link.fail(Condition.INVALID_FIELD, f"the first transfer of a delivery needs a {missing} (2.7.5)")
        return
    if session.next_incoming_delivery_id is not None and delivery_id != session.next_incoming_delivery_id:
        session.fail(
            Condition.INVALID_FIELD,
            f"delivery-id {delivery_id} where {session.next_incoming_delivery_id} comes next",
        )
        return
    session.next_incoming_delivery_id = (delivery_id + 1) & MASK
    if not link.take_credit():
        link.fail(Condition.TRANSFER_LIMIT_EXCEEDED, "a delivery without credit (2.6.7)")
        return
    delivery = connection.incoming_class(link, delivery_id, tag, message_format or 0, bool(settled), payload)
    if not settled:
        session.settlement.incoming[delivery_id] = delivery
    if rare is not None:
        delivery.remote_state = rare.state
        if rare.rcv_settle_mode is not None:
            session.settlement.modes[delivery_id] = rare.rcv_settle_mode
    if more or (rare is not None and rare.aborted):
        link.incoming = Incoming(delivery)
        _continue(link, link.incoming, None, None, None, settled, more, payload, rare)
        return
    if link.max_message_size is not None and len(payload) > link.max_message_size:
        _too_large(link, len(payload))
        return
    link.queue.append(delivery)
    if link.owner is not None:
        connection.touch(link.owner)


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
    connection = link.session.connection
    if rare is not None and rare.aborted:
        _drop(link, incoming)
        link.session.settlement.drop(delivery)
        link.wake()  # its credit is used up, though nothing will be handed out
        return
    if (
        (delivery_id is not None and delivery_id != delivery.delivery_id)
        or (tag is not None and tag != delivery.tag)
        or (message_format is not None and message_format != delivery.message_format)
    ):
        _drop(link, incoming)
        link.fail(
            Condition.INVALID_FIELD,
            f"delivery {delivery.tag!r} continues under another id, tag or format (2.7.5)",
        )
        return
    if settled:
        delivery.settled = True
        link.session.settlement.drop(delivery)
    elif settled is False and delivery.settled and incoming.chunks:
        _drop(link, incoming)
        link.fail(
            Condition.INVALID_FIELD, f"delivery {delivery.tag!r} was settled, and is not any more (2.7.5)"
        )
        return
    if payload:
        incoming.chunks.append(payload)
        incoming.size += len(payload)
        connection.partial_octets += len(payload)
    else:
        incoming.empty += 1
    limits = connection.limits
    if link.max_message_size is not None and incoming.size > link.max_message_size:
        size = incoming.size
        _drop(link, incoming)
        _too_large(link, size)
    elif limits.partial_octets is not None and connection.partial_octets > limits.partial_octets:
        _drop_largest(connection)
    elif limits.empty_transfers is not None and incoming.empty > limits.empty_transfers:
        _drop(link, incoming)
        raise RemoteProtocolError(
            f"more than {limits.empty_transfers} empty transfers in one delivery",
            Condition.RESOURCE_LIMIT_EXCEEDED,
        )
    elif not more:
        delivery.payload = b"".join(incoming.chunks)
        _drop(link, incoming)
        link.queue.append(delivery)
        link.wake()


def _drop_largest(connection: Connection) -> None:
    """Deliveries in progress fill the budget: the largest goes, with its link."""
    begun = [
        (link.incoming.size, position, link)
        for position, link in enumerate(connection.names)
        if isinstance(link, ReceiverLink) and link.incoming is not None
    ]
    largest = max(begun)[2]
    drop_incoming(largest)
    largest.fail(
        Condition.RESOURCE_LIMIT_EXCEEDED,
        f"deliveries in progress take more than {connection.limits.partial_octets} octets on this connection",
    )


def _drop(link: ReceiverLink, incoming: Incoming) -> None:
    link.session.connection.partial_octets -= incoming.size
    link.incoming = None


def drop_incoming(link: ReceiverLink) -> None:
    """The link is gone, or its delivery is too much: what came of it so far is dropped."""
    if link.incoming is not None:
        _drop(link, link.incoming)


def _too_large(link: ReceiverLink, size: int) -> None:
    link.fail(
        Condition.MESSAGE_SIZE_EXCEEDED,
        f"{size} octets of a message so far, of {link.max_message_size} allowed (2.7.3)",
    )
