"""Copy the messages of a queue of a container elsewhere, each exactly once.

A batch is moved inside the container to a staging queue of a fresh name, which is exactly once (``container.management.moving``). From
there it is sent to the target with marks, and when all of it is confirmed, one transaction removes it from the staging queue. A run that
finds a staging queue of an earlier run looks in the target for its marks, and sends only the others.

Knows ends and staging queues; knows no plan.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from trio_amqp10.tools.cli.command_runner import CommandError

from .marks import marked, unsent
from .sending import BATCH, Batch, batch_size, check_unused, send_all
from .staging import Staging, new_staging

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .container_end import ContainerEnd
    from .rabbitmq_end import RabbitMQEnd


class OutOfContainer:
    """The copying of one queue of a container.

    Args:
        source: the container.
        target: the other broker.
        queue: the address of the queue at the source.
        to: its name at the target.

    Attributes:
        beside_consumers: whether the target may have consumers, as it has when those of the source were sent there.
    """

    def __init__(self, source: ContainerEnd, target: ContainerEnd | RabbitMQEnd, queue: str, to: str) -> None:
        self._source = source
        self._target = target
        self._queue = queue
        self._to = to
        self.beside_consumers = False

    async def recover(self, staged: Iterable[Staging]) -> int:
        """Complete what an earlier run began; return how many messages that were.

        Args:
            staged: the staging queues that earlier runs have left at the source, of any queue.

        Raises:
            CommandError: the target has consumers, or does not accept a message.

        Cancelled: call it again.
        """
        moved = 0
        for staging in staged:
            if (
                staging.way == "out"
                and staging.queue == self._queue
                and await self._source.until_idle(staging.address)
            ):
                moved += await self._deliver(staging, recover=True)
        return moved

    async def step(self) -> Batch:
        """Move one batch, which is empty if no messages are ready.

        Raises:
            CommandError: as ``recover``.

        Cancelled: the batch is at one of the two, or in part: call ``recover``.
        """
        figures = await self._source.figures(self._queue)
        if figures is None or not figures.ready:
            return Batch(0, is_full=False)
        size = batch_size(figures)
        staging = new_staging("out", self._queue)
        await self._source.make_staging(staging)
        taken = await self._source.move(self._queue, staging.address, size)
        return Batch(await self._deliver(staging, recover=False), is_full=taken == size)

    async def _deliver(self, staging: Staging, *, recover: bool) -> int:
        source, target = self._source.connection, self._target
        if not self.beside_consumers:
            check_unused(target.name, self._to, await target.figures(self._to))
        async with (
            source.open_receiver(staging.address, credit=0) as receiver,
            target.connection.open_sender(target.node_address(self._to)) as sender,
        ):
            receiver.grant(BATCH)
            found = await receiver.drain()
            messages = [each.message for each in found]
            if recover and messages:
                messages = unsent(messages, await self._find_sent(staging))
            await send_all(sender, [marked(each, staging.batch) for each in messages])
            if found:
                async with source.open_transaction() as transaction:
                    for delivery in found:
                        delivery.accept(transaction=transaction)
        await self._source.delete_staging(staging)
        return len(found)

    async def _find_sent(self, staging: Staging) -> Counter[str]:
        """Return which messages of a batch an earlier run has sent, by their digests.

        Raises:
            CommandError: the target would drop its messages if they were looked at once more.
        """
        source, target = self._source, self._target
        figures = await target.until_stable(self._to)
        if figures is None or not figures.ready:
            await source.forget_looks(self._queue)
            return Counter()
        limit = await target.return_limit(self._to)
        if limit is not None:
            if await source.looks(self._queue) >= limit:
                raise CommandError(
                    f"{target.name}: {self._to!r} drops messages that come back more than {limit} times, and that many runs were "
                    f"interrupted: consume the messages of that queue, move {staging.address!r} back to {self._queue!r} with amqp10 move, and run the "
                    "command again; those of its messages that had arrived then come twice"
                )
            await source.note_look(staging)
        return await target.find_marked(self._to, staging.batch)
