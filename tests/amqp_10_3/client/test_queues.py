"""Queues and exchanges of the client are declared, bound, purged and deleted."""

from __future__ import annotations

import pytest

from trio_amqp10 import amqp_10_3

from .linked import channelled


async def test_exchange_and_queue_are_declared_bound_purged_and_deleted() -> None:
    async with channelled() as channel:
        await channel.declare_exchange("logs", "topic", arguments={"alternate_exchange": "amq.fanout"})
        queue = await channel.declare_queue(arguments={"x_max_length": 2})
        assert queue.name
        await queue.bind("logs", "a.*")
        for number in range(3):
            await channel.publish("logs", f"a.{number}", b"%d" % number)
        again = await channel.declare_queue(queue.name, passive=True)
        assert (again.message_count, again.consumer_count) == (2, 0)
        assert await queue.purge() == 2
        await channel.publish("logs", "a.b", b"last")
        assert await queue.delete() == 1
        await channel.delete_exchange("logs")
        with pytest.raises(amqp_10_3.NotFoundError) as caught:
            await channel.declare_exchange("logs", "topic", passive=True)
        assert (caught.value.code, caught.value.method) == (404, "exchange.declare")
