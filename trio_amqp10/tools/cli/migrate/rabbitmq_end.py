"""RabbitMQ 4 as one end of a migration.

Knows ``/management`` of RabbitMQ, links, and the client of AMQP 0-9-1; knows no plan.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import trio

import trio_amqp10 as amqp
from trio_amqp10.broker.exchanges.argument_equality import from_json
from trio_amqp10.rabbitmq import ManagementError, queue_address
from trio_amqp10.tools.cli.command_runner import CommandError, say

from .differences import queue_conflict
from .figures import Figures
from .lock import take_lock
from .marks import marks_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractAsyncContextManager

    from trio_amqp10.amqp091.client.channel import Channel
    from trio_amqp10.amqp091.client.connection import Connection as Connection091
    from trio_amqp10.amqp091.client.delivery import Delivery
    from trio_amqp10.amqp10.peer.connection import Connection
    from trio_amqp10.rabbitmq import Management, QueueInfo

_LOCK: Final = "amqp10.migrate.lock"
"""An exclusive queue, which exists as long as the connection of a run."""
_PATIENCE: Final = 10.0
"""Seconds to wait for something that may not come any more.

The end of an earlier run, the answer of a queue, a message that has expired.
"""
_UNEQUAL: Final = 409
_STABLE: Final = 0.5
"""Seconds without a change, after which an earlier run has no more effect."""
_PAUSE: Final = 0.1
_UNKNOWN: Final = 0.2
"""Seconds after which an answer of zeros may mean that the queue did not answer.

RabbitMQ waits 0.25 s for a quorum queue.
"""
_AT_ONCE: Final = 0xFFFF
"""The most messages that one consumer of AMQP 0-9-1 can hold."""
_RETURNS: Final = 20
"""How often a quorum queue takes a message back, by default."""


class RabbitMQEnd:
    """RabbitMQ 4.

    Args:
        connection: a connection to it.
        broker: its management, over that connection.
        name: its place, for people.
        dial_091: makes a connection to it in AMQP 0-9-1, not yet open.
    """

    kind = "rabbitmq"

    def __init__(
        self,
        connection: Connection,
        broker: Management,
        name: str,
        dial_091: Callable[[], AbstractAsyncContextManager[Connection091]],
    ) -> None:
        self.connection = connection
        self.broker = broker
        self.name = name
        self._dial_091 = dial_091

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

        A quorum queue that is busy does not answer, and RabbitMQ then reports zeros. Such an answer is late, and is asked for again.

        Raises:
            CommandError: the queue does not answer for a long time.

        Cancelled: nothing has changed.
        """
        end = trio.current_time() + _PATIENCE
        while (asked := trio.current_time()) < end:
            found = await self.queue(queue)
            if found is None:
                return None
            if found.message_count or trio.current_time() - asked < _UNKNOWN:
                return Figures(ready=found.message_count, consumers=found.consumer_count)
        raise CommandError(
            f"{self.name}: queue {queue!r} did not answer for {_PATIENCE:g} s: run the command again later"
        )

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

    async def return_limit(self, queue: str) -> int | None:
        """Return how often a queue takes a message back; None for any number.

        A limit that a policy sets is not seen.

        Cancelled: nothing has changed.
        """
        found = await self.queue(queue)
        if found is None or found.type != "quorum":
            return None
        limit = found.arguments.get("x-delivery-limit", _RETURNS)
        return None if limit < 0 else limit

    async def find_marked(self, queue: str, batch: str) -> Counter[str]:
        """Return which messages of a batch a queue has, by their digests.

        All its messages are consumed and given back together, because RabbitMQ has no other way to look at them; their order stays.
        A link of AMQP 1.0 takes at most 256 at a time from a quorum queue, which puts these behind its others if they come back alone.
        So this is done in AMQP 0-9-1, where a consumer takes up to 65,535 at a time.

        Raises:
            CommandError: RabbitMQ refuses that.

        Cancelled: once all of them came, and they go back.
        """
        found: list[Delivery] = []
        try:
            async with self._dial_091() as connection, connection.open_channel(prefetch=_AT_ONCE) as channel:
                # Cancelled in between, messages that were not received yet would come back alone.
                with trio.CancelScope(shield=True):
                    found = await self._consume(channel, queue)
                if found:
                    found[-1].nack(multiple=True)
        except (amqp.AmqpError, OSError) as fault:
            raise CommandError(
                f"{self.name}: queue {queue!r} cannot be looked at in AMQP 0-9-1 ({fault}): run the command again later"
            ) from None
        await self.until_stable(queue)
        return marks_of((each.headers for each in found), batch)

    async def _consume(self, channel: Channel, queue: str) -> list[Delivery]:
        """Receive all messages that a queue has."""
        figures = await self.figures(queue)
        expected = 0 if figures is None else figures.ready
        found: list[Delivery] = []
        async with AsyncExitStack() as stack:
            while len(found) < expected:
                consumer = await stack.enter_async_context(channel.queue(queue).consume())
                before = len(found)
                with trio.move_on_after(_PATIENCE) as patience:
                    while len(found) < expected:
                        found += await consumer.receive_many(_AT_ONCE)
                        patience.deadline = trio.current_time() + _PATIENCE
                if len(found) == before:
                    break
            return found

    def __repr__(self) -> str:
        return f"<RabbitMQEnd {self.name}>"
