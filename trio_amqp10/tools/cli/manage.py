"""Show and change what is in a container, by its management.

Knows the replies of management, and how their entities are shown.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from trio_amqp10.amqp10.wire.json_values import to_json
from trio_amqp10.broker.exchanges.addresses import TEMPORARY
from trio_amqp10.container.management.status_values import to_values
from trio_amqp10.core.errors import RemoteProtocolError

from .command_runner import CommandError, Interrupts, say, write_out
from .dial_options import DialOptions
from .message_text import body_octets, message_json
from .open_management import list_entities, open_management
from .screen import Screen, number, table

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from trio_amqp10.container.management.remote_management import RemoteManagement
    from trio_amqp10.container.management.status import ExchangeStatus

    from .open_management import Entity

_PAGE: Final = 500
_PAGE_OCTETS: Final = 4 * 1024 * 1024
"""Messages, and their octets, that are in memory together in a browse."""

_COLUMNS: Final = {
    "queue": ("name", "depth", "ready", "unacked", "consumers", "arrived", "acknowledged", "oldest"),
    "topic": ("name", "subscriptions", "messages", "arrived", "senders", "receivers"),
    "exchange": ("name", "type", "durable", "auto-delete", "internal", "bindings", "arrived", "unroutable"),
    "binding": ("source", "destination-kind", "destination", "key", "arguments"),
    "connection": (
        *("identity", "name", "user", "protocol", "state"),
        *("senders", "receivers", "messages-in", "messages-out", "octets-in", "octets-out"),
    ),
    "user": ("name", "connections", "links", "unsettled"),
}
"""The columns of each table."""


@dataclass(frozen=True, kw_only=True)
class Show:
    """How a command shows entities.

    Attributes:
        url: the container.
        json: one JSON object for each entity.
        format: a line for each, with ``{NAME}`` for its attributes; None for a table.
        dial: the options for dialling.
    """

    url: str
    json: bool = False
    format: str | None = None
    dial: DialOptions = field(default_factory=DialOptions)


async def list_all(show: Show, kind: str, interrupts: Interrupts) -> None:  # noqa: ARG001
    """Show all entities of a type, but for queues of clients for their replies."""
    async with open_management(show.url, show.dial) as management:
        found = [
            each for each in await list_entities(management, kind) if not each["name"].startswith(TEMPORARY)
        ]
    await _write(show, kind, found, whole=False)


async def show_one(show: Show, kind: str, name: str, interrupts: Interrupts) -> None:  # noqa: ARG001
    """Show one entity with all its attributes."""
    async with open_management(show.url, show.dial) as management:
        found = await management.entity(kind, name)
    await _write(show, kind, [found], whole=True)


async def list_exchanges(show: Show, interrupts: Interrupts) -> None:  # noqa: ARG001
    """Show all exchanges."""
    async with open_management(show.url, show.dial) as management:
        found = [_of_exchange(each) async for each in management.exchanges()]
    await _write(show, "exchange", found, whole=False)


async def show_exchange(show: Show, name: str, interrupts: Interrupts) -> None:  # noqa: ARG001
    """Show one exchange, by its name in AMQP 0-9-1."""
    async with open_management(show.url, show.dial) as management:
        found = await management.exchange(name)
    await _write(show, "exchange", [_of_exchange(found)], whole=True)


def _of_exchange(exchange: ExchangeStatus) -> Entity:
    """Return the fields of an exchange: as attributes it has only those of a node."""
    shown = {name: value for name, value in to_values(exchange).items() if name not in {"status", "figures"}}
    return {**shown, "arguments": dict(exchange.arguments)}


async def _write(show: Show, kind: str, entities: Sequence[Entity], *, whole: bool) -> None:
    if show.json or show.format is not None:
        lines = [_line(show, each) for each in entities]
        await write_out("".join(f"{line}\n" for line in lines).encode())
        return
    if whole:
        rows = [(name, _cell(value)) for each in entities for name, value in each.items()]
        drawn = table("", ("", ""), rows)
    else:
        columns = _COLUMNS[kind]
        cells = [tuple(_cell(each.get(column)) for column in columns) for each in entities]
        drawn = table("", columns, cells)
    await Screen(once=True, json=False).show(bytes, lambda: drawn)


def _line(show: Show, entity: Entity) -> str:
    if show.format is None:
        return json.dumps(to_json(entity))
    try:
        return show.format.format_map({name: _cell(value, plain=True) for name, value in entity.items()})
    except KeyError as fault:
        raise CommandError(
            f"--format {show.format!r}: {fault} is no attribute; there are {', '.join(sorted(entity))}", 2
        ) from None
    except (ValueError, IndexError, AttributeError, TypeError) as fault:
        raise CommandError(
            f"--format {show.format!r}: {fault}; expected {{NAME}} for an attribute, and {{{{ for a brace", 2
        ) from None


def _cell(value: Any, *, plain: bool = False) -> Any:
    """Return a value as text; numbers stay numbers for a format."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return value if plain else number(round(value, 1) if isinstance(value, float) else value)
    return str(value) if isinstance(value, str) else json.dumps(to_json(value))


