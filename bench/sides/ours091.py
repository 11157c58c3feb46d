"""Our client of AMQP 0-9-1 as one side: ``python -m bench.sides.ours091 JOB``.

==============  =============================================================================================
publish         without confirms; the span ends when the server has answered a method behind them
publish_each    the confirm of each is awaited before the next
publish_window  as many as ``credit`` are not confirmed
consume         from the start of the consumer, each message acknowledged, which the client merges
==============  =============================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from trio_amqp10 import amqp091

from .lines import Span, go, read_job, tell

if TYPE_CHECKING:
    from types import SimpleNamespace


async def publish(job: SimpleNamespace) -> dict[str, float]:
    body = bytes(job.size)
    async with amqp091.open_connection(job.url) as connection, connection.open_channel() as channel:
        go()
        span = Span()
        for _ in range(job.count):
            await channel.publish("", job.address, body)
        await channel.declare_queue(job.address, passive=True)
        return span.end(job.count)


async def publish_each(job: SimpleNamespace) -> dict[str, float]:
    body = bytes(job.size)
    async with amqp091.open_connection(job.url) as connection, connection.open_publisher() as publisher:
        go()
        span = Span()
        for _ in range(job.count):
            await publisher.publish("", job.address, body)
        return span.end(job.count)


async def publish_window(job: SimpleNamespace) -> dict[str, float]:
    body = bytes(job.size)
    async with (
        amqp091.open_connection(job.url) as connection,
        connection.open_publisher(window=job.credit) as publisher,
    ):
        go()
        span = Span()
        for _ in range(job.count):
            await publisher.transmit("", job.address, body)
        await publisher.wait_confirmed()
        return span.end(job.count)


async def consume(job: SimpleNamespace) -> dict[str, float]:
    async with amqp091.open_connection(job.url) as connection, connection.open_channel() as channel:
        go()
        span, seen = Span(), 0
        async with channel.queue(job.address).consume(prefetch=job.credit) as consumer:
            async for delivery in consumer:
                len(delivery.body)
                delivery.ack()
                seen += 1
                if seen == job.count:
                    return span.end(seen)
    raise AssertionError("the consumer ended")


ROLES = {each.__name__: each for each in (publish, publish_each, publish_window, consume)}


def main() -> None:
    job = read_job()
    tell(result=trio.run(ROLES[job.role], job))


if __name__ == "__main__":
    main()
