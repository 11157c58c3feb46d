"""``amqp10 migrate``: plan the migration, define queues, and copy messages.

Knows the two brokers (ends), plans and the copying of queues.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import trio

import trio_amqp10 as amqp
from trio_amqp10.container.management.definitions import from_rabbitmq
from trio_amqp10.container.management.errors import ManagementError
from trio_amqp10.net.urls import parse_url
from trio_amqp10.tools.cli.command_runner import CommandError, Interrupts, say, unhurried, write_out
from trio_amqp10.tools.cli.dial_management import management_url
from trio_amqp10.tools.cli.dial_options import DialOptions
from trio_amqp10.tools.cli.manage import counted
from trio_amqp10.tools.cli.progress import Progress

from .container_end import ContainerEnd
from .ends import open_end
from .from_container import OutOfContainer
from .from_rabbitmq import OutOfRabbitMQ
from .plan import Plan, plan_for_container, plan_for_rabbitmq, plan_from_rabbitmq
from .rabbitmq_end import RabbitMQEnd
from .switching import switch

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from .ends import End
    from .plan import QueueCopy
    from .staging import Staging

_GRACE: Final = 10.0
"""Seconds that a batch has to end after an interrupt."""
_LOSSES: Final = (
    amqp.LinkDetachedError,
    amqp.SessionEndedError,
    amqp.ConnectionClosedError,
    amqp.TransactionError,
    trio.TooSlowError,
)


@dataclass(frozen=True, kw_only=True)
class MigrateOptions:
    """The options of ``amqp10 migrate``.

    Attributes:
        source, target: the URLs of the two brokers.
        queues: the queues to migrate; all if empty.
        definitions: a file with definitions of RabbitMQ, if that is the source.
        virtual_host: of that file.
        dry_run: print the plan only.
        accept_differences: go on although something has no counterpart.
        redirect: send the producers and consumers of the source to the target.
        source_dial, target_dial: the options for dialling.
    """

    source: str
    target: str
    queues: tuple[str, ...] = ()
    definitions: str | None = None
    virtual_host: str | None = None
    dry_run: bool = False
    accept_differences: bool = False
    redirect: bool = False
    source_dial: DialOptions = field(default_factory=DialOptions)
    target_dial: DialOptions = field(default_factory=DialOptions)


async def migrate(options: MigrateOptions, interrupts: Interrupts) -> None:
    """Move definitions and messages from one broker to another.

    Raises:
        CommandError: something has no counterpart, and nothing was done; or some messages were not moved, and the command must run again.
    """
    with _explained():
        async with (
            open_end(options.source, options.source_dial) as source,
            open_end(options.target, options.target_dial) as target,
        ):
            # Virtual hosts, and servers behind one proxy, have one address; but each has an id.
            if source.connection.remote.container_id == target.connection.remote.container_id:
                await _refuse_same_broker(options.source, options.target)
            await _between(source, target, options, interrupts)


async def _refuse_same_broker(source: str, target: str) -> None:
    """Check that URLs lead to two brokers, whatever names their hosts have.

    Raises:
        CommandError: both name the same broker and virtual host.
    """
    first, second = await _sockets(source), await _sockets(target)
    if first & second:
        raise CommandError(
            f"FROM {_place(source)} and TO {_place(target)} are the same broker: give the URLs of two brokers",
            2,
        )


async def _sockets(url: str) -> set[tuple[Any, ...]]:
    """Return the addresses of a broker with its port and virtual host."""
    where, host = management_url(url)
    place = parse_url(where)
    if place.scheme == "amqp+unix":
        return {(place.path, host)}
    found = await trio.socket.getaddrinfo(place.host, place.port, type=trio.socket.SOCK_STREAM)
    return {(*each[4][:2], place.path, host) for each in found}


@contextmanager
def _explained() -> Generator[None]:
    """Raise ``CommandError`` for the loss of a connection."""
    try:
        yield
    except _LOSSES as lost:
        raise CommandError(
            f"{lost}: no message is lost or doubled; run the command again, which completes it"
        ) from None


async def _between(source: End, target: End, options: MigrateOptions, interrupts: Interrupts) -> None:
    plan = await _make_plan(source, target, options)
    if options.dry_run:
        lines = plan.lines() + [f"conflict: {each}" for each in await target.conflicts(plan.definitions)]
        await write_out("".join(f"{line}\n" for line in lines).encode())
        return
    if plan.differences and not options.accept_differences:
        for each in plan.differences:
            say(f"amqp10: {each}")
        raise CommandError(
            f"nothing was done, because of {counted(len(plan.differences), 'difference')}: --accept-differences migrates in spite of "
            "that"
        )
    async with source.lock(), target.lock():
        await target.define(plan.definitions, keep=options.accept_differences)
        left = await _copy_all(source, target, plan, options, interrupts)
        for end in (source, target):
            if isinstance(end, ContainerEnd):
                for staging in await end.staged():
                    say(
                        f"amqp10: {end.name}: {staging.address} is left of an interrupted migration of another queue or between other "
                        "brokers: run that one again"
                    )
    if left:
        raise CommandError(
            f"{left} messages stay at the source, because consumers have them or they are delayed: run the command again later"
        )


async def _make_plan(source: End, target: End, options: MigrateOptions) -> Plan:
    if options.redirect and not isinstance(source, ContainerEnd):
        raise CommandError(
            f"--redirect: {source.name} is RabbitMQ, which cannot redirect: stop its clients", 2
        )
    if isinstance(source, ContainerEnd):
        if options.definitions is not None:
            raise CommandError("--definitions is for RabbitMQ as the source: a container has its own", 2)
        definitions, queues = await source.definitions(), await source.queues()
        if isinstance(target, RabbitMQEnd):
            return plan_for_rabbitmq(definitions, queues, options.queues)
        topics = await source.topics()
        return plan_for_container(definitions, queues, topics, options.queues)
    if isinstance(target, RabbitMQEnd):
        raise CommandError(
            f"{source.name} and {target.name} are RabbitMQ: expected a container as one of them; use RabbitMQ's shovel",
            2,
        )
    file, names = None, options.queues
    if options.definitions is not None:
        file = await trio.to_thread.run_sync(_read, options.definitions)
        try:
            made, _ = from_rabbitmq(file, options.virtual_host)
        except ManagementError as fault:
            raise CommandError(f"{options.definitions}: {fault}") from None
        names = names or tuple(str(each["name"]) for each in made.get("declared-queues", ()))
    if not names:
        raise CommandError(
            "RabbitMQ does not list its queues over AMQP 1.0: give --queue NAME, or --definitions FILE of rabbitmqctl",
            2,
        )
    found = {name: await source.queue(name) for name in names}
    absent = [name for name, queue in found.items() if queue is None]
    if absent:
        raise CommandError(f"no queue {absent[0]!r} at {source.name}")
    return plan_from_rabbitmq(
        [each for each in found.values() if each is not None], file, options.virtual_host
    )


def _read(file: str) -> dict[str, Any]:
    try:
        found = json.loads(Path(file).read_text("utf-8"))
    except ValueError as fault:
        raise CommandError(f"{file}: no definitions of RabbitMQ, because it is not JSON: {fault}") from None
    if not isinstance(found, dict):
        raise CommandError(f"{file}: expected definitions of RabbitMQ, an object of JSON")
    return cast("dict[str, Any]", found)


async def _copy_all(
    source: End, target: End, plan: Plan, options: MigrateOptions, interrupts: Interrupts
) -> int:
    """Move the messages of all queues; return how many are not ready."""
    left = 0
    with (
        Progress("migrating", sum(each.ready for each in plan.queues)) as progress,
        interrupts.here() as scope,
    ):
        container = source if isinstance(source, ContainerEnd) else target
        assert isinstance(container, ContainerEnd)
        staged = await container.staged()
        for queue in plan.queues:
            moved = _Moved(queue.name)
            try:
                copying = _copying(source, target, queue)
                await _copy(copying, staged, moved, progress, most=2 * queue.ready)
                if options.redirect and isinstance(copying, OutOfContainer):
                    assert isinstance(source, ContainerEnd)
                    url = f"{_place(options.target)}/{target.node_address(queue.name)}"
                    copy = partial(_copy, copying, (), moved, progress)
                    await switch(source, queue.name, url, copying, copy)
            finally:
                with trio.CancelScope(shield=True):
                    await write_out(f"moved {moved.count} of {queue.name}\n".encode())
            figures = await source.figures(queue.name)
            left += 0 if figures is None else figures.busy
    if scope.cancelled_caught:
        raise CommandError("interrupted; no message is lost: run the command again to move the others", 130)
    return left


def _place(url: str) -> str:
    """Return a URL without credentials and address, with its port."""
    where, _ = management_url(url)
    found = parse_url(where)
    return str(replace(found, username=None, password=None, address=None))


@dataclass
class _Moved:
    """How many messages of a queue were moved."""

    name: str
    count: int = 0


def _copying(source: End, target: End, queue: QueueCopy) -> OutOfContainer | OutOfRabbitMQ:
    if isinstance(source, ContainerEnd):
        return OutOfContainer(source, target, queue.name, queue.name)
    assert isinstance(target, ContainerEnd)
    return OutOfRabbitMQ(source, target, queue.name)


async def _copy(
    copying: OutOfContainer | OutOfRabbitMQ,
    staged: Iterable[Staging],
    moved: _Moved,
    progress: Progress,
    most: int | None = None,
) -> None:
    """Complete what an earlier run began in staging queues, then move what is ready.

    With ``most``, end after about so many messages: producers may send as fast as messages are copied.

    An interrupt waits for one batch.
    """
    more = True
    copied = 0

    async def recover() -> None:
        with _explained():
            _count(await copying.recover(staged), moved, progress)

    async def step() -> None:
        nonlocal more, copied
        with _explained():
            batch = await copying.step()
        copied += batch.moved
        more = batch.is_full and (most is None or copied < most)
        _count(batch.moved, moved, progress)

    await unhurried(recover, _GRACE)
    while more:
        await unhurried(step, _GRACE)
        await trio.lowlevel.checkpoint()


def _count(messages: int, moved: _Moved, progress: Progress) -> None:
    moved.count += messages
    progress.advance(messages)
