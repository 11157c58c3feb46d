"""Durations of operations are told by operation and node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10 import otel

if TYPE_CHECKING:
    from .conftest import Collected


async def test_durations_are_told_by_operation_and_node(collected: Collected) -> None:
    container = amqp.Container()
    otel.instrument(container, meter_provider=collected.provider)

    @container.consumer("work")
    async def work(delivery: amqp.Delivery) -> None:
        await trio.sleep(0.02)

    async with container.connect() as conn:
        otel.instrument(conn, meter_provider=collected.provider, attributes={"server.address": "here"})
        async with conn.open_sender("work") as sender:
            await sender.send(amqp.Message("tea", message_id="m1"))
            with pytest.raises(amqp.LocalProtocolError):
                await sender.send("tea", tag=bytes(33))
        async with conn.open_sender("q") as sender, conn.open_receiver("q") as receiver:
            await sender.send("tea")
            (await receiver.receive()).accept()
        async with conn.open_receiver(None, source=amqp.Source(dynamic=True)) as temporary:
            async with conn.open_sender(temporary.address) as to_it:
                await to_it.transmit("tea")
            (await temporary.receive()).accept()
    told = {
        (attributes["messaging.operation.name"], attributes.get("messaging.destination.name")): point
        for point in collected.points("messaging.client.operation.duration")
        if "error.type" not in (attributes := dict(point.attributes or {}))
    }
    assert set(told) >= {
        ("send", "work"),
        ("send", "q"),
        ("receive", "q"),
        ("accept", "q"),
        ("accept", "work"),
    }
    assert ("receive", None) in told  # of a dynamic node, whose name has no meaning
    sent = told["send", "work"]
    assert dict(sent.attributes or {}) == {
        "messaging.system": "amqp",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "work",
        "server.address": "here",
    }
    assert (sent.count, sent.explicit_bounds[0], sent.explicit_bounds[-1]) == (1, 0.005, 10)
    assert sent.sum >= 0.02  # it waits for the outcome
    [failed] = [
        point
        for point in collected.points("messaging.client.operation.duration")
        if "error.type" in dict(point.attributes or {})
    ]
    assert dict(failed.attributes or {})["error.type"] == "trio_amqp10.core.errors.LocalProtocolError"
    [processed] = collected.points("messaging.process.duration")
    assert processed.count == 1
    assert processed.sum >= 0.02
    assert dict(processed.attributes or {})["messaging.operation.name"] == "process"
