"""The broker of a container for clients of AMQP 0-9-1 and its kin.

Knows containers by their interface; knows no dialect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .exchanges.topology import Topology
    from .peer_interfaces import ServingContainer


def broker_for_clients(container: ServingContainer, *, by_default: bool) -> Topology:
    """Return the broker of a container; add one if it has none.

    Clients may declare new queues and exchanges, unless the container is strict and the program did not ask for their dialect.

    Args:
        container: the container that serves the clients.
        by_default: the dialect was not asked for.
    """
    broker = container.broker
    if broker is None:
        broker = container.add_broker()
        broker.declares_for_clients = not (by_default and container.strict)
    elif not by_default:
        broker.declares_for_clients = True
    return broker
