"""A survey: the figures of a whole container, summed up in steps.

Only some queues get a status of their own; all others are added up, so that the result stays small however many queues
there are. Node by node it takes a step, after which other tasks may run.

Knows nodes and peers by their interfaces; changes nothing, but removes expired messages, so that they do not count.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from fnmatch import translate
from typing import TYPE_CHECKING, Final, cast

from trio_amqp10.amqp10.peer.statistics import totals_of
from trio_amqp10.broker.exchanges.exchanges import Exchange
from trio_amqp10.broker.nodes.held_messages import CAUSES
from trio_amqp10.broker.nodes.queue import Queue
from trio_amqp10.broker.nodes.topic import Topic

from . import status_builders
from .status import MessageTotals, ProtocolTotals, QueueStatus, QueueTotals, Survey

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from .managed_container import ManagedContainer

MOST_QUEUES: Final = 500
"""The most queues with a status of their own."""


def matching(patterns: Sequence[str]) -> Callable[[str], bool] | None:
    """Return a function that tests whether a whole address matches a pattern.

    Return None without patterns.

    Args:
        patterns: addresses, in which ``*`` is any text, ``?`` any character, and ``[ab]`` one of these.
    """
    if not patterns:
        return None
    expression = re.compile("|".join(map(translate, patterns)))
    return lambda name: expression.match(name) is not None


def survey(
    container: ManagedContainer, named: Callable[[str], bool], most: int = MOST_QUEUES
) -> Generator[None, None, Survey]:
    """Take a survey in steps; the queues and connections are those of its beginning.

    Args:
        container: the container.
        named: whether a queue of this address gets a status of its own.
        most: the most such queues, the oldest first; further ones are added up with all others.
    """
    # Both at once, so that a queue deleted from now on counts once: its figures stay readable.
    messages, nodes = Counter(container.past_messages), list(container.nodes.values())
    traffic, peers = Counter(container.past), container.connected
    entered = container.entered
    kinds, sums, rest, queues = Counter[str](), Counter[str](), QueueTotals(), list[QueueStatus]()
    for node in nodes:
        if isinstance(node, Queue):
            if not node.held.is_untouched:
                _add_totals(messages, node.totals())
            if len(queues) < most and named(node.address):
                queues.append(cast("QueueStatus", status_builders.node_status(container, node)))
            else:
                _add_queue(rest, node)
        elif isinstance(node, Topic):
            kinds["topic"] += 1
            yield from _add_subscriptions(node, messages, sums)
        else:
            kinds["exchange"] += isinstance(node, Exchange)
            _add_totals(messages, node.totals())
        yield
    protocols: defaultdict[str, ProtocolTotals] = defaultdict(ProtocolTotals)
    for peer in peers:
        figures = peer.statistics()
        traffic.update(totals_of(figures))
        found = protocols[status_builders.protocol_of(peer, figures)]
        found.connections += 1
        found.channels += figures.get("sessions", 0)
        found.senders += figures.get("senders", 0)
        found.receivers += figures.get("receivers", 0)
        found.waiting += figures.get("waiting", 0)
        found.unsettled += peer.leases
        yield
    counts = Counter({protocol: found.connections for protocol, found in protocols.items()})
    return Survey(
        container=status_builders.container_status(container, traffic, counts),
        queues=tuple(queues),
        rest=rest,
        messages=MessageTotals(
            arrived=messages["arrived"],
            refused=messages["refused"],
            delivered=messages["delivered"],
            redelivered=messages["redelivered"],
            acknowledged=messages["accepted"],
            dead_letters={cause: messages[name] for cause, name in CAUSES.items()},
            unroutable=messages["unroutable"],
        ),
        topics=kinds["topic"],
        subscriptions=sums["subscriptions"],
        backlog=sums["backlog"],
        exchanges=kinds["exchange"],
        protocols=dict(protocols),
        entered=entered,
    )


def add_status(totals: QueueTotals, status: QueueStatus) -> None:
    """Add a queue that has a status to the others."""
    totals.queues += 1
    totals.depth += status.depth
    totals.octets += status.octets
    totals.ready += status.ready
    totals.ready_octets += status.ready_octets
    totals.unacked += status.unacked
    totals.delayed += status.delayed
    totals.consumers += status.consumers
    totals.oldest = max(totals.oldest, status.oldest or 0.0)


def _add_queue(totals: QueueTotals, queue: Queue) -> None:
    """Add a queue to the others, without making a status of it."""
    queue.sweep_now()
    held = queue.held
    totals.queues += 1
    totals.consumers += queue.consumer_count
    if not held.length:
        return
    available = held.available
    totals.depth += held.length
    totals.octets += held.octets
    totals.ready += len(available)
    totals.ready_octets += available.octets
    totals.unacked += held.leased
    totals.delayed += len(held.delayed)
    earliest = available.earliest()
    if earliest is not None:
        totals.oldest = max(totals.oldest, held.clock.wall() - earliest.since)


def _add_subscriptions(topic: Topic, messages: Counter[str], sums: Counter[str]) -> Generator[None]:
    _add_totals(messages, topic.past)
    for subscription in list(topic.subscriptions.values()):
        subscription.sweep_now()
        _add_totals(messages, subscription.totals())
        sums["subscriptions"] += 1
        sums["backlog"] += len(subscription)
        yield


def _add_totals(messages: Counter[str], totals: Mapping[str, int]) -> None:
    """Add totals, faster than ``Counter.update``: most totals of most queues are 0."""
    for name, count in totals.items():
        if count:
            messages[name] += count
