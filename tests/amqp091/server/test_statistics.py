"""Connections of 0-9-1 as management, metrics and ``amqp10 top`` see them."""

from __future__ import annotations

import io
from typing import Any

import trio
from rich.console import Console

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp10.peer.statistics import TOTALS
from trio_amqp10.container import Container
from trio_amqp10.tools.cli.open_management import list_entities
from trio_amqp10.tools.cli.top import Sample, _drawn

from .script import opened


async def _take(delivery: Any) -> None:
    await trio.lowlevel.checkpoint()
    assert delivery is not None


async def test_connection_counts_what_went_through_it() -> None:
    container = Container()
    container.add_management()
    container.consumer("sink")(_take)
    async with opened(container, connection_name="mine") as client:
        await client.ask(spec.QueueDeclare(queue="q"))
        await client.ask(spec.BasicQos(prefetch_count=5))
        await client.ask(spec.BasicConsume(queue="q", consumer_tag="c"))
        for _ in range(3):
            await client.publish("", "q", b"1")
            assert (await client.hear()).name == "basic.deliver"  # type: ignore[union-attr]
        await client.say(spec.BasicAck(delivery_tag=1))
        await client.publish("", "sink", b"2")
        await client.ask(spec.QueueDeclare(queue="q"))
        (peer,) = container.connected
        found = peer.statistics()
        names = ("state", "protocol", "sessions", "senders", "receivers", "unsettled_out", "transports")
        assert [found[name] for name in names] == ["OPENED", "AMQP 0-9-1", 1, 1, 1, 2, 1]
        assert (found["messages_in"], found["messages_out"], peer.leases) == (4, 3, 2)
        assert found["octets_in"] > 100
        links = {f"{link.role} {link.name}": link.statistics() for link in peer.links()}
        assert links["sender 1/c"] == {
            "state": "ATTACHED",
            "address": "q",
            "messages": 3,
            "credit": 3,
            "unsettled": 2,
        }
        assert (links["receiver sink"]["messages"], links["receiver sink"]["state"]) == (1, "ATTACHED")
        async with (
            container.connect() as other,
            other.open_management() as management,
        ):
            connections = {each["name"]: each for each in await list_entities(management, "connection")}
            assert connections["mine"]["protocol"] == "AMQP 0-9-1"
            assert (connections["mine"]["messages-in"], connections["mine"]["messages-out"]) == (4, 3)
            assert [each["protocol"] for name, each in connections.items() if name != "mine"] == ["AMQP 1.0"]
            rows = tuple(await list_entities(management, "link"))
            assert ("q", 3) in {(each["address"], each["messages"]) for each in rows}
            told = {"connections": tuple(connections.values()), "links": rows}
            sample = Sample(time=0.0, peer={}, managed=True, ours={}, **told)
            later = Sample(time=1.0, peer={}, managed=True, ours={}, **told)
            console = Console(width=200, record=True, file=io.StringIO())
            console.print(_drawn(later, sample))
            assert "AMQP 0-9-1" in console.export_text()
    assert container.past["messages_in"] >= 4
    assert {"messages_in", "messages_out", "transports"} <= set(TOTALS)


async def test_consumer_without_a_limit_has_no_credit_to_show() -> None:
    container = Container()
    async with opened(container) as client:
        await client.ask(spec.QueueDeclare(queue="q"))
        await client.ask(spec.BasicConsume(queue="q", consumer_tag="c", no_ack=True))
        (link,) = container.connected[0].links()
        assert link.statistics()["credit"] is None
