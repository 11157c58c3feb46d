"""Send two messages to a queue, and receive them: ``python client.py URL``."""

import sys

import trio

import trio_amqp10 as amqp


async def main(url: str) -> None:
    async with amqp.open_connection(url) as connection:
        async with connection.open_sender("orders") as sender:
            await sender.send({"id": 1, "what": "tea"})  # returns when the peer has accepted it
            await sender.send(amqp.Message("as a gift", subject="note", durable=True))

        async with connection.open_receiver("orders", credit=10) as receiver:
            for _ in range(2):
                with trio.fail_after(5):  # around one receive, not around the loop
                    delivery = await receiver.receive()
                print(delivery.message.subject, delivery.message.body)
                delivery.accept()


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if sys.argv[1:] else sys.exit("usage: python client.py URL"))
