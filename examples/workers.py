"""Competing consumers: three workers share a queue; credit limits each of them."""

import sys

import trio

import trio_amqp10 as amqp

JOBS = 30


async def worker(name: str, connection: amqp.Connection, finished: trio.abc.SendChannel[str]) -> None:
    async with connection.open_receiver("jobs", credit=2) as receiver:
        async for delivery in receiver:
            try:
                result = delivery.message.body**2
            except TypeError:
                delivery.modify(delivery_failed=True, undeliverable_here=True)  # let another one try
            else:
                delivery.accept()
                await finished.send(f"{name}: {result}")


async def main(url: str) -> None:
    send_channel, receive_channel = trio.open_memory_channel[str](0)
    async with amqp.open_connection(url) as connection:
        async with connection.open_sender("jobs") as sender:
            for job in range(JOBS):
                await sender.transmit(job)  # waits for credit only
            await sender.flush()  # and here for every outcome
        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(worker, f"worker {number}", connection, send_channel)
            for _ in range(JOBS):
                print(await receive_channel.receive())
            nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if sys.argv[1:] else sys.exit("usage: python workers.py URL"))
