"""A container as one end of a migration.

Knows requests to ``$management`` and links; knows no plan.
"""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import trio

import trio_amqp10 as amqp
from trio_amqp10.container.management.errors import OperationRefusedError
from trio_amqp10.tools.cli.command_runner import CommandError, say
from trio_amqp10.tools.cli.open_management import list_entities, refusal_text

from .differences import queue_conflict
from .figures import Figures
from .lock import take_lock
from .marks import marks_of
from .staging import LOCK, PREFIX, Staging, find_staging, looks_address

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import AsyncGenerator

    from trio_amqp10.container.management.remote_management import RemoteManagement
    from trio_amqp10.tools.cli.open_management import Entity

_PATIENCE: Final = 10.0
"""Seconds to wait for the connection of an earlier run to be over."""
_PAUSE: Final = 0.1
_KEPT: Final = ("dead_letter", "max_priority")
"""The rules that a staging queue has from its queue.

Where messages go that expire, and the order of the others.
"""


class ContainerEnd:
    """A container.

    Args:
        connection: a connection to it.
        management: its management, over that connection.
        name: its place, for people.
    """

    kind = "container"

    def __init__(self, connection: amqp.Connection, management: RemoteManagement, name: str) -> None:
        self.connection = connection
        self.management = management
        self.name = name

    def node_address(self, queue: str) -> str:
        """Return the address to which links to a queue attach."""
        return queue

    @asynccontextmanager
    async def lock(self) -> AsyncGenerator[None, None]:
        """Be the only run of the command at this container.

        Wait for the connection of an earlier run to end.

        Raises:
            CommandError: another run is there.

        Cancelled: the lock is free.
        """
        with suppress(OperationRefusedError):  # An earlier run has left it there.
            await self.management.create_queue(LOCK, exclusive=True)
        async with AsyncExitStack() as stack:
            await take_lock(
                self.name,
                lambda: stack.enter_async_context(self.connection.open_receiver(LOCK, credit=0)),
                amqp.LinkRefusedError,
            )
            try:
                yield
            finally:
                await stack.aclose()
                with suppress(amqp.AmqpError, trio.TooSlowError):  # It does no harm.
                    await self.management.delete(LOCK, kind="queue", if_unused=True)

    # -- queues -----------------------------------------------------------------------------

    async def queues(self) -> list[Entity]:
        """Return all queues but those of this command.

        Cancelled: nothing has changed.
        """
        found = await list_entities(self.management, "queue")
        return [each for each in found if not each["name"].startswith(PREFIX)]

    async def topics(self) -> list[Entity]:
        """Return all topics.

        Cancelled: nothing has changed.
        """
        return await list_entities(self.management, "topic")

    async def staged(self) -> list[Staging]:
        """Return the staging queues that earlier runs have left.

        Cancelled: nothing has changed.
        """
        found = [find_staging(each["name"]) for each in await list_entities(self.management, "queue")]
        return [each for each in found if each is not None]

    async def figures(self, queue: str) -> Figures | None:
        """Return the figures of a queue; None if it does not exist.

        Cancelled: nothing has changed.
        """
        try:
            found = await self.management.queue(queue)
        except OperationRefusedError as fault:
            if fault.reason == "not-found":
                return None
            raise
        return Figures(
            ready=found.ready,
            busy=found.depth - found.ready,
            octets=found.octets,
            consumers=found.consumers,
        )

    async def definitions(self) -> dict[str, Any]:
        """Return all definitions, but for those of this command.

        Cancelled: nothing has changed.
        """
        found = await self.management.export_definitions()
        found["queues"] = [each for each in found["queues"] if not each["name"].startswith(PREFIX)]
        return found

    async def define(self, definitions: dict[str, Any], *, keep: bool) -> None:
        """Make what the definitions contain.

        Args:
            definitions: in the form of ``amqp10 definitions export``.
            keep: whether a declared queue that exists with other rules keeps these, and is reported on stderr.

        Raises:
            CommandError: the container leaves something else out.

        Cancelled: some of it may be made.
        """
        done = await self.management.import_definitions({"trio-amqp10": 1, **definitions})
        left: list[str] = []
        for each in done.left_out:
            known = each.kind == "declared-queues" and await self.figures(each.name) is not None
            if known and keep:
                say(
                    f"amqp10: queue {each.name}: it exists at {self.name}, and keeps its rules: {each.reason}"
                )
            else:
                left.append(f"{each.name!r} of {each.kind} ({each.reason})")
        if left:
            raise CommandError(
                f"{self.name} refuses definitions, so no message was moved: {'; '.join(left)}; --accept-differences keeps a queue "
                "that exists with other rules"
            )

    async def conflicts(self, definitions: dict[str, Any]) -> list[str]:
        """Return a line for each of these queues that exists with other rules.

        Cancelled: nothing has changed.
        """
        there = await self.definitions()
        known = {
            each["name"]: each.get("rules", each.get("arguments", {}))
            for kind in ("queues", "declared-queues")
            for each in there[kind]
        }
        return [
            queue_conflict(each["name"], self.name, known[each["name"]])
            for kind in ("queues", "declared-queues")
            for each in definitions.get(kind, ())
            if each["name"] in known and (each not in there[kind])
        ]

    async def find_marked(self, queue: str, batch: str) -> Counter[str]:
        """Return which messages of a batch a queue has, by their digests.

        Cancelled: nothing has changed.
        """
        return marks_of((each.annotations for each in await self.look_at(queue)), batch)

    async def until_stable(self, queue: str) -> Figures | None:
        """Return the figures of a queue; None if it does not exist.

        What the connection of an earlier run had sent has its effect already.

        Cancelled: nothing has changed.
        """
        return await self.figures(queue)

    async def return_limit(self, queue: str) -> int | None:  # noqa: ARG002
        """Return None: to look at a message is no delivery here."""
        return None

    async def look_at(self, queue: str) -> list[amqp.Message]:
        """Return the ready messages of a queue, without taking them.

        Cancelled: nothing has changed.
        """
        return [each.message for each in await self.management.browse(queue, sys.maxsize)]

    async def hold(self, queue: str, seconds: int) -> None:
        """Let a queue take and give no messages for so many seconds; 0 ends it.

        Cancelled: it may be held.
        """
        await self.management.hold(queue, seconds)

    async def redirect(self, queue: str, url: str) -> None:
        """Send all links of a queue to this URL, and new ones too.

        Cancelled: they may be.
        """
        await self.management.redirect(queue, url)

    # -- staging ----------------------------------------------------------------------------

    async def make_staging(self, staging: Staging) -> None:
        """Create a staging queue.

        Cancelled: it may exist.
        """
        try:
            queue = await self.management.queue(staging.queue)
        except OperationRefusedError as fault:
            raise CommandError(f"{self.name}: {refusal_text(fault)}") from None
        kept = {rule: getattr(queue.rules, rule) for rule in _KEPT}
        rules = {rule: value for rule, value in kept.items() if value is not None}
        await self.management.create_queue(staging.address, durable=queue.durable, **rules)

    async def move(self, source: str, target: str, count: int | None = None) -> int:
        """Move ready messages, each exactly once; return how many.

        Cancelled: each is at one of the two.
        """
        return await self.management.move(source, target, count)

    async def delete_staging(self, staging: Staging) -> None:
        """Delete an empty staging queue.

        Raises:
            OperationRefusedError: it is not empty.

        Cancelled: it may be deleted.
        """
        await self.management.delete(staging.address, kind="queue", if_empty=True)

    async def drop_staging(self, staging: Staging) -> None:
        """Delete a staging queue with its messages.

        Cancelled: it may be deleted.
        """
        await self.management.delete(staging.address, kind="queue")

    async def looks(self, queue: str) -> int:
        """Return how often runs have looked at messages that are at the target.

        Cancelled: nothing has changed.
        """
        figures = await self.figures(looks_address(queue))
        return 0 if figures is None else figures.ready

    async def note_look(self, staging: Staging) -> None:
        """Count one look more, for the batch in a staging queue.

        Cancelled: it may be counted.
        """
        address = looks_address(staging.queue)
        if await self.figures(address) is None:
            status = await self.management.queue(staging.address)
            await self.management.create_queue(address, durable=status.durable)
        async with self.connection.open_sender(address) as sender:
            await sender.send(amqp.Message(durable=True))

    async def forget_looks(self, queue: str) -> None:
        """Begin to count again: none of the messages is at the target any more.

        Cancelled: they may be forgotten.
        """
        if await self.looks(queue):
            await self.management.delete(looks_address(queue), kind="queue")

    async def until_idle(self, queue: str) -> bool:
        """Wait until no message of a queue is with a consumer, which an earlier run was.

        Returns:
            Whether the queue exists.

        Raises:
            CommandError: some are.

        Cancelled: nothing has changed.
        """
        end = trio.current_time() + _PATIENCE
        while (found := await self.figures(queue)) is not None and found.busy:
            if trio.current_time() > end:
                raise CommandError(
                    f"{self.name}: {found.busy} messages of {queue!r} are with a consumer: end it, and run the command again"
                )
            await trio.sleep(_PAUSE)
        return found is not None

    def __repr__(self) -> str:
        return f"<ContainerEnd {self.name}>"
