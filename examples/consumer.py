"""Consume until SIGTERM, then finish the work: ``python consumer.py URL``."""

import signal
import sys
from collections.abc import AsyncIterator

import trio

import trio_amqp10 as amqp

PATIENCE = 5.0  # seconds for the work under way


async def handle(delivery: amqp.Delivery) -> None:
    print(delivery.message.body)
    delivery.accept()


async def consume(url: str, reading: trio.CancelScope) -> None:
    async with (
        amqp.open_connection(url, reconnect=True) as conn,
        conn.open_receiver("orders", prefetch=10) as receiver,
        trio.open_nursery() as work,
    ):
        with reading:
            async for delivery in receiver:
                work.start_soon(handle, delivery)


async def stop(signals: AsyncIterator[int], reading: trio.CancelScope, everything: trio.CancelScope) -> None:
    await anext(signals)
    reading.cancel()  # take no more deliveries
    everything.deadline = trio.current_time() + PATIENCE  # calls wait while the broker is away: end them, too


async def main(url: str) -> None:
    with (
        trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals,
        trio.CancelScope() as everything,
    ):
        async with trio.open_nursery() as waiting:
            reading = trio.CancelScope()
            waiting.start_soon(stop, signals, reading, everything)
            await consume(url, reading)
            waiting.cancel_scope.cancel()
    print("some work was given up" if everything.cancelled_caught else "all work is done")


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if sys.argv[1:] else sys.exit("usage: python consumer.py URL"))
