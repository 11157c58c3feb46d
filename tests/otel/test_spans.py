"""Spans: their names, links and facts, and how they end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from opentelemetry.trace import StatusCode

import trio_amqp10 as amqp
from trio_amqp10.otel import instrument

from .conftest import facts_of, id_of, links_of

if TYPE_CHECKING:
    from .conftest import Told


async def test_failed_send_says_what_the_peer_said(told: Told) -> None:
    container = amqp.Container()

    @container.consumer("picky")
    async def picky(delivery: amqp.Delivery) -> None:
        delivery.reject("example:too-hot", "it is")

    async with container.connect() as conn:
        instrument(conn, tracer_provider=told.provider)
        async with conn.open_sender("picky") as sender:
            with pytest.raises(amqp.DeliveryRejectedError):
                await sender.send("x")
            with pytest.raises(amqp.LocalProtocolError):
                await sender.transmit(object())
    rejected, wrong = told.spans()
    assert rejected.status.status_code is wrong.status.status_code is StatusCode.ERROR
    assert facts_of(rejected)["error.type"] == "example:too-hot"
    assert facts_of(wrong)["error.type"] == "trio_amqp10.core.errors.LocalProtocolError"


async def test_cancelled_and_aborted_sends_end_their_spans(told: Told, autojump_clock: Any) -> None:
    async with amqp.Container().connect() as conn:
        instrument(conn, tracer_provider=told.provider)
        async with conn.open_sender("q") as sender:
            with pytest.raises(KeyError, match="mine"):
                async with sender.stream() as body:
                    await body.send_all(b"x")
                    raise KeyError("mine")
            with trio.CancelScope() as scope:
                scope.cancel()
                await sender.send("x")
    stream, cancelled = told.spans()
    assert facts_of(stream)["error.type"] == "builtins.KeyError"
    assert facts_of(cancelled)["error.type"].endswith("Cancelled")


async def test_receive_of_several_is_one_span_with_a_link_for_each(told: Told) -> None:
    async with amqp.Container().connect() as conn:
        instrument(conn, tracer_provider=told.provider)
        async with conn.open_sender("q") as sender, conn.open_receiver("q", credit=0) as receiver:
            for number in (1, 2, 3):
                await sender.send(amqp.Message("x", message_id=number))
            sent = [id_of(span) for span in told.spans()]
            told.clear()
            receiver.grant(3)
            with trio.fail_after(60):
                while receiver.buffered < 2:
                    await trio.lowlevel.checkpoint()
            many = await receiver.receive_many(2)
            rest = await receiver.drain()
            assert (len(many), len(rest)) == (2, 1)
            first, second = told.spans()
            assert links_of(first) + links_of(second) == sent
            assert facts_of(first)["messaging.batch.message_count"] == 2
            assert facts_of(second)["messaging.batch.message_count"] == 1
            assert [dict(link.attributes or {}) for link in first.links] == [
                {"messaging.message.id": "1"},
                {"messaging.message.id": "2"},
            ]


async def test_process_is_a_child_of_what_is_current(told: Told) -> None:
    async with amqp.Container().connect() as conn:
        tracing = instrument(conn, tracer_provider=told.provider)
        async with conn.open_sender("q") as sender, conn.open_receiver("q") as receiver:
            await sender.send("x")
            delivery = await receiver.receive()
            tracer = told.provider.get_tracer("mine")
            with pytest.raises(KeyError), tracer.start_as_current_span("mine"), tracing.process(delivery):
                raise KeyError("mine")
    process = told.take("process q")
    assert process.parent is not None
    assert process.parent.span_id == id_of(told.take("mine"))
    assert links_of(process) == [id_of(told.take("send q"))]
    assert facts_of(process)["error.type"] == "builtins.KeyError"


async def test_dynamic_nodes_are_no_part_of_a_name(told: Told) -> None:
    container = amqp.Container()

    @container.function("upper")
    async def upper(message: amqp.Message) -> str:
        return str(message.body).upper()

    async with container.connect() as conn:
        instrument(conn, tracer_provider=told.provider)
        async with conn.open_requester("upper") as requester:
            assert (await requester.request("x")).body == "X"
    assert {"send upper", "receive"} <= set(told.names)
    assert facts_of(told.take("receive"))["messaging.destination.temporary"] is True
