"""Peers that tests of the transport run against, as URLs of kombu."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import kombu

import trio_amqp10.kombu  # noqa: F401 - the transport
from trio_amqp10 import Container
from trio_amqp10.testing import rabbitmq, running_container, service_bus
from trio_amqp10.testing.azure_emulator import EntityOptions, ServiceBus

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

SECONDS = 10


@contextmanager
def container_url(*, managed: bool = True, **options: Any) -> Generator[str]:
    """A container in which clients may add topics."""
    container = Container("peer", strict=options.pop("strict", False))
    if managed:
        container.add_management()
    with running_container(container=container, **options) as url:
        yield url.replace("amqp://", "amqp10://")


@contextmanager
def emulator_url() -> Generator[str]:
    """The emulator of RabbitMQ."""
    with rabbitmq() as url:
        yield url.replace("amqp://", "amqp10://")


@contextmanager
def service_bus_url(*queues: str) -> Generator[str]:
    """The emulator of Service Bus."""
    bus = ServiceBus()
    for queue in queues:
        bus.add_queue(
            queue, EntityOptions(lock_duration=5)
        )  # a message of a killed worker is locked for so long
    with service_bus(bus=bus) as connection_string:
        parts = dict(part.split("=", 1) for part in connection_string.split(";") if part)
        host = parts["Endpoint"].removeprefix("sb://").strip("/")
        yield f"amqp10://{parts['SharedAccessKeyName']}:{parts['SharedAccessKey']}@{host}"


def task_queue(name: str = "tasks") -> kombu.Queue:
    """A durable queue, bound to a direct exchange of its name."""
    return kombu.Queue(name, kombu.Exchange(name, "direct"), routing_key=name)


def drained(connection: kombu.Connection, condition: Callable[[], object]) -> None:
    """Drain events until ``condition``."""
    while not condition():
        connection.drain_events(timeout=SECONDS)
