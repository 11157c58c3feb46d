"""RabbitMQ 4 as one end of a migration.

Knows ``/management`` of RabbitMQ and links; knows no plan.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.broker.exchanges.argument_equality import from_json
from trio_amqp10.rabbitmq import ManagementError, queue_address
from trio_amqp10.tools.cli.command_runner import CommandError, say

from .differences import queue_conflict
from .figures import Figures
from .lock import take_lock
from .marks import marks_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import AsyncGenerator

    from trio_amqp10.amqp10.peer.connection import Connection
    from trio_amqp10.amqp10.peer.delivery import Delivery
    from trio_amqp10.rabbitmq import Management, QueueInfo

_LOCK: Final = "amqp10.migrate.lock"
"""An exclusive queue, which exists as long as the connection of a run."""
_PATIENCE: Final = 10.0
"""Seconds to wait for the connection of an earlier run to be over."""
_UNEQUAL: Final = 409
_STABLE: Final = 0.5
"""Seconds without a change, after which an earlier run has no more effect."""
_PAUSE: Final = 0.1
_AT_ONCE: Final = 1000
"""Messages that are received at once to look at them."""


class RabbitMQEnd:
    """RabbitMQ 4.

    Args:
        connection: a connection to it.
        broker: its management, over that connection.
        name: its place, for people.
    """

    kind = "rabbitmq"

    def __init__(self, connection: Connection, broker: Management, name: str) -> None:
        self.connection = connection
        self.broker = broker
        self.name = name

    def node_address(self, queue: str) -> str:
        """Return the address to which links to a queue attach."""
        return queue_address(queue)

    @asynccontextmanager
    async def lock(self) -> AsyncGenerator[None, None]:
        """Be the only run of the command at this broker.

        Wait for the connection of an earlier run to end.

        Raises:
            CommandError: another run is there.

        Cancelled: the lock is free when the connection is closed.
        """
        await take_lock(
            self.name,
            lambda: self.broker.declare_queue(_LOCK, durable=False, exclusive=True),
            ManagementError,
        )
        yield
        await self.broker.delete_queue(_LOCK)

    # -- queues -----------------------------------------------------------------------------

    async def queue(self, name: str) -> QueueInfo | None:
        """Return the description of a queue; None if it does not exist.

        Cancelled: nothing has changed.
        """
        try:
            return await self.broker.queue(name)
        except ManagementError as fault:
            if fault.status == 404:
                return None
            raise

    async def figures(self, queue: str) -> Figures | None:
        """Return the figures of a queue; None if it does not exist.

        Cancelled: nothing has changed.
        """
        found = await self.queue(queue)
        return None if found is None else Figures(ready=found.message_count, consumers=found.consumer_count)

    async def until_stable(self, queue: str) -> Figures | None:
        """Wait until a queue has no consumers and does not change; return its figures.

        What the connection of an earlier run had sent and received has its effect then. After ``_PATIENCE`` seconds the figures are
        returned as they are.

        Cancelled: nothing has changed.
        """
        end = trio.current_time() + _PATIENCE
        last, since = await self.figures(queue), trio.current_time()
        while trio.current_time() < end:
            await trio.sleep(_PAUSE)
            found = await self.figures(queue)
            if found != last:
                last, since = found, trio.current_time()
            elif trio.current_time() - since > _STABLE and (found is None or not found.consumers):
                break
        return last

    async def define(self, definitions: dict[str, Any], *, keep: bool) -> None:
        """Make the declared queues, exchanges and bindings of these definitions.

        Args:
            definitions: in the form of ``amqp10 definitions export``.
            keep: whether a queue that exists with other arguments keeps these, and is reported on stderr.

        Raises:
            CommandError: RabbitMQ refuses something.

        Cancelled: some of it may be made.
        """
        try:
            for each in definitions.get("declared-queues", ()):
                await self._declare(each, keep)
            for each in definitions.get("exchanges", ()):
                await self.broker.declare_exchange(
                    each["name"],
                    each["type"],
                    durable=each["durable"],
                    auto_delete=each["auto-delete"],
                    internal=each["internal"],
                    arguments=from_json(each["arguments"]),
                )
            for each in definitions.get("bindings", ()):
                await self.broker.bind(
                    each["source"],
                    **{each["destination-kind"]: each["destination"]},
                    routing_key=each["key"],
                    arguments=from_json(each["arguments"]),
                )
        except ManagementError as refused:
            raise CommandError(
                f"{self.name} refuses a definition, so no message was moved: {refused}; --accept-differences keeps a queue that exists "
                "with other arguments"
            ) from None

    async def conflicts(self, definitions: dict[str, Any]) -> list[str]:
        """Return a line for each of these queues that exists with other arguments.

        Cancelled: nothing has changed.
        """
        lines: list[str] = []
        for each in definitions.get("declared-queues", ()):
            found = await self.queue(each["name"])
            if found is None:
                continue
            wanted = {"x-queue-type": "classic", **from_json(each["arguments"])}
            has = {"x-queue-type": found.type, **found.arguments}
            if has != wanted:
                lines.append(queue_conflict(each["name"], self.name, has))
        return lines

    async def _declare(self, given: dict[str, Any], keep: bool) -> None:
        arguments = from_json(given["arguments"])
        kind = arguments.pop("x-queue-type", "classic")
        try:
            await self.broker.declare_queue(
                given["name"],
                type=kind,
                durable=given["durable"],
                auto_delete=given["auto-delete"],
                arguments=arguments,
            )
        except ManagementError as refused:
            if not keep or refused.status != _UNEQUAL:
                raise
            say(
                f"amqp10: queue {given['name']}: it exists at {self.name}, and keeps its arguments: {refused}"
            )

    async def find_marked(self, queue: str, batch: str) -> Counter[str]:
        """Return which messages of a batch a queue has, by their digests.

        All its messages are received, and then released, because RabbitMQ has no other way to look at them; their order stays.

        Cancelled: the messages are back when the link has ended.
        """
        await self.until_stable(queue)
        async with self.connection.open_receiver(queue_address(queue), credit=0) as receiver:
            found: list[Delivery] = []
            while True:
                receiver.grant(_AT_ONCE)
                some = await receiver.drain()
                if not some:
                    break
                found += some
            marks = marks_of((each.message for each in found), batch)
            for each in found:
                each.release()
        await self.until_stable(queue)
        return marks

    def __repr__(self) -> str:
        return f"<RabbitMQEnd {self.name}>"
