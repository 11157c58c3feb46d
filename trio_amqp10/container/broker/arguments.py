"""What the arguments of a queue mean: the policy that they amount to, and which of them a second declaration must repeat.

=================================  ======================================================================
x-queue-type                       ``classic`` (the default) or ``quorum``, which is durable and not exclusive
x-max-length, x-max-length-bytes   messages and octets of messages that it holds
x-overflow                         ``drop-head`` (the default), ``reject-publish``, or ``reject-publish-dlx``, where what is rejected
                                   is a dead letter too; ``quorum`` has that as ``drop-head``, as in RabbitMQ
x-message-ttl                      milliseconds that a message lives at most
x-expires                          milliseconds that the queue stays while it has no consumer and is not declared again
x-max-priority                     the highest priority that counts; none does in a classic queue without it
x-dead-letter-exchange             where dead messages go, with
x-dead-letter-routing-key          this routing key, or else with the keys that each message was published with
x-delivery-limit                   failed deliveries that a message may have; one more, and it dies. 20 for ``quorum``
x-single-active-consumer           whether one consumer gets all, until it goes
=================================  ======================================================================

``KEPT`` are known, compared and shown, and have no effect. Any other argument is ignored.

Knows names and values; knows no queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.container.nodes.policy import QueuePolicy

from .addresses import exchange_address
from .argument_values import comparable
from .faults import InequivalentError, PreconditionError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.container.nodes.policy import Overflow

__all__ = ["ALTERNATE", "KEPT", "KNOWN", "check_arguments", "check_equivalent", "dead_letter_of", "policy_of"]

ALTERNATE: Final = "alternate-exchange"
"""The one argument of exchanges that means something."""

KEPT: Final = (
    "x-dead-letter-strategy",
    "x-queue-mode",
    "x-queue-version",
    "x-consumer-timeout",
    "x-queue-leader-locator",
    "x-quorum-initial-group-size",
)
KNOWN: Final = (
    "x-queue-type",
    "x-message-ttl",
    "x-expires",
    "x-max-length",
    "x-max-length-bytes",
    "x-overflow",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-max-priority",
    "x-single-active-consumer",
    "x-delivery-limit",
    *KEPT,
)

_CLASSIC: Final = "classic"
_QUORUM: Final = "quorum"
_QUORUM_LIMIT: Final = 20
_MOST_PRIORITY: Final = 255
_OVERFLOWS: Final[dict[Any, Overflow]] = {
    "drop-head": "drop-oldest",
    "reject-publish": "reject",
    "reject-publish-dlx": "reject-dead-letter",
}
_NUMBERS: Final = (
    "x-max-length",
    "x-max-length-bytes",
    "x-message-ttl",
    "x-delivery-limit",
    "x-max-priority",
)
_TEXTS: Final = ("x-dead-letter-exchange", "x-dead-letter-routing-key")


def check_arguments(
    arguments: Mapping[str, Any], *, durable: bool, exclusive: bool, server_named: bool
) -> None:
    """Raise ``PreconditionError`` or ``UnsupportedError`` if no queue can have these arguments."""
    kind = arguments.get("x-queue-type", _CLASSIC)
    if kind == "stream":
        raise UnsupportedError("streams are not implemented here")
    if kind not in (_CLASSIC, _QUORUM):
        raise PreconditionError(f"invalid x-queue-type {kind!r}: expected classic or quorum")
    if kind == _QUORUM and (not durable or exclusive or server_named):
        raise PreconditionError("a quorum queue is durable, not exclusive, and named by the client")
    for name in _NUMBERS:
        if name in arguments and not _is_whole(arguments[name], 0):
            raise PreconditionError(f"invalid {name} {arguments[name]!r}: expected a number of at least 0")
    if "x-expires" in arguments and not _is_whole(arguments["x-expires"], 1):
        raise PreconditionError(
            f"invalid x-expires {arguments['x-expires']!r}: expected a number of at least 1"
        )
    if arguments.get("x-max-priority", 0) > _MOST_PRIORITY:
        raise PreconditionError(f"invalid x-max-priority: {_MOST_PRIORITY} is possible at most")
    for name in _TEXTS:
        if name in arguments and not isinstance(arguments[name], str):
            raise PreconditionError("x-dead-letter-exchange and x-dead-letter-routing-key are strings")
    if "x-dead-letter-routing-key" in arguments and "x-dead-letter-exchange" not in arguments:
        raise PreconditionError("x-dead-letter-routing-key is possible with x-dead-letter-exchange only")
    if not isinstance(arguments.get("x-single-active-consumer", False), bool):
        raise PreconditionError("x-single-active-consumer is a boolean")
    _check_overflow(arguments.get("x-overflow", "drop-head"))


def _check_overflow(overflow: Any) -> None:
    if not isinstance(overflow, str) or overflow not in _OVERFLOWS:
        raise PreconditionError(f"invalid x-overflow {overflow!r}: {', '.join(_OVERFLOWS)} are possible")


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def policy_of(name: str, arguments: Mapping[str, Any], queue_address: Callable[[str], str]) -> QueuePolicy:
    """The rules that the arguments of a queue amount to; ``check_arguments`` has passed them.

    Args:
        name: of the queue.
        arguments: its own.
        queue_address: gives the address of a queue from its name.
    """
    quorum = arguments.get("x-queue-type", _CLASSIC) == _QUORUM
    overflow = _OVERFLOWS[arguments.get("x-overflow", "drop-head")]
    limit = arguments.get("x-delivery-limit", _QUORUM_LIMIT if quorum else None)
    return QueuePolicy(
        max_length=arguments.get("x-max-length"),
        max_octets=arguments.get("x-max-length-bytes"),
        ttl=arguments.get("x-message-ttl"),
        max_priority=arguments.get("x-max-priority", None if quorum else 0),
        bound="ready",
        expires=arguments["x-expires"] / 1000 if "x-expires" in arguments else None,
        overflow="drop-oldest" if quorum and overflow == "reject-dead-letter" else overflow,
        dead_letter=dead_letter_of(name, arguments, queue_address),
        delivery_limit=None if limit is None else limit + 1,
        single_active=arguments.get("x-single-active-consumer", False),
    )


def dead_letter_of(
    name: str, arguments: Mapping[str, Any], queue_address: Callable[[str], str]
) -> str | None:
    """The address that dead messages of a queue go to; None if they are gone."""
    exchange = arguments.get("x-dead-letter-exchange")
    if exchange is None:
        return None
    key = arguments.get("x-dead-letter-routing-key")
    return exchange_address(exchange, key) if exchange else queue_address(name if key is None else key)


def check_equivalent(
    kind: str, name: str, received: Mapping[str, Any], current: Mapping[str, Any], names: tuple[str, ...]
) -> None:
    """Raise ``InequivalentError`` for the first of these properties in which two declarations differ.

    Numbers are compared by value. The type of a queue that names none is ``classic``.

    Args:
        kind: ``"queue"`` or ``"exchange"``.
        name: of it.
        received: the properties of the new declaration.
        current: those of what exists.
        names: of the properties to compare.
    """
    for each in names:
        default = _CLASSIC if each == "x-queue-type" else None
        one, other = received.get(each, default), current.get(each, default)
        if comparable(one) != comparable(other):
            raise InequivalentError(kind, name, each, one, other)
