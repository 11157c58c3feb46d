"""Declare queues and exchanges as clients of RabbitMQ 4 do.

Checks names and arguments; the broker makes the declaration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.broker.exchanges.broker_queue import BrokerQueue
from trio_amqp10.broker.exchanges.faults import LockedError

from .http_faults import FaultError, other_properties

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.broker.exchanges.topology import Topology
    from trio_amqp10.broker.nodes.node import Peer


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
    """Declare a queue, as ``Topology.declare_queue``, with stricter names.

    Raises:
        FaultError: the name is not valid, or an argument is not supported.
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
    assert isinstance(queue, BrokerQueue)  # no other nodes can be added at these addresses
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
    """Declare an exchange, as ``Topology.declare_exchange``, with stricter names.

    Raises:
        FaultError: the name is not valid.
        RefusedError: the broker refuses it.
    """
    _check_name("exchange", name)
    broker.declare_exchange(
        name, kind, durable=durable, auto_delete=auto_delete, internal=internal, arguments=arguments
    )


def _check_name(kind: str, name: str) -> None:
    if not name:
        raise FaultError(403 if kind == "exchange" else 400, f"a declared {kind} must have a name")
    if "\n" in name or "\r" in name:
        raise FaultError(400, f"bad name {name!r}: line feeds and carriage returns are not allowed")
