"""Spans of a connection's links, compared with the conventions for messaging."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from opentelemetry.trace import SpanKind, StatusCode

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.delivery import Delivery, delivery_class
from trio_amqp10.otel import instrument

from .conftest import context_of, facts_of, id_of, links_of

if TYPE_CHECKING:
    from .conftest import Told


async def test_send_is_a_producer_whose_context_goes_with_the_message(told: Told) -> None:
    container = amqp.Container()
    async with container.connect(container_id="client") as conn, conn.open_receiver("q") as receiver:
        instrument(conn, tracer_provider=told.provider, attributes={"server.address": "here"})
        async with conn.open_sender("q") as sender:
            message = amqp.Message("tea", message_id="m1", correlation_id=b"\x01\xff", subject="s")
            assert isinstance(await sender.send(message), amqp.Accepted)
            assert message.application_properties == {}  # it is the user's
            span = told.take("send q")
            assert span.kind is SpanKind.PRODUCER
            assert facts_of(span) == {
                "messaging.system": "amqp",
                "messaging.operation.name": "send",
                "messaging.operation.type": "send",
                "messaging.destination.name": "q",
                "messaging.client.id": "client",
                "messaging.message.id": "m1",
                "messaging.message.conversation_id": "01ff",
                "server.address": "here",
            }
            assert span.status.status_code is StatusCode.UNSET
            got = (await receiver.receive()).message
            assert got.application_properties == {"traceparent": context_of(span)}
            assert (got.body, got.message_id, got.subject) == ("tea", "m1", "s")


@pytest.mark.parametrize("how", ["transmit", "send_nowait", "stream"])
async def test_every_way_to_send_carries_the_context(told: Told, how: str) -> None:
    async with amqp.Container().connect() as conn:
        instrument(conn, tracer_provider=told.provider)
        async with conn.open_sender("q") as sender, conn.open_receiver("q") as receiver:
            if how == "transmit":
                await sender.transmit(b"tea")
            elif how == "send_nowait":
                await sender.wait_sendable()
                sender.send_nowait(b"tea")
            else:
                given = amqp.Message(subject="s")
                async with sender.stream(message=given) as body:
                    await body.send_all(b"te")
                    await body.send_all(b"a")
                    given.footer = {"sum": 3}
            message = (await receiver.receive()).message
            assert message.application_properties == {"traceparent": context_of(told.take("send q"))}
            assert message.body == b"tea"
            assert message.footer == ({"sum": 3} if how == "stream" else {})


async def test_send_of_a_message_that_has_a_context_keeps_it_and_links_to_it(told: Told) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with amqp.Container().connect() as conn:
        instrument(conn, tracer_provider=told.provider)
        async with conn.open_sender("q") as sender, conn.open_receiver("q") as receiver:
            await sender.send(amqp.Message("x", application_properties={"traceparent": parent}))
            span = told.take("send q")
            assert span.kind is SpanKind.CLIENT
            assert links_of(span) == [0xB7AD6B7169203331]
            assert (await receiver.receive()).message.application_properties == {"traceparent": parent}


async def test_send_through_the_anonymous_terminus_is_named_after_where_the_message_goes(told: Told) -> None:
    async with amqp.Container().connect() as conn:
        instrument(conn, tracer_provider=told.provider)
        async with conn.open_sender(None) as sender:
            await sender.send(amqp.Message("x", to="q"))
    assert told.names == ["send q"]


async def test_receive_links_to_the_sender_and_takes_the_time_of_the_wait(told: Told) -> None:
    async with amqp.Container().connect() as conn:
        instrument(conn, tracer_provider=told.provider)
        async with conn.open_sender("q") as sender, conn.open_receiver("q") as receiver:
            await sender.send(amqp.Message("x", message_id=7))
            await receiver.receive()
    sent, received = told.take("send q"), told.take("receive q")
    assert received.kind is SpanKind.CLIENT
    assert received.parent is None
    assert links_of(received) == [id_of(sent)]
    assert facts_of(received)["messaging.message.id"] == "7"
    assert "messaging.batch.message_count" not in facts_of(received)
    assert received.start_time is not None
    assert received.end_time is not None
    assert received.start_time <= received.end_time


@pytest.mark.parametrize("how", ["receive", "receive_many", "iterate"])
async def test_receive_that_fails_says_why(told: Told, how: str) -> None:
    container = amqp.Container()
    container.add_queue("q")
    async with container.connect() as conn:
        instrument(conn, tracer_provider=told.provider)
        async with conn.open_receiver("q") as receiver:
            container.remove_node("q")
            with pytest.raises(amqp.LinkDetachedError):
                if how == "receive":
                    await receiver.receive()
                elif how == "receive_many":
                    await receiver.receive_many(2)
                else:
                    await receiver.__anext__()
    [span] = told.spans()
    assert facts_of(span)["error.type"] == "amqp:resource-deleted"
    assert span.status.status_code is StatusCode.ERROR


@pytest.mark.parametrize("operation", ["accept", "reject", "release", "modify"])
async def test_settling_is_a_span_within_the_one_that_received(told: Told, operation: str) -> None:
    async with amqp.Container().connect() as conn:
        instrument(conn, tracer_provider=told.provider)
        async with conn.open_sender("q") as sender, conn.open_receiver("q") as receiver:
            await sender.send("x")
            delivery = await receiver.__anext__()
            getattr(delivery, operation)()
            span = told.take(f"{operation} q")
            assert span.kind is SpanKind.CLIENT
            assert facts_of(span)["messaging.operation.type"] == "settle"
            assert span.parent is not None
            assert span.parent.span_id == id_of(told.take("receive q"))
            assert links_of(span) == [id_of(told.take("send q"))]
            told.clear()
            with pytest.raises(amqp.LocalProtocolError):
                delivery.accept()
            assert told.take("accept q").status.status_code is StatusCode.ERROR


async def test_settling_at_once_when_nothing_waits(told: Told) -> None:
    async with amqp.Container().connect() as conn:
        instrument(conn, tracer_provider=told.provider)
        async with conn.open_sender("q") as sender, conn.open_receiver("q") as receiver:
            with pytest.raises(trio.WouldBlock):
                receiver.receive_nowait()
            await sender.send("x")
            with trio.fail_after(60):
                while not receiver.buffered:
                    await trio.lowlevel.checkpoint()
            told.clear()
            receiver.receive_nowait().accept()
    assert told.names == ["receive q", "accept q"]


async def test_process_is_a_child_of_the_send_and_holds_what_is_done_inside(told: Told) -> None:
    async with amqp.Container().connect() as conn:
        tracing = instrument(conn, tracer_provider=told.provider)
        async with conn.open_sender("q") as sender, conn.open_receiver("q") as receiver:
            await sender.send("x")
            sent = told.take("send q")
            delivery = await receiver.receive()
            with tracing.process(delivery):
                async with conn.open_sender("next") as onward:
                    await onward.send("y")
                delivery.accept()
            process = told.take("process q")
            assert process.kind is SpanKind.CONSUMER
            assert process.parent is not None
            assert process.parent.span_id == id_of(sent)
            assert links_of(process) == [id_of(sent)]
            for name in ("send next", "accept q"):
                parent = told.take(name).parent
                assert parent is not None
                assert parent.span_id == id_of(process)


async def test_stream_that_is_yet_coming_in_is_received_and_settled_without_a_look_into_it(
    told: Told,
) -> None:
    async with amqp.Container().connect() as conn:
        tracing = instrument(conn, tracer_provider=told.provider)
        async with (
            conn.open_receiver("q", streaming=True) as receiver,
            conn.open_sender("q") as sender,
        ):
            await sender.send(b"x" * 500_000)
            delivery = await receiver.receive()
            with tracing.process(delivery):
                assert sum([len(chunk) async for chunk in delivery.chunks()]) == 500_000
                delivery.accept()
    assert told.names[-3:] == ["receive q", "accept q", "process q"]


async def test_links_that_the_peer_opens_are_named_after_our_node(told: Told) -> None:
    done = trio.Event()

    async def handle(conn: amqp.Connection) -> None:
        instrument(conn, tracer_provider=told.provider)
        async for link in conn.incoming_links():
            if isinstance(link, amqp.IncomingReceiver):
                async with link.accept() as receiver:
                    (await receiver.receive()).accept()
            else:
                async with link.accept() as sender:
                    await sender.send("y")
                    done.set()

    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = await nursery.start(amqp.serve, handle, "amqp://127.0.0.1:0")
        async with amqp.open_connection(listeners[0].url) as conn:
            async with conn.open_sender("in") as sender:
                await sender.send("x")
            async with conn.open_receiver("out") as receiver:
                (await receiver.receive()).accept()
                await done.wait()
        nursery.cancel_scope.cancel()
    assert told.names == ["receive in", "accept in", "send out"]


async def test_deliveries_are_read_as_strictly_as_without(told: Told) -> None:
    async with amqp.Container().connect(strict=False) as conn:
        for _turn in range(2):  # the second replaces the first
            instrument(conn, tracer_provider=told.provider)
        async with conn.open_sender("q") as sender, conn.open_receiver("q") as receiver:
            await sender.send("x")
            delivery = await receiver.receive()
            plain = delivery_class(conn.engine.strict)
            assert plain is not Delivery
            assert isinstance(delivery, plain)
            assert type(delivery.message) is plain.message_class
            delivery.accept()
    assert told.names == ["send q", "receive q", "accept q"]
