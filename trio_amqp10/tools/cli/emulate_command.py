"""The commands ``amqp10 emulate service-bus``, ``event-hubs`` and ``rabbitmq``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from .lazy_commands import run
from .option_types import FILE, Whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from .emulate import Emulated


def _topic(value: str) -> tuple[str, tuple[str, ...]]:
    name, *subscriptions = value.split(",")
    if not name or not all(subscriptions):
        raise click.BadParameter(f"{value!r}: expected NAME or NAME,SUBSCRIPTION,...")
    return name, tuple(subscriptions)


def _hub(value: str) -> tuple[str, int]:
    name, found, count = value.rpartition("=")
    if not found:
        return value, 2
    if not name or not count.isdecimal() or not 1 <= int(count) <= 1024:
        raise click.BadParameter(f"{value!r}: expected NAME or NAME=PARTITIONS, with 1 to 1024 partitions")
    return name, int(count)


def _refuse_listen(_context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.BadParameter(f"{value!r}: an emulator listens at --host and --port: use these options")


def _listening(command: Callable[..., Any]) -> Callable[..., Any]:
    command = click.option(
        "--listen", metavar="URL", hidden=True, expose_value=False, callback=_refuse_listen
    )(command)
    command = click.option(
        "--host",
        metavar="HOST",
        default="127.0.0.1",
        show_default=True,
        help="Listen at this address. Everyone who reaches it can use the emulator, whose key or password is known.",
    )(command)
    return click.option(
        "--port",
        type=Whole(0, 65535),
        default=5672,
        show_default=True,
        help="Listen at this port; 0 chooses a free port.",
    )(command)


def _run(make: Callable[[], Emulated], host: str, port: int) -> None:
    from .emulate import serve_emulator

    run(partial(serve_emulator, make, host, port))


@click.group("emulate")
def emulate_command() -> None:
    """Run an emulator of another broker, for tests and development.

    It keeps everything in memory. It prints the connection string, or the URL, when it listens, and ends on SIGTERM or Ctrl-C with 0.
    """


@emulate_command.command("service-bus")
@click.option(
    "--config",
    metavar="FILE",
    type=FILE,
    help="Add the entities in this Config.json of Microsoft's emulator.",
)
@click.option("--queue", "queues", metavar="NAME", multiple=True, help="Add a queue. May be repeated.")
@click.option(
    "--topic",
    "topics",
    metavar="NAME[,SUBSCRIPTION...]",
    type=_topic,
    multiple=True,
    help="Add a topic with these subscriptions. May be repeated.",
)
@_listening
def service_bus_command(
    config: str | None, queues: tuple[str, ...], topics: tuple[Any, ...], host: str, port: int
) -> None:
    """Emulate Azure Service Bus, and print the connection string.

    Example: amqp10 emulate service-bus --queue orders --topic prices,all,oil
    """
    from .emulate import service_bus

    _run(partial(service_bus, config, queues, topics), host, port)


@emulate_command.command("event-hubs")
@click.option(
    "--config", metavar="FILE", type=FILE, help="Add the hubs in this Config.json of Microsoft's emulator."
)
@click.option(
    "--hub",
    "hubs",
    metavar="NAME[=PARTITIONS]",
    type=_hub,
    multiple=True,
    help="Add an event hub. May be repeated.",
)
@_listening
def event_hubs_command(config: str | None, hubs: tuple[Any, ...], host: str, port: int) -> None:
    """Emulate Azure Event Hubs, and print the connection string.

    Example: amqp10 emulate event-hubs --hub clicks=4
    """
    from .emulate import event_hubs

    _run(partial(event_hubs, config, hubs), host, port)


@emulate_command.command("rabbitmq")
@click.option(
    "--config", metavar="FILE", type=FILE, help="Declare what this definitions.json of RabbitMQ has."
)
@click.option("--queue", "queues", metavar="NAME", multiple=True, help="Declare a queue. May be repeated.")
@_listening
def rabbitmq_command(config: str | None, queues: tuple[str, ...], host: str, port: int) -> None:
    """Emulate RabbitMQ 4 for clients of AMQP 1.0 and 0-9-1, and print the URL.

    Example: amqp10 emulate rabbitmq --queue orders
    """
    from .emulate import rabbitmq

    _run(partial(rabbitmq, config, queues), host, port)
