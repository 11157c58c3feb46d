"""BrokerQueue: a queue of RabbitMQ's, and what its arguments mean here.

==============================  ======================================================================
x-queue-type                    ``classic`` or ``quorum``; the latter delivers 21 times at most unless told otherwise
x-max-length                    messages, and
x-max-length-bytes              octets of messages that it holds
x-overflow                      ``drop-head`` or ``reject-publish``
x-message-ttl                   milliseconds that a message lives at most
x-dead-letter-exchange          where dead messages go, with
x-dead-letter-routing-key       this routing key, or else with the name of the queue
x-delivery-limit                failed deliveries that a message may have; one more, and it is dead
x-single-active-consumer        whether one consumer gets all, until it goes
==============================  ======================================================================

Others are kept and shown, and have no effect; those that would change what happens to messages are refused. Knows
messages; knows no links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.container.nodes.policy import QueuePolicy
from trio_amqp10.container.nodes.queue import Queue
from trio_amqp10.errors import Condition

from .addresses import exchange_address, queue_address
from .faults import FaultError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.container.nodes.clock import Clock
    from trio_amqp10.container.nodes.node import Interest, Outlet, Peer
    from trio_amqp10.container.nodes.policy import Overflow

__all__ = ["BrokerQueue", "policy_of"]

_QUORUM_LIMIT: Final = 20
_OVERFLOWS: Final[dict[Any, Overflow]] = {"drop-head": "drop-oldest", "reject-publish": "reject"}
_NUMBERS: Final = ("x-max-length", "x-max-length-bytes", "x-message-ttl", "x-delivery-limit")
_MISSING: Final = ("x-expires",)


def policy_of(name: str, arguments: Mapping[str, Any]) -> QueuePolicy:
    """The rules that the arguments of a queue amount to.

    Raises:
        FaultError: one that is not possible, or that is not implemented here.
    """
    kind = arguments.get("x-queue-type", "classic")
    if kind == "stream":
        raise FaultError(501, "streams are not implemented here")
    if kind not in ("classic", "quorum"):
        raise FaultError(400, f"x-queue-type={kind!r}: classic or quorum is possible")
    for argument in _MISSING:
        if argument in arguments:
            raise FaultError(501, f"{argument} is not implemented here")
    for argument in _NUMBERS:
        value = arguments.get(argument, 0)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise FaultError(400, f"{argument}={value!r}: a number from 0 is possible")
    overflow = arguments.get("x-overflow", "drop-head")
    if overflow not in _OVERFLOWS:
        raise FaultError(
            501, f"x-overflow={overflow!r}: of those, {', '.join(_OVERFLOWS)} are implemented here"
        )
    limit = arguments.get("x-delivery-limit", _QUORUM_LIMIT if kind == "quorum" else None)
    for argument in ("x-max-length", "x-max-length-bytes"):
        if arguments.get(argument) == 0:
            raise FaultError(501, f"{argument}=0: a queue that holds nothing is not implemented here")
    return QueuePolicy(
        max_length=arguments.get("x-max-length"),
        max_octets=arguments.get("x-max-length-bytes"),
        ttl=arguments.get("x-message-ttl"),
        overflow=_OVERFLOWS[overflow],
        dead_letter=_dead_letter(name, arguments),
        delivery_limit=None if limit is None else limit + 1,
        single_active=arguments.get("x-single-active-consumer") is True,
    )


def _dead_letter(name: str, arguments: Mapping[str, Any]) -> str | None:
    exchange = arguments.get("x-dead-letter-exchange")
    key = arguments.get("x-dead-letter-routing-key", name)
    if exchange is None:
        return None
    if not isinstance(exchange, str) or not isinstance(key, str):
        raise FaultError(400, "x-dead-letter-exchange and x-dead-letter-routing-key are strings")
    return exchange_address(exchange, key) if exchange else queue_address(key)


class BrokerQueue(Queue):
    """See ``Queue``.

    Args:
        name: of the queue.
        arguments: as it was declared with.
        durable, auto_delete: the same.
        owner: whose it is alone, until its connection ends; None for everybody's.
        clock: what messages expire by.
        on_unused: called when its last consumer has gone.

    Attributes:
        name, arguments, wants_durable, auto_delete, owner: as given.

    Raises:
        FaultError: arguments that are not possible, or not implemented here.
    """

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        durable: bool,
        auto_delete: bool,
        owner: Peer | None,
        clock: Clock,
        on_unused: Callable[[BrokerQueue], object],
    ) -> None:
        super().__init__(queue_address(name), policy=policy_of(name, arguments), clock=clock)
        self.name = name
        self.arguments = dict(arguments)
        self.wants_durable = durable
        self.auto_delete = auto_delete
        self.owner = owner
        self._gone = on_unused

    @property
    def terms_of_declaration(self) -> tuple[Any, ...]:
        """What a second declaration has to be equal in."""
        return self.wants_durable, self.auto_delete, self.owner, self.arguments

    def check_owner(self, peer: Peer) -> None:
        """Raise ``RefusedError`` if it is another connection's."""
        if self.owner is not None and self.owner is not peer:
            raise RefusedError(
                Condition.RESOURCE_LOCKED, f"{self.address!r} is exclusive to another connection"
            )

    def check_outlet(self, peer: Peer, *, copying: bool, target: str | None, interest: Interest) -> None:
        self.check_owner(peer)
        super().check_outlet(peer, copying=copying, target=target, interest=interest)

    def remove_outlet(self, outlet: Outlet) -> None:
        super().remove_outlet(outlet)
        if self.auto_delete and not self.outlets and not self._closed:
            self._gone(self)
