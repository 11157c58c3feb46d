"""The arguments of a queue: the policy they define, and their comparison.

=================================  ======================================================================
x-queue-type                       ``classic`` (the default) or ``quorum``, which is durable and not exclusive
x-max-length, x-max-length-bytes   messages and octets of messages that it holds
x-overflow                         ``drop-head`` (the default), ``reject-publish``, or ``reject-publish-dlx``, by which a rejected
                                   message is also a dead letter; ``quorum`` treats that as ``drop-head``, as RabbitMQ does
x-message-ttl                      the longest life of a message, in milliseconds
x-expires                          milliseconds after which a queue is deleted that has no consumer and is not declared again
x-max-priority                     the highest priority that counts; without it a classic queue ignores priorities
x-dead-letter-exchange             the exchange for dead messages, with
x-dead-letter-routing-key          this routing key, or by default with the keys that each message was published with
x-delivery-limit                   failed deliveries of a message; one more, and it dies. 20 for ``quorum``; negative: no limit
x-single-active-consumer           whether one consumer gets all messages, until it ends
=================================  ======================================================================

``KEPT`` are known, compared and shown, but have no effect. Any other argument is ignored.

Knows names and values; knows no queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.broker.nodes.policy import QueuePolicy
from trio_amqp10.core.short_strings import MOST_OCTETS, is_short

from .addresses import exchange_address
from .argument_equality import comparable, name_of_type
from .faults import InequivalentError, PreconditionError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.broker.nodes.policy import Overflow

ALTERNATE: Final = "alternate-exchange"
"""The only argument of exchanges that has an effect."""

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
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_DEEPEST: Final = 32
_LONGEST: Final = 315_360_000_000
"""The longest time in milliseconds, ten years, as at RabbitMQ."""
_OVERFLOWS: Final[dict[Any, Overflow]] = {
    "drop-head": "drop-oldest",
    "reject-publish": "reject",
    "reject-publish-dlx": "reject-dead-letter",
}
_NUMBERS: Final = {
    "x-max-length": (0, None),
    "x-max-length-bytes": (0, None),
    "x-message-ttl": (0, _LONGEST),
    "x-expires": (1, _LONGEST),
    "x-max-priority": (0, _MOST_PRIORITY),
    "x-delivery-limit": (None, None),
}
"""The least and the greatest value of each number; None for no bound."""
_TEXTS: Final = ("x-dead-letter-exchange", "x-dead-letter-routing-key")

_ONLY_CLASSIC: Final = ("x-max-priority", "x-queue-mode", "x-queue-version", "x-queue-master-locator")
_ONLY_QUORUM: Final = (
    "x-delivery-limit",
    "x-dead-letter-strategy",
    "x-quorum-initial-group-size",
    "x-max-in-memory-length",
    "x-max-in-memory-bytes",
)
_ONLY_STREAM: Final = (
    "x-max-age",
    "x-stream-max-segment-size-bytes",
    "x-stream-filter-size-bytes",
    "x-initial-cluster-size",
)
_UNKNOWN_TO: Final = {
    _CLASSIC: frozenset(_ONLY_QUORUM + _ONLY_STREAM),
    _QUORUM: frozenset(_ONLY_CLASSIC + _ONLY_STREAM),
}
"""The arguments that RabbitMQ refuses for each type of queue."""
_CHOICES: Final = {
    "x-queue-mode": ("default", "lazy"),
    "x-queue-version": (1, 2),
    "x-queue-leader-locator": ("client-local", "balanced", "random", "least-leaders"),
    "x-dead-letter-strategy": ("at-most-once", "at-least-once"),
}
"""The values of arguments without an effect here that RabbitMQ checks."""


def check_values(arguments: Mapping[str, Any]) -> None:
    """Raise ``PreconditionError`` for values that no field table has.

    Arguments that are JSON may have them: such a value could neither be stored nor shown.
    """
    rest: list[tuple[Any, int]] = [(arguments, 1)]
    while rest:
        value, depth = rest.pop()
        match value:
            case str():
                if not _is_octets(value):
                    raise PreconditionError(f"the text {value[:64]!r} in the arguments: expected Unicode")
            case int():
                if not _SMALLEST <= value <= _LARGEST:
                    bits = value.bit_length() + 1
                    raise PreconditionError(
                        f"a number of {bits} bits in the arguments: expected at most 64 bits"
                    )
            case None | float() | bytes() | bytearray() | datetime() | Decimal():
                pass
            case Mapping() | Sequence() if depth > _DEEPEST:
                raise PreconditionError(
                    f"{depth} levels of the arguments: expected at most {_DEEPEST} levels"
                )
            case Mapping():
                rest += ((key, depth) for key in value)  # pyright: ignore[reportUnknownVariableType]
                rest += ((each, depth + 1) for each in value.values())  # pyright: ignore[reportUnknownVariableType]
            case Sequence():
                rest += ((each, depth + 1) for each in value)  # pyright: ignore[reportUnknownVariableType]
            case _:
                raise PreconditionError(
                    f"a {type(value).__name__} in the arguments: expected a type of field tables"
                )


def _is_octets(text: str) -> bool:
    """Whether a text stands for octets.

    Its surrogates, if any, are octets that are not UTF-8.
    """
    try:
        text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def check_name(kind: str, name: str) -> None:
    """Raise ``PreconditionError`` for a name that no short string is (4.2.5.3)."""
    if not (_is_octets(name) and is_short(name)):
        raise PreconditionError(
            f"{kind} name {name[:64]!r}: expected at most {MOST_OCTETS} octets of Unicode, and no NUL"
        )


def check_arguments(
    arguments: Mapping[str, Any],
    title: str,
    *,
    durable: bool = True,
    exclusive: bool = False,
    auto_delete: bool = False,
    server_named: bool = False,
    like_rabbitmq: bool = False,
) -> None:
    """Raise ``PreconditionError`` or ``UnsupportedError`` for impossible arguments.

    Args:
        arguments: the arguments of a queue.
        title: the queue, as ``title_of`` names it.
        durable, exclusive, auto_delete: as declared.
        server_named: whether it was declared without a name.
        like_rabbitmq: refuse arguments that RabbitMQ refuses for this type of queue, although they are possible here.
    """
    check_values(arguments)
    kind = arguments.get("x-queue-type", _CLASSIC)
    if kind == "stream":
        raise UnsupportedError(
            f"x-queue-type={kind!r}: expected classic or quorum; streams are not implemented here"
        )
    if kind not in (_CLASSIC, _QUORUM):
        raise _invalid("x-queue-type", title, kind, "expected classic or quorum")
    if kind == _QUORUM:
        _check_quorum(title, durable, exclusive, auto_delete, server_named)
    if like_rabbitmq:
        _check_support(arguments, kind, title)
    for name, (least, most) in _NUMBERS.items():
        if name in arguments and not _is_whole(arguments[name], least, most):
            bounds = (f" of at least {least}" if least is not None else "") + (
                f" and at most {most}" if most is not None else ""
            )
            raise _invalid(name, title, arguments[name], f"expected a number{bounds}")
    for name in _TEXTS:
        if name in arguments and not isinstance(arguments[name], str):
            found = name_of_type(arguments[name])
            raise PreconditionError(f"invalid type '{found}' for arg '{name}' in {title}")
    if "x-dead-letter-routing-key" in arguments and "x-dead-letter-exchange" not in arguments:
        key = arguments["x-dead-letter-routing-key"]
        raise _invalid("x-dead-letter-routing-key", title, key, "it requires x-dead-letter-exchange")
    if not isinstance(arguments.get("x-single-active-consumer", False), bool):
        given = arguments["x-single-active-consumer"]
        raise _invalid("x-single-active-consumer", title, given, "expected a boolean")
    overflow = arguments.get("x-overflow", "drop-head")
    if not isinstance(overflow, str) or overflow not in _OVERFLOWS:
        raise _invalid("x-overflow", title, overflow, f"expected one of {', '.join(_OVERFLOWS)}")


def _check_quorum(title: str, durable: bool, exclusive: bool, auto_delete: bool, server_named: bool) -> None:
    for wrong, name in (
        (not durable, "non-durable"),
        (exclusive, "exclusive-owner"),
        (auto_delete, "auto-delete"),
    ):
        if wrong:
            raise PreconditionError(f"invalid property '{name}' for {title}")
    if server_named:
        raise PreconditionError("Cannot declare a server-named queue for type rabbit_quorum_queue")


def _check_support(arguments: Mapping[str, Any], kind: str, title: str) -> None:
    """Raise for arguments and values that only RabbitMQ refuses."""
    for name, value in arguments.items():
        if name in _UNKNOWN_TO[kind]:
            raise PreconditionError(f"invalid arg '{name}' for {title} of queue type rabbit_{kind}_queue")
        choices = _CHOICES.get(name)
        if choices is not None and value not in choices:
            raise _invalid(name, title, value, f"expected one of {', '.join(map(str, choices))}")
    size = arguments.get("x-quorum-initial-group-size", 1)
    if not _is_whole(size, 1, None):
        raise _invalid("x-quorum-initial-group-size", title, size, "expected a number of at least 1")


def _invalid(name: str, title: str, value: object, expected: str) -> PreconditionError:
    return PreconditionError(f"invalid arg '{name}' for {title}: {value!r}: {expected}")


def _is_whole(value: Any, least: int | None, most: int | None) -> bool:
    return (
        isinstance(value, int)
        and not isinstance(value, bool)
        and (least is None or value >= least)
        and (most is None or value <= most)
    )


def policy_of(name: str, arguments: Mapping[str, Any], queue_address: Callable[[str], str]) -> QueuePolicy:
    """Return the rules that the arguments of a queue define.

    ``check_arguments`` must have passed.

    Args:
        name: the name of the queue.
        arguments: its arguments.
        queue_address: returns the address of a queue from its name.
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
        delivery_limit=None if limit is None or limit < 0 else limit + 1,
        single_active=arguments.get("x-single-active-consumer", False),
    )


