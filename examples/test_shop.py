"""Test AMQP code with a real peer in memory: no socket, no broker, no waiting."""

import trio
from trio.testing import trio_test

import trio_amqp10 as amqp
from trio_amqp10.testing import open_container


async def ship_orders(connection: amqp.Connection) -> None:
    """The tested code: receive orders, and announce shipments."""
    async with connection.open_receiver("orders") as orders, connection.open_sender("shipments") as shipments:
        async for delivery in orders:
            await shipments.send({"shipped": delivery.message.body["id"]})
            delivery.accept()


@trio_test
async def test_ship_orders_announces_each_shipment() -> None:
    async with (
        open_container(queues=["orders", "shipments"], strict=True) as container,
        container.connect() as ours,
        container.connect() as tested,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(ship_orders, tested)
        async with ours.open_sender("orders") as sender, ours.open_receiver("shipments") as receiver:
            await sender.send({"id": 7})
            delivery = await receiver.receive()
            assert delivery.message.body == {"shipped": 7}
            delivery.accept()
        nursery.cancel_scope.cancel()
