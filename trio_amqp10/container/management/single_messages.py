"""Look at, take and publish single messages.

Knows queues, nodes and contents; asks for no permission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import trio

from trio_amqp10.amqp10.filters import FilterError, Selector
from trio_amqp10.broker.exchanges.exchange_route import ExchangeRoute
from trio_amqp10.broker.exchanges.exchanges import Exchange
from trio_amqp10.broker.nodes import relay
from trio_amqp10.broker.nodes.entry import BEFORE_ALL, HIGHEST, Entry, unpack_rank, unpack_sequence
from trio_amqp10.broker.nodes.relay import ReleasedError
from trio_amqp10.broker.nodes.sorted_blocks import all_after
from trio_amqp10.core.errors import LocalProtocolError

from .errors import ManagementError
from .moving import Taker
from .pace import Pace
from .status import MessageStatus

if TYPE_CHECKING:
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.form_registry import Wants
    from trio_amqp10.broker.nodes.node import Node
    from trio_amqp10.broker.nodes.queue import Queue

    from .managed_container import ManagedContainer

Ending: TypeAlias = Literal["accept", "release", "reject"]
"""The end of a taken message: it is removed, returned, or a dead letter."""


def wanted(selector: str | None) -> Wants | None:
    """Return a function that tests whether a message passes a selector of JMS.

    Raises:
        ManagementError: ``"invalid"``: it is no selector, or the extra for selectors is not installed.
    """
    if selector is None:
        return None
    try:
        parsed = Selector(selector)
    except (FilterError, LocalProtocolError) as fault:
        raise ManagementError("invalid", f"the filter {selector[:64]!r}: {fault}") from fault
    return lambda content, _origin: parsed.matches(content.as_message())


async def browse(
    queue: Queue, count: int, offset: int, wants: Wants | None, octets: float
) -> list[MessageStatus]:
    """Return ready messages in order, without taking them; see ``Management.browse``.

    Cancelled: nothing has changed.
    """
    found: list[MessageStatus] = []
    cursor, pace = BEFORE_ALL, Pace()
    while len(found) < count:
        for entry in all_after(queue.held.available.all_blocks, cursor):
            cursor = entry.order
            if wants is None or wants(entry.content, entry.origin):
                if offset:
                    offset -= 1
                else:
                    octets -= entry.length
                    if octets < 0 and found:
                        return found
                    found.append(_status(queue, entry))
            if len(found) == count or pace.is_over():
                break
        else:
            if not queue.page_in_now():
                break
        await pace.pause()
    return found


async def get(
    container: ManagedContainer,
    queue: Queue,
    count: int,
    outcome: Ending,
    wants: Wants | None,
    octets: float,
) -> list[MessageStatus]:
    """Take ready messages, and give each its outcome; see ``Management.get``.

    Cancelled: messages may have been taken.
    """
    taker, pace = Taker(container.nodes_peer, wants), Pace()
    with queue.pulling(taker) as consumer:
        while len(taker.taken) < count and (octets > 0 or not taker.taken):
            found_one = queue.pull_next(consumer, pace.is_over)
            if found_one:
                octets -= taker.taken[-1][0].size
            if not found_one and (consumer.search is None or not consumer.search.pauses):
                break
            if pace.is_over():
                with trio.CancelScope(shield=True):  # Messages that were taken must get their outcome.
                    await pace.pause()
    entries = [lease for _, lease in taker.taken if isinstance(lease, Entry)]
    found = [_status(queue, entry) for entry in entries]
    for entry in entries:
        if outcome == "accept":
            entry.accepted()
        elif outcome == "release":
            entry.released()
        else:
            entry.rejected(None, "rejected by management")
    if container.journal is not None:
        await container.journal.until_safe()
    return found


def _status(queue: Queue, entry: Entry) -> MessageStatus:
    clock = queue.held.clock
    content = entry.aged(clock.now()) if entry.ages else entry.content
    return MessageStatus(
        queue=queue.address,
        place=unpack_sequence(entry.order),
        priority=HIGHEST - unpack_rank(entry.order),
        message=content.as_message(),
        content=content,
        octets=entry.length,
        age=max(0.0, clock.wall() - entry.since),
        redelivered=entry.turn > (0 if entry.available else 1),
        failures=entry.failures,
        expires=None if entry.deadline is None else max(0.0, entry.deadline - clock.now()),
        died_in=content.died_in,
    )


async def post(container: ManagedContainer, node: Node, content: Content) -> bool:
    """Send a message to a node, and wait for its answer; see ``Management.publish``.

    Raises:
        RefusedError: the node did not accept it.

    Cancelled: the node may have it or not.
    """
    try:
        await relay.post(node, content, container.nodes_peer)
    except ReleasedError:
        if isinstance(node, (Exchange, ExchangeRoute)):
            return False
        raise
    return True