def dead_letter_of(
    name: str, arguments: Mapping[str, Any], queue_address: Callable[[str], str]
) -> str | None:
    """Return the address for dead messages of a queue; None if they are lost."""
    exchange = arguments.get("x-dead-letter-exchange")
    if exchange is None:
        return None
    key = arguments.get("x-dead-letter-routing-key")
    return exchange_address(exchange, key) if exchange else queue_address(name if key is None else key)


def check_equivalent(
    kind: str,
    name: str,
    received: Mapping[str, Any],
    current: Mapping[str, Any],
    names: tuple[str, ...],
    virtual_host: str = "/",
) -> None:
    """Raise ``InequivalentError`` for the first property in which declarations differ.

    Numbers are compared by value. The type of a queue without ``x-queue-type`` is ``classic``.

    Args:
        kind: ``"queue"`` or ``"exchange"``.
        name: the name of the queue or exchange.
        received: the properties of the new declaration.
        current: the properties of the existing queue or exchange.
        names: the properties to compare.
        virtual_host: the virtual host, for the text.
    """
    for each in names:
        default = _CLASSIC if each == "x-queue-type" else None
        one, other = received.get(each, default), current.get(each, default)
        if comparable(one) != comparable(other):
            raise InequivalentError(kind, name, each, one, other, virtual_host)
