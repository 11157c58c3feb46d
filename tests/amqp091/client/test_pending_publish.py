"""Publishes that wait: which of them a returned message belongs to."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

from trio_amqp10 import amqp091
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.wire.content import BasicProperties


async def test_publisher_finds_which_of_several_came_back(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_publisher() as out:
        broker.hold = True
        tickets = [
            await out.transmit("", "nowhere", b"%d" % n, mandatory=True, message_id=str(n)) for n in range(4)
        ]
        [server] = broker.peers[0].channels
        await wait_all_tasks_blocked()
        assert [ticket.returned.body for ticket in tickets if ticket.returned] == [b"0", b"1", b"2", b"3"]
        server.confirm(multiple=True)
        for ticket in tickets:
            with pytest.raises(amqp091.ReturnedError):
                await ticket.outcome()
            assert ticket.state == "returned"


async def test_publisher_takes_a_return_of_changed_headers_for_the_equal_body(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_publisher() as out:
        broker.peers[0].mute = True
        first = await out.transmit("", "nowhere", b"1", mandatory=True, headers={"BCC": ["x"]})
        second = await out.transmit("", "nowhere", b"2", mandatory=True, headers={"BCC": ["x"]})
        await wait_all_tasks_blocked()
        [server] = broker.peers[0].channels
        changed = amqp091.BasicProperties(headers={})
        from trio_amqp10.amqp091.wire.content import Content

        server.send(
            spec.BasicReturn(reply_code=312, reply_text="NO_ROUTE", routing_key="nowhere"),
            Content(changed, b"2"),
        )
        server.send(spec.BasicAck(delivery_tag=2, multiple=True))
        await first.outcome()
        with pytest.raises(amqp091.ReturnedError):
            await second.outcome()


async def test_publisher_gives_a_return_of_nothing_to_the_iterator(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_publisher() as out:
        [server] = broker.peers[0].channels
        server.send(
            spec.BasicReturn(reply_code=313, reply_text="NO_CONSUMERS", routing_key="q"),
            amqp091_content(b"stray"),
        )
        assert (await out.next_returned()).body == b"stray"


def amqp091_content(body: bytes) -> Any:
    from trio_amqp10.amqp091.wire.content import Content

    return Content(BasicProperties(), body)
