"""Spans of a container: of handlers and producers, but not of queues."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
import trio
from opentelemetry.trace import SpanKind, StatusCode

import trio_amqp10 as amqp
from trio_amqp10.otel import instrument

from .conftest import context_of, facts_of, id_of, links_of

if TYPE_CHECKING:
    from .conftest import Told


async def test_consumer_and_its_settlement_are_spans_of_the_trace_of_the_sender(told: Told) -> None:
    container = amqp.Container("service")
    done = trio.Event()

    @container.consumer("before")
    async def before(delivery: amqp.Delivery) -> None:
        done.set()

    instrument(container, tracer_provider=told.provider)

    @container.consumer("after")
    async def after(delivery: amqp.Delivery) -> None:
        delivery.accept()

    async with container.connect() as conn:
        instrument(conn, tracer_provider=told.provider)
        for name in ("before", "after"):
            async with conn.open_sender(name) as sender:
                await sender.send("x")
            sent, process = told.take(f"send {name}"), told.take(f"process {name}")
            assert process.kind is SpanKind.CONSUMER
            assert process.parent is not None
            assert process.parent.span_id == id_of(sent)
            assert links_of(process) == [id_of(sent)]
            assert facts_of(process)["messaging.client.id"] == "service"
            settled = told.take(f"accept {name}")
            assert settled.parent is not None
            assert settled.parent.span_id == id_of(process)


async def test_function_replies_within_its_span_and_passes_the_context_on(told: Told) -> None:
    container = amqp.Container()
    instrument(container, tracer_provider=told.provider)

    @container.function("upper")
    async def upper(message: amqp.Message) -> str:
        return str(message.body).upper()

    async with container.connect() as conn, conn.open_requester("upper") as requester:
        reply = await requester.request("x")
        assert reply.body == "X"
        span = told.take("reply")
        assert span.kind is SpanKind.PRODUCER
        assert reply.application_properties == {"traceparent": context_of(span)}
        assert facts_of(span)["messaging.operation.type"] == "send"
        assert span.parent is not None
        assert span.parent.span_id == id_of(told.take("process upper"))
        told.clear()
        async with conn.open_sender("upper") as sender:
            await sender.send("nobody waits")
        assert told.names == ["process upper", "accept upper"]


async def test_handler_that_raises_is_a_span_that_failed(
    told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    container = amqp.Container()
    instrument(container, tracer_provider=told.provider)

    @container.consumer("picky")
    async def picky(delivery: amqp.Delivery) -> None:
        raise KeyError("bug")

    async with container.connect() as conn, conn.open_sender("picky") as sender:
        with caplog.at_level(logging.CRITICAL, "trio_amqp10"), pytest.raises(amqp.DeliveryRejectedError):
            await sender.send("x")
    span = told.take("process picky")
    assert span.status.status_code is StatusCode.ERROR
    assert facts_of(span)["error.type"] == "builtins.KeyError"
    assert told.names == ["process picky", "reject picky"]


async def test_producer_sends_with_a_context(told: Told) -> None:
    container = amqp.Container()
    instrument(container, tracer_provider=told.provider)

    @container.producer("ticks")
    async def ticks(link: amqp.Sender) -> None:
        await link.send("tick")

    async with container.connect() as conn, conn.open_receiver("ticks") as receiver:
        delivery = await receiver.receive()
        delivery.accept()
        with trio.fail_after(60):
            while not told.names:
                await trio.lowlevel.checkpoint()
        context = {"traceparent": context_of(told.take("send ticks"))}
        assert delivery.message.application_properties == context


async def test_queues_pass_the_context_on_and_make_no_spans(told: Told) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    container = amqp.Container()
    instrument(container, tracer_provider=told.provider)
    async with (
        container.connect() as conn,
        conn.open_sender("q") as sender,
        conn.open_receiver("q") as receiver,
    ):
        await sender.send(amqp.Message("x", application_properties={"traceparent": parent}))
        delivery = await receiver.receive()
        delivery.accept()
        assert delivery.message.application_properties == {"traceparent": parent}
    assert told.names == []


async def test_messages_from_within_are_processed_too(told: Told) -> None:
    container = amqp.Container()
    got: list[Any] = []

    @container.consumer("audit")
    async def audit(delivery: amqp.Delivery) -> None:
        got.append(delivery.message.body)

    instrument(container, tracer_provider=told.provider)
    await container.send("audit", "x")
    assert got == ["x"]
    assert told.names == ["process audit"]
