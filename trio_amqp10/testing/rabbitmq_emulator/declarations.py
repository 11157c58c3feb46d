"""Declare queues and exchanges as clients of RabbitMQ 4 ask for them.

Knows names and arguments; what a declaration then does is the broker's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.container.broker.broker_queue import BrokerQueue
from trio_amqp10.container.broker.faults import LockedError

from .http_faults import FaultError, other_properties

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.container.broker.topology import Topology
    from trio_amqp10.container.nodes.node import Peer

__all__ = ["declare_exchange", "declare_queue"]


def declare_queue(
    broker: Topology,
    name: str,
    arguments: Mapping[str, Any],
    *,
    durable: bool = True,
    auto_delete: bool = False,
    exclusive: bool = False,
    peer: Peer | None = None,
) -> tuple[BrokerQueue, bool]:
    """See ``Topology.declare_queue``; names are checked more strictly.

    Raises:
        FaultError: the name is not possible, or an argument is not offered.
        RefusedError: the broker refuses it.
    """
    _check_name("queue", name)
    try:
        queue, made = broker.declare_queue(
            name, arguments, durable=durable, auto_delete=auto_delete, exclusive=exclusive, peer=peer
        )
    except LockedError as locked:
        if exclusive:
            raise
        raise FaultError(409, other_properties("queue", name)) from locked
    assert isinstance(queue, BrokerQueue)  # a program cannot add others at these addresses
    return queue, made


def declare_exchange(
    broker: Topology,
    name: str,
    kind: str = "direct",
    *,
    durable: bool = True,
    auto_delete: bool = False,
    internal: bool = False,
    arguments: Mapping[str, Any] | None = None,
) -> None:
    """See ``Topology.declare_exchange``; names are checked more strictly.

    Raises:
        FaultError: the name is not possible.
        RefusedError: the broker refuses it.
    """
    _check_name("exchange", name)
    broker.declare_exchange(
        name, kind, durable=durable, auto_delete=auto_delete, internal=internal, arguments=arguments
    )


def _check_name(kind: str, name: str) -> None:
    if not name:
        raise FaultError(403 if kind == "exchange" else 400, f"no {kind} can be declared without a name")
    if "\n" in name or "\r" in name:
        raise FaultError(400, f"bad name {name!r}: line feeds and carriage returns are not possible")
