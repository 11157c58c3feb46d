"""Queues that the program added to the container itself: clients may declare them, as what they are.

Knows policies; changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .arguments import check_arguments, policy_of
from .faults import InequivalentError, LockedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.container.nodes.queue import Queue

__all__ = ["check_adopted"]

_FIELDS: Final = (
    ("x-max-length", "max_length"),
    ("x-max-length-bytes", "max_octets"),
    ("x-message-ttl", "ttl"),
    ("x-expires", "expires"),
    ("x-dead-letter-exchange", "dead_letter"),
    ("x-delivery-limit", "delivery_limit"),
    ("x-single-active-consumer", "single_active"),
)


def check_adopted(
    queue: Queue,
    name: str,
    arguments: Mapping[str, Any],
    queue_address: Callable[[str], str],
    *,
    durable: bool,
    auto_delete: bool,
    exclusive: bool,
) -> None:
    """Raise unless a declaration amounts to the queue that the program added.

    Raises:
        LockedError: it is declared as exclusive.
        InequivalentError: it is declared with other properties than it has.
        PreconditionError, UnsupportedError: the arguments are not possible.
    """
    if exclusive:
        raise LockedError(f"queue {name!r} is not exclusive")
    for each, received, current in (
        ("durable", durable, queue.durable),
        ("auto_delete", auto_delete, False),
    ):
        if received != current:
            raise InequivalentError("queue", name, each, received, current)
    check_arguments(arguments, durable=durable, exclusive=False, server_named=False)
    asked, has = policy_of(name, arguments, queue_address), queue.policy
    for each, field in _FIELDS:
        received, current = getattr(asked, field), getattr(has, field)
        if received != current:
            raise InequivalentError("queue", name, each, received, current)
    if "x-max-priority" in arguments and asked.max_priority != has.max_priority:
        raise InequivalentError("queue", name, "x-max-priority", asked.max_priority, has.max_priority)
    if has.is_bounded and asked.overflow != has.overflow:
        raise InequivalentError("queue", name, "x-overflow", asked.overflow, has.overflow)
