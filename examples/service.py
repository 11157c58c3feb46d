"""Serve orders of peers without a broker: ``python service.py URL``."""

import sys

import trio

import trio_amqp10 as amqp


async def take_orders(link: amqp.IncomingReceiver) -> None:
    async with link.accept(credit=100) as receiver:
        async for delivery in receiver:  # ends when the peer closes the link
            order = delivery.message.body
            if isinstance(order, str):
                print("order:", order)
                delivery.accept()
            else:
                delivery.reject("amqp:invalid-field", "an order is a string")


async def handle(connection: amqp.Connection) -> None:
    async with trio.open_nursery() as nursery:
        async for link in connection.incoming_links():
            if isinstance(link, amqp.IncomingReceiver) and link.address == "orders":
                nursery.start_soon(take_orders, link)
            else:
                await link.refuse("amqp:not-found", f"there is no node {link.address!r} here")


async def main(
    url: str, *, task_status: trio.TaskStatus[list[amqp.Listener]] = trio.TASK_STATUS_IGNORED
) -> None:
    await amqp.serve(handle, url, task_status=task_status)


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if sys.argv[1:] else sys.exit("usage: python service.py URL"))
