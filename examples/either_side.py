"""Open links from either side: the listener sends, and the dialler receives."""

import trio

import trio_amqp10 as amqp


async def feed(connection: amqp.Connection) -> None:
    """Send, as the listening side, on a link to the peer that has dialled."""
    async with connection.open_sender("temperatures") as sender:
        for celsius in (21.5, 21.7, 21.4):
            await sender.send(celsius)


async def sensor_display(connection: amqp.Connection) -> list[float]:
    """Wait, as the dialling side, for the link, and receive its messages."""
    seen: list[float] = []
    async for link in connection.incoming_links():
        assert isinstance(link, amqp.IncomingReceiver)
        async with link.accept() as receiver:
            async for delivery in receiver:
                seen.append(delivery.message.body)
                delivery.accept()
        break
    return seen


async def main() -> None:
    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = await nursery.start(amqp.serve, feed, "amqp://127.0.0.1:0")
        async with amqp.open_connection(listeners[0].url) as connection:
            print(await sensor_display(connection))
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main)