async def operate(
    url: str,
    dial: DialOptions,
    operation: Callable[[RemoteManagement], Awaitable[object]],
    interrupts: Interrupts,  # noqa: ARG001
) -> None:
    """Do one operation."""
    async with open_management(url, dial) as management:
        await operation(management)


async def purge(url: str, dial: DialOptions, name: str, interrupts: Interrupts) -> None:  # noqa: ARG001
    """Purge a queue, and print how many messages it had."""
    async with open_management(url, dial, patience=None) as management:
        count = await management.purge(name)
    await write_out(f"purged {count}\n".encode())


@dataclass(frozen=True, kw_only=True)
class BrowseOptions:
    """The options of ``amqp10 queue browse``."""

    url: str
    name: str
    count: int | None = None
    selector: str | None = None
    json: bool = False
    dial: DialOptions = field(default_factory=DialOptions)


async def browse(options: BrowseOptions, interrupts: Interrupts) -> None:  # noqa: ARG001
    """Print the ready messages of a queue, at most ``count``, and leave them there.

    Raises:
        CommandError: there are fewer than ``count`` messages, or some could not be decoded.
    """
    render = message_json if options.json else body_octets
    most = math.inf if options.count is None else options.count
    seen = undecodable = 0
    async with open_management(options.url, options.dial) as management:
        while seen < most:
            step = int(min(_PAGE, most - seen))
            found = await management.browse(
                options.name, step, offset=seen, octets=_PAGE_OCTETS, filter=options.selector
            )
            if not found:
                break
            lines: list[bytes] = []
            for each in found:
                try:
                    lines.append(render(each.message))
                except RemoteProtocolError as failure:
                    undecodable += 1
                    say(
                        f"amqp10: message {each.place} of {each.queue} could not be decoded: {failure.description}"
                    )
            if lines:
                await write_out(b"\n".join(lines) + b"\n")
            seen += len(found)
    if undecodable:
        raise CommandError(f"{undecodable} of the messages could not be decoded")
    if options.count is not None and seen < options.count:
        raise CommandError(f"printed {seen} of {options.count}: there are no more messages")


def connection_number(identity: str) -> int:
    """Return the number of the connection of this identity.

    Raises:
        CommandError: the text is not the identity of a connection.
    """
    if not identity.isdecimal() or len(identity) >= 20:
        raise CommandError(
            f'no connection {identity!r}: give an identity that "amqp10 connection list" shows'
        )
    return int(identity)


# -- definitions ----------------------------------------------------------------------------


async def export_definitions(url: str, dial: DialOptions, file: str | None, interrupts: Interrupts) -> None:  # noqa: ARG001
    """Write the definitions of a container to a file, or to stdout."""
    async with open_management(url, dial) as management:
        found = await management.export_definitions()
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    if file is None or file == "-":
        await write_out(text.encode())
    else:
        await trio.to_thread.run_sync(Path(file).write_text, text, "utf-8")


async def import_definitions(
    url: str,
    dial: DialOptions,
    file: str | None,
    virtual_host: str | None,
    interrupts: Interrupts,  # noqa: ARG001
) -> None:
    """Make the definitions of a file, or of stdin; report on stderr what was left out.

    Raises:
        CommandError: something was left out, or the file has no definitions.
    """
    text = await trio.to_thread.run_sync(_read, file)
    name = "stdin" if file in (None, "-") else file
    expected = 'expected an object of JSON, as "amqp10 definitions export" writes'
    try:
        given: Any = json.loads(text)
    except json.JSONDecodeError as fault:
        raise CommandError(
            f"{name}: line {fault.lineno}, column {fault.colno}: {fault.msg}; {expected}"
        ) from None
    if not isinstance(given, dict):
        raise CommandError(f"{name}: {text.strip()[:60]!r}: {expected}")
    async with open_management(url, dial, patience=None) as management:
        found = await management.import_definitions(cast("dict[str, Any]", given), virtual_host=virtual_host)
    made = ", ".join(counted(count, kind.removesuffix("s")) for kind, count in found.made.items())
    await write_out(f"imported {made or 'nothing'}\n".encode())
    for each in found.left_out:
        say(f"amqp10: left out {each.name!r} of {each.kind}: {each.reason}")
    if found.left_out:
        raise CommandError(f"{counted(len(found.left_out), 'definition')} left out, for the reasons above")


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, as in ``1 queue`` and ``2 queues``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _read(file: str | None) -> str:
    try:
        return sys.stdin.read() if file in (None, "-") else Path(str(file)).read_text("utf-8")
    except UnicodeDecodeError as fault:
        raise CommandError(f"{file}: no JSON, because it is not UTF-8: {fault}") from None
