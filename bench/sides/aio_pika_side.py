"""aio-pika as one side of 0-9-1. Runs in the peers' own environment; roles as in ``ours091``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aio_pika
from lines import Span, go, read_job, tell

if TYPE_CHECKING:
    from types import SimpleNamespace


async def _publish(job: SimpleNamespace, *, confirms: bool, together: int) -> dict[str, float]:
    body = bytes(job.size)
    connection = await aio_pika.connect(job.url)
    async with connection:
        channel = await connection.channel(publisher_confirms=confirms)
        exchange = channel.default_exchange

        async def one() -> None:
            await exchange.publish(aio_pika.Message(body), routing_key=job.address)

        go()
        span = Span()
        if together == 1:
            for _ in range(job.count):
                await one()
        else:
            for first in range(0, job.count, together):
                await asyncio.gather(*(one() for _ in range(min(together, job.count - first))))
        await channel.get_queue(job.address)
        return span.end(job.count)


async def publish(job: SimpleNamespace) -> dict[str, float]:
    return await _publish(job, confirms=False, together=1)


async def publish_each(job: SimpleNamespace) -> dict[str, float]:
    return await _publish(job, confirms=True, together=1)


async def publish_window(job: SimpleNamespace) -> dict[str, float]:
    return await _publish(job, confirms=True, together=job.credit)


async def consume(job: SimpleNamespace) -> dict[str, float]:
    connection = await aio_pika.connect(job.url)
    async with connection:
        channel = await connection.channel()
        await channel.set_qos(prefetch_count=job.credit)
        queue = await channel.get_queue(job.address)
        go()
        span, seen = Span(), 0
        async with queue.iterator() as messages:
            async for message in messages:
                len(message.body)
                await message.ack()
                seen += 1
                if seen == job.count:
                    return span.end(seen)
    raise AssertionError("the iterator ended")


if __name__ == "__main__":
    job = read_job()
    tell(result=asyncio.run(globals()[job.role](job)))
