"""``amqp10 emulate``: serve an emulator to programs in any language."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.core.errors import LocalProtocolError

from .command_runner import CommandError, Interrupts, log_to_stderr, say, taken_port, write_out

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    import trio_amqp10 as amqp


class Emulated:
    """An emulator, ready to be served.

    Args:
        container: its container.
        text: returns the line to print, from the host and the port of the listener.
        options: the options for ``container.serve``.
    """

    def __init__(
        self,
        container: amqp.Container,
        text: Callable[[str, int], str],
        options: dict[str, Any] | None = None,
    ) -> None:
        self.container = container
        self.text = text
        self.options: dict[str, Any] = options or {}


def service_bus(
    config: str | None, queues: Sequence[str], topics: Sequence[tuple[str, Sequence[str]]]
) -> Emulated:
    """Return an emulator of Service Bus with these entities.

    Args:
        config: a ``Config.json`` of Microsoft's emulator, or None.
        queues: the names of further queues.
        topics: further topics, with the names of their subscriptions.

    Raises:
        CommandError: the file is not valid, or a name is taken.
        OSError: the file cannot be read.
    """
    from trio_amqp10.testing.azure_emulator import ServiceBus

    from .emulator_config import read_service_bus

    bus = ServiceBus()
    if config is not None:
        read_service_bus(config, bus)
    with _names():
        for queue in queues:
            bus.add_queue(queue)
        for topic, subscriptions in topics:
            bus.add_topic(topic)
            for subscription in subscriptions:
                bus.add_subscription(topic, subscription)
    return Emulated(bus.container, partial(_azure, bus.connection_string))


def event_hubs(config: str | None, hubs: Sequence[tuple[str, int]]) -> Emulated:
    """Return an emulator of Event Hubs with these hubs; errors as ``service_bus``.

    Args:
        config: a ``Config.json`` of Microsoft's emulator, or None.
        hubs: further hubs, with their numbers of partitions.
    """
    from trio_amqp10.testing.azure_emulator import EventHubs, HubOptions

    from .emulator_config import read_event_hubs

    namespace = EventHubs()
    if config is not None:
        read_event_hubs(config, namespace)
    with _names():
        for name, partitions in hubs:
            namespace.add_hub(name, HubOptions(partition_count=partitions))
    return Emulated(namespace.container, partial(_azure, namespace.connection_string))


def rabbitmq(config: str | None, queues: Sequence[str]) -> Emulated:
    """Return an emulator of RabbitMQ with these queues; errors as ``service_bus``.

    Args:
        config: a ``definitions.json`` of RabbitMQ, or None.
        queues: the names of further queues.
    """
    from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ

    from .emulator_config import read_definitions

    rabbit = RabbitMQ()
    if config is not None:
        left_out = read_definitions(config, rabbit)
        if left_out:
            say(f"amqp10: left out of {config}: {', '.join(left_out)}")
    with _names():
        for queue in queues:
            rabbit.declare_queue(queue)
    return Emulated(
        rabbit.container, lambda host, port: f"amqp://{rabbit.login}@{host}:{port}", rabbit.serve_options
    )


def _azure(connection_string: Callable[[int], str], host: str, port: int) -> str:
    return connection_string(port).replace("127.0.0.1", host)


@contextmanager
def _names() -> Generator[None]:
    """Report an entity that cannot be added."""
    try:
        yield
    except LocalProtocolError as wrong:
        raise CommandError(str(wrong), 2) from None


async def serve_emulator(make: Callable[[], Emulated], host: str, port: int, interrupts: Interrupts) -> None:
    """Serve until a signal; when it listens, print how to connect.

    Raises:
        CommandError: the configuration is not valid.
        OSError: a file cannot be read, or the port is taken.
    """
    emulated = make()
    shown = f"[{host}]" if ":" in host else host
    with log_to_stderr(), taken_port("--port"):
        async with trio.open_nursery() as nursery:
            serve = partial(emulated.container.serve, f"amqp://{shown}:{port}", **emulated.options)
            listeners: list[amqp.Listener] = await nursery.start(serve)
            with interrupts.here():
                reachable = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(shown, shown)
                await write_out(f"{emulated.text(reachable, listeners[0].port)}\n".encode())
                await trio.sleep_forever()
            nursery.cancel_scope.cancel()
