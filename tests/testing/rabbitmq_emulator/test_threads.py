"""The broker in a thread listens for the length of a block."""

from __future__ import annotations

import httpx
import pytest
import trio

import trio_amqp10 as amqp
from tests.container.helpers import fill
from trio_amqp10.testing import rabbitmq
from trio_amqp10.testing.rabbitmq_emulator import RabbitMQ


def test_rabbitmq_listens_for_the_length_of_a_block_and_says_what_it_is() -> None:
    async def look(url: str) -> None:
        async with amqp.open_connection(url) as conn:
            properties = conn.remote.properties
            assert (properties["product"], properties["version"]) == ("RabbitMQ", "4.0.0")
            await fill(conn, "/queues/orders", "tea")
        with pytest.raises(amqp.SecurityError):
            async with amqp.open_connection(url.replace("guest:guest", "guest:wrong")):
                pass

    broker = RabbitMQ()
    queue = broker.declare_queue("mine")
    with rabbitmq(["orders"], broker=broker) as url:
        assert url.startswith("amqp://guest:guest@127.0.0.1:")
        trio.run(look, url)
    assert len(queue) == 0


def test_management_api_is_served_too_if_it_is_asked_for() -> None:
    with rabbitmq(["orders"], http=True) as (url, http):
        assert url.startswith("amqp://guest:guest@")
        assert [each["name"] for each in httpx.get(f"{http}/api/queues").json()] == ["orders"]
