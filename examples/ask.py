"""Send several requests at once over one pair of links.

Run it with ``python examples/ask.py amqp://localhost:5672``.
"""

import sys

import trio

import trio_amqp10 as amqp


async def main(url: str) -> None:
    prices: dict[str, float] = {}

    async def ask(requester: amqp.Requester, what: str) -> None:
        reply = await requester.request(what)
        prices[what] = reply.body

    async with amqp.open_connection(url) as connection, connection.open_requester("price") as requester:
        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                for what in ("tea", "coffee"):
                    nursery.start_soon(ask, requester, what)
    print(prices)


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if sys.argv[1:] else sys.exit("usage: python ask.py URL"))
