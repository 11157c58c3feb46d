"""Requests and their replies."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trio_amqp10 import amqp091


async def test_requester_matches_replies_with_requests(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_channel() as server:
        queue = await server.declare_queue("upper")

        async def serve() -> None:
            async with queue.consume() as consumer:
                first, second = await consumer.receive(), await consumer.receive()
                for each in (second, first):
                    broker.publish_reply(each.properties.reply_to, each.properties, each.body.upper())
                    each.ack()

        replies: dict[bytes, bytes] = {}
        async with connection.open_requester("upper") as requester, trio.open_nursery() as nursery:
            nursery.start_soon(serve)

            async def ask(body: bytes) -> None:
                replies[body] = (await requester.request(body)).body

            nursery.start_soon(ask, b"a")
            nursery.start_soon(ask, b"b")
        assert replies == {b"a": b"A", b"b": b"B"}


async def test_requester_fails_at_once_when_no_queue_takes_the_request(connected: Any) -> None:
    async with connected() as (_, connection), connection.open_requester("nobody") as requester:
        with pytest.raises(amqp091.ReturnedError):
            await requester.request(b"")


async def test_requester_reports_a_reply_that_was_lost(connected: Any) -> None:
    async with connected(reconnect=True) as (broker, connection), connection.open_channel() as channel:
        await channel.declare_queue("slow")
        async with connection.open_requester("slow") as requester:

            async def sever() -> None:
                await wait_all_tasks_blocked()
                broker.sever()

            broker.nursery.start_soon(sever)
            with pytest.raises(amqp091.ReplyLostError):
                await requester.request(b"")
