"""The depth of each queue at one moment, in steps; and the queues that are full.

A status of each queue costs much more: these few figures can be taken every second.

Knows queues by their interface; changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trio_amqp10.broker.nodes.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from .managed_container import ManagedContainer


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueDepths:
    """The depths of the queues of a container.

    Args:
        messages: the messages held by each queue, by address.
        full: the addresses of the queues that are full, and whose senders wait for room.
        queues: the number of all queues.
    """

    messages: Mapping[str, int]
    full: Sequence[str]
    queues: int


def queue_depths(
    container: ManagedContainer, most: int, most_full: int
) -> Generator[None, None, QueueDepths]:
    """Return the depths in steps; the queues are those of its beginning.

    Args:
        container: the container.
        most: the most queues with a depth of their own, the oldest first.
        most_full: the most full queues.
    """
    messages: dict[str, int] = {}
    full: list[str] = []
    queues = 0
    for node in list(container.nodes.values()):
        if isinstance(node, Queue):
            queues += 1
            if len(messages) < most:
                messages[node.address] = node.held.length
            policy = node.policy
            if (
                policy.is_bounded
                and policy.overflow == "wait"
                and len(full) < most_full
                and node.held.is_full()
            ):
                full.append(node.address)
        yield
    return QueueDepths(messages=messages, full=tuple(full), queues=queues)
