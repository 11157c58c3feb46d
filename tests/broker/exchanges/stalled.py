"""Exchanges whose queues are full."""

from __future__ import annotations

from typing import Any

from trio_amqp10.container import Container


def fanned(store: Any, *queues: str, **options: Any) -> Container:
    """A container whose amq.fanout leads to these durable queues."""
    container = Container("c", strict=True, store=store)
    broker = container.add_broker()
    for name in queues:
        broker.declare_queue(name, **options)
        broker.bind("amq.fanout", "queue", name)
    return container
