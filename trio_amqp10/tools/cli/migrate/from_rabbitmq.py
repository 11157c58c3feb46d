"""Copy the messages of a queue of RabbitMQ to a container, each exactly once.

A batch is received with exactly so much credit, and sent to a staging queue of the container in one transaction. Then all of it is
settled at RabbitMQ by one frame, and the link ends, which RabbitMQ answers after it has read that frame. Then the container moves the staging queue to
the queue.

A run that finds a staging queue of an earlier run looks whether RabbitMQ has its batch still, delivered before: then the batch was not
settled, and is settled now. If other messages stand between those of the batch, so that this takes several frames, all go back, and the copy
is dropped. RabbitMQ counts each return, and drops what came back too often.

Knows ends and staging queues; knows no plan.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from .marks import digest_of
from .sending import Batch, check_unused, send_all
from .staging import Staging, new_staging

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trio_amqp10.amqp10.peer.delivery import Delivery

    from .container_end import ContainerEnd
    from .rabbitmq_end import RabbitMQEnd


_BATCH: Final = 256
"""The most messages of a batch: so many a link takes from RabbitMQ at once.

If a run that holds more is killed, a quorum queue may put a part of them behind its other messages.
"""


class OutOfRabbitMQ:
    """The copying of one queue of RabbitMQ.

    Args:
        source: RabbitMQ.
        target: the container.
        queue: the name of the queue at both.
    """

    def __init__(self, source: RabbitMQEnd, target: ContainerEnd, queue: str) -> None:
        self._source = source
        self._target = target
        self._queue = queue

    async def recover(self, staged: Iterable[Staging]) -> int:
        """Complete what an earlier run began; return how many messages that were.

        Args:
            staged: the staging queues that earlier runs have left at the target, of any queue.

        Raises:
            CommandError: the source has consumers.

        Cancelled: call it again.
        """
        check_unused(self._source.name, self._queue, await self._source.until_stable(self._queue))
        moved = 0
        for staging in staged:
            if (
                staging.way == "in"
                and staging.queue == self._queue
                and await self._target.until_idle(staging.address)
            ):
                if await self._settle(staging):
                    moved += await self._finish(staging)
                else:
                    await self._target.drop_staging(staging)
        return moved

    async def step(self) -> Batch:
        """Move one batch, which is empty if no messages are ready.

        Raises:
            CommandError: the source has consumers, or the target does not take the batch.

        Cancelled: call ``recover``.
        """
        figures = await self._source.figures(self._queue)
        check_unused(self._source.name, self._queue, figures)
        if figures is None or not figures.ready:
            return Batch(0, is_full=False)
        staging = new_staging("in", self._queue)
        await self._target.make_staging(staging)
        async with (
            self._source.connection.open_receiver(
                self._source.node_address(self._queue), credit=0
            ) as receiver,
            self._target.connection.open_sender(staging.address) as sender,
        ):
            receiver.grant(_BATCH)
            found = await receiver.drain()
            async with self._target.connection.open_transaction() as transaction:
                await send_all(sender, [each.message for each in found], transaction)
            for each in found:
                each.accept()
        await self._finish(staging)
        return Batch(len(found), is_full=len(found) == _BATCH)

    async def _finish(self, staging: Staging) -> int:
        """Move a batch that is settled at RabbitMQ to its queue."""
        moved = 0
        while count := await self._target.move(staging.address, staging.queue):
            moved += count
        await self._target.delete_staging(staging)
        return moved

    async def _settle(self, staging: Staging) -> bool:
        """Settle the batch that is in a staging queue, if RabbitMQ has not removed it.

        All messages of the batch are at RabbitMQ, or none, because one frame settles them. So it has not removed them if it has
        all of them, each delivered before.

        Returns:
            Whether the batch is settled now; otherwise all messages went back.
        """
        missing = Counter(map(digest_of, await self._target.look_at(staging.address)))
        batch = missing.total()
        if not batch:
            return True
        address = self._source.node_address(self._queue)
        async with self._source.connection.open_receiver(address, credit=0) as receiver:
            found: list[Delivery] = []
            while missing:
                before = missing.total()
                receiver.grant(before)
                some = await receiver.drain()
                found += some
                for each in some:
                    digest = digest_of(each.message)
                    if missing[digest] and not each.message.first_acquirer:
                        missing[digest] -= 1
                missing = +missing
                if missing.total() == before:
                    break
            is_batch = not missing and len(found) == batch
            for each in found:
                if is_batch:
                    each.accept()
                else:
                    each.release()
        await self._source.until_stable(self._queue)
        return is_batch or bool(missing)
