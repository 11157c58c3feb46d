"""Send a number each second, and reconnect: ``python reconnecting.py URL``."""

import sys

import trio

import trio_amqp10 as amqp


async def report(connection: amqp.Connection) -> None:
    async for change in connection.changes(attempts=True):
        print(change.kind, change.reason or "")  # lost, failed, restored, stopped


async def main(url: str, count: int = sys.maxsize, seconds: float = 1.0) -> None:
    backoff = amqp.Backoff(initial=0.1, maximum=10, give_up_after=300)
    async with amqp.open_connection(url, reconnect=backoff) as connection, trio.open_nursery() as nursery:
        nursery.start_soon(report, connection)
        async with connection.open_sender("numbers") as sender:
            for number in range(count):
                await sender.send(
                    number
                )  # waits while the connection is lost; sends unconfirmed messages again
                print("accepted", number)
                await trio.sleep(seconds)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if sys.argv[1:] else sys.exit("usage: python reconnecting.py URL"))
