"""What is instrumented makes spans, and what is not has plain links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.delivery import Delivery
from trio_amqp10.amqp10.peer.receiver import Receiver
from trio_amqp10.amqp10.peer.sender import Sender
from trio_amqp10.otel import instrument

from .conftest import context_of

if TYPE_CHECKING:
    import pytest

    from .conftest import Told


async def test_connection_that_is_not_instrumented_has_plain_links(told: Told) -> None:
    async with (
        amqp.Container().connect() as conn,
        conn.open_sender("q") as sender,
        conn.open_receiver("q") as receiver,
    ):
        instrument(conn, tracer_provider=told.provider)  # from now on
        await sender.send("x")
        delivery = await receiver.receive()
        delivery.accept()
        assert type(sender) is Sender
        assert type(receiver) is Receiver
        assert isinstance(delivery, Delivery)
        assert delivery.message.application_properties == {}
    assert told.names == []


async def test_connection_that_came_back_makes_the_same_kinds(
    told: Told, monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    from tests.amqp10.peer.test_recovery import EVEN, URL, Town

    async with (
        Town(monkeypatch).open() as town,
        amqp.open_connection(URL, reconnect=EVEN) as conn,
    ):
        instrument(conn, tracer_provider=told.provider)
        async with conn.open_sender("q") as sender, conn.open_receiver("q") as receiver:
            await town.lose()
            await sender.send("x")
            (await receiver.receive()).accept()
    assert told.names == ["send q", "receive q", "accept q"]


async def test_send_from_within_is_a_span_where_it_is_asked_for(told: Told) -> None:
    container = amqp.Container()
    tracing = instrument(container, tracer_provider=told.provider)
    with tracing.send("q", "tea") as message:
        await container.send("q", message)
    assert message.application_properties == {"traceparent": context_of(told.take("send q"))}


async def test_surround_of_none_leaves_handlers_alone(told: Told) -> None:
    container = amqp.Container()

    @container.consumer("audit")
    async def audit(delivery: amqp.Delivery) -> None:
        pass

    instrument(container, tracer_provider=told.provider)
    container.surround(None)
    await container.send("audit", "x")
    assert told.names == []
