"""The consumer of ``consumer.py`` in asyncio: ``python asyncio_consumer.py URL``."""

import asyncio
import signal
import sys

from trio_amqp10 import aio

PATIENCE = 5.0  # seconds for the work under way


async def handle(delivery: aio.Delivery) -> None:
    print(delivery.message.body)
    await delivery.accept()


async def read(receiver: aio.Receiver, work: asyncio.TaskGroup) -> None:
    async for delivery in receiver:
        work.create_task(handle(delivery))


async def consume(url: str, stopping: asyncio.Event) -> None:
    async with (
        aio.connect(url, reconnect=True) as conn,
        conn.open_receiver("orders", prefetch=10) as receiver,
        asyncio.TaskGroup() as work,
    ):
        reader = work.create_task(read(receiver, work))
        reader.add_done_callback(lambda _: stopping.set())  # also if the peer ends the link
        await stopping.wait()
        reader.cancel()  # take no more deliveries


async def main(url: str) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with asyncio.TaskGroup() as waiting:
        consumer = waiting.create_task(consume(url, stopping))
        await stopping.wait()
        await asyncio.wait([consumer], timeout=PATIENCE)
        consumer.cancel()  # calls wait while the broker is away: end them, too
    print("some work was given up" if consumer.cancelled() else "all work is done")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if sys.argv[1:] else sys.exit("usage: python asyncio_consumer.py URL")))
