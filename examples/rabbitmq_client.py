"""Declare, publish and consume at RabbitMQ 4: ``python rabbitmq_client.py URL``."""

import sys

import trio

import trio_amqp10 as amqp
from trio_amqp10 import rabbitmq


async def main(url: str) -> None:
    async with amqp.open_connection(url) as connection:
        async with rabbitmq.open_management(connection) as broker:
            await broker.declare_queue("tea", arguments={"x-max-length": 1000})
            await broker.declare_exchange("orders", "topic")
            await broker.bind("orders", queue="tea", routing_key="*.tea")

        async with connection.open_sender(rabbitmq.exchange_address("orders", "green.tea")) as sender:
            await sender.send(amqp.Message("one cup", durable=True))  # returns when it is confirmed
        async with connection.open_sender(rabbitmq.exchange_address("orders", "black.coffee")) as sender:
            try:
                await sender.send("one pot")
            except amqp.DeliveryReleasedError:
                print("no queue is bound for black.coffee")

        async with connection.open_receiver(rabbitmq.queue_address("tea"), prefetch=10) as receiver:
            delivery = await receiver.receive()
            print(delivery.message.annotations["x-routing-key"], delivery.message.body)
            delivery.accept()


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if sys.argv[1:] else sys.exit("usage: python rabbitmq_client.py URL"))
