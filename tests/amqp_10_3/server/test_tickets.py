"""Tickets: what they permit, whose they are, and when they end."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.server.protocol import Amqp103
from trio_amqp10.container import Container

from .script import ALL, opened


def with_tickets(**options: Any) -> Amqp103:
    return Amqp103(Container(), **options)


async def test_ticket_permits_what_it_was_asked_for() -> None:
    async with opened(dialect=with_tickets(), tickets=True) as client:
        assert client.ticket
        await client.declare("q")
        await client.publish("", "q", b"x")
        await client.consume()
        assert (await client.heard("basic.deliver")).body == b"x"
        assert (await client.ask(spec.QueuePurge(ticket=client.ticket, queue="q"))).name == "queue.purge-ok"


@pytest.mark.parametrize(
    "method",
    [
        spec.QueueDeclare(queue="q"),
        spec.ExchangeDeclare(exchange="e"),
        spec.ExchangeDelete(exchange="e"),
        spec.QueueDeclare(queue="q", passive=True),
        spec.QueueBind(queue="q", exchange="amq.direct"),
        spec.QueuePurge(queue="q"),
        spec.QueueDelete(queue="q"),
        spec.BasicConsume(queue="q"),
        spec.FileConsume(queue="q"),
        spec.StreamConsume(queue="q"),
        spec.BasicGet(queue="q"),
    ],
    ids=lambda method: method.plan.name,
)
async def test_without_a_ticket_it_is_refused_with_403(method: Any) -> None:
    async with opened(dialect=with_tickets()) as client:
        assert await client.refused(method) == ("channel", 403)


@pytest.mark.parametrize(("right", "asked"), [("active", "read"), ("read", "active")])
async def test_ticket_for_something_else_is_refused_with_403(right: str, asked: str) -> None:
    async with opened(dialect=with_tickets()) as client:
        ticket = (await client.ask(spec.AccessRequest(**{asked: True})))["ticket"]
        method = (
            spec.QueueDeclare(ticket=ticket, queue="q")
            if right == "active"
            else spec.BasicGet(ticket=ticket, queue="q")
        )
        assert await client.refused(method) == ("channel", 403)


async def test_publish_needs_a_ticket_to_write() -> None:
    async with opened(dialect=with_tickets()) as client:
        client.ticket = (await client.ask(spec.AccessRequest(active=True)))["ticket"]
        await client.declare("q")
        await client.publish("", "q", b"x")
        assert await client.closed(await client.hear()) == ("channel", 403)


async def test_ticket_of_another_channel_ends_the_connection_with_530() -> None:
    async with opened(dialect=with_tickets(), tickets=True) as client:
        await client.ask(spec.ChannelOpen(), 2)
        method = spec.QueueDeclare(ticket=client.ticket, queue="q")
        assert await client.refused(method, 2) == ("connection", 530)


async def test_ticket_ends_with_its_channel() -> None:
    async with opened(dialect=with_tickets(), tickets=True) as client:
        await client.ask(spec.ChannelOpen(), 2)
        assert (await client.ask(spec.ChannelClose())).name == "channel.close-ok"
        method = spec.QueueDeclare(ticket=client.ticket, queue="q")
        assert await client.refused(method, 2) == ("channel", 403)


@pytest.mark.parametrize(
    ("realm", "refused"),
    [
        ("/nope", ("connection", 403)),
        ("", ("connection", 403)),
        ("/admin", ("channel", 402)),
        ("/data/x", ("channel", 402)),
    ],
)
async def test_realm_that_is_not_there_is_refused(realm: str, refused: tuple[str, int]) -> None:
    async with opened(dialect=with_tickets()) as client:
        assert await client.refused(spec.AccessRequest(realm=realm)) == refused


async def test_exclusive_ticket_keeps_others_out_while_its_channel_lasts() -> None:
    dialect = with_tickets()
    async with opened(dialect=dialect) as one:
        assert (await one.ask(spec.AccessRequest(read=True, exclusive=True))).name == "access.request-ok"
        assert (await one.ask(spec.AccessRequest(read=True))).name == "access.request-ok"
        async with opened(dialect=dialect) as two:
            assert await two.refused(ALL) == ("connection", 403)
        assert (await one.ask(spec.ChannelClose())).name == "channel.close-ok"
        async with opened(dialect=dialect) as three:
            assert (await three.ask(ALL)).name == "access.request-ok"
            await one.ask(spec.ChannelOpen())
            assert await one.refused(spec.AccessRequest(exclusive=True)) == ("connection", 403)


async def test_ticket_does_not_replace_the_permissions_of_the_user() -> None:
    container = Container(authorise=lambda access: access.action != "create")
    async with opened(dialect=Amqp103(container)) as client:
        ticket = (await client.ask(ALL))["ticket"]
        assert await client.refused(spec.QueueDeclare(ticket=ticket, queue="q")) == ("channel", 403)
    assert "q" not in container.nodes
