"""Check declarations of adopted queues: those that the program has added itself.

A peer may declare such a queue in AMQP 0-9-1 if its arguments are equivalent to the rules that the program gave it.
Knows policies; changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .arguments import check_arguments, policy_of
from .faults import InequivalentError, LockedError, locked, title_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.broker.nodes.queue import Queue

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
    virtual_host: str = "/",
) -> None:
    """Raise unless a declaration is equivalent to the queue that the program added.

    Raises:
        LockedError: the declaration is exclusive.
        InequivalentError: the declaration has other properties than the queue.
        PreconditionError, UnsupportedError: the arguments are not possible.
    """
    if exclusive:
        raise LockedError(locked(title_of("queue", name, virtual_host)))
    for each, received, current in (
        ("durable", durable, queue.durable),
        ("auto_delete", auto_delete, False),
    ):
        if received != current:
            raise InequivalentError("queue", name, each, received, current, virtual_host)
    check_arguments(arguments, title_of("queue", name, virtual_host), durable=durable)
    asked, has = policy_of(name, arguments, queue_address), queue.policy
    for each, field in _FIELDS:
        received, current = getattr(asked, field), getattr(has, field)
        if received != current:
            raise InequivalentError("queue", name, each, received, current, virtual_host)
    if "x-max-priority" in arguments and asked.max_priority != has.max_priority:
        raise InequivalentError(
            "queue", name, "x-max-priority", asked.max_priority, has.max_priority, virtual_host
        )
    if has.is_bounded and asked.overflow != has.overflow:
        raise InequivalentError("queue", name, "x-overflow", asked.overflow, has.overflow, virtual_host)
