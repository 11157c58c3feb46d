"""Test a service in memory: the container of ``container.py``, from a peer."""

import pytest
from container import container
from trio.testing import trio_test

import trio_amqp10 as amqp


@trio_test
async def test_price_is_that_of_the_menu() -> None:
    async with container.connect() as connection, connection.open_requester("price") as prices:
        assert (await prices.request("tea", timeout=5)).body == 3.5


@trio_test
async def test_request_for_what_there_is_not_is_rejected() -> None:
    async with container.connect() as connection, connection.open_requester("price") as prices:
        with pytest.raises(amqp.DeliveryRejectedError, match="amqp:internal-error"):
            await prices.request("soup", timeout=5)


@trio_test
async def test_orders_are_kept_in_their_order() -> None:
    async with container.connect() as connection:
        async with connection.open_sender("orders") as sender:
            for order in ("one", "two"):
                await sender.send(order)
        async with connection.open_receiver("orders") as receiver:
            for order in ("one", "two"):
                delivery = await receiver.receive()
                assert delivery.message.body == order
                delivery.accept()
