"""Spans of a connection's links: names, kinds, parents and links as the conventions for messaging have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from opentelemetry.trace import SpanKind, StatusCode, format_span_id, format_trace_id

import trio_amqp10 as amqp
from trio_amqp10.otel import instrument
from trio_amqp10.peer.delivery import Delivery, delivery_class
from trio_amqp10.peer.receiver import Receiver
from trio_amqp10.peer.sender import Sender

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from .conftest import Told


def context_of(span: ReadableSpan) -> str:
    context = span.get_span_context()
    assert context is not None
    return (
        f"00-{format_trace_id(context.trace_id)}-{format_span_id(context.span_id)}-{context.trace_flags:02x}"
    )


def links_of(span: ReadableSpan) -> list[int]:
    return [link.context.span_id for link in span.links]


def id_of(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


def facts_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


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
    assert facts_of(wrong)["error.type"] == "trio_amqp10.errors.LocalProtocolError"


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
    from tests.peer.test_recovery import EVEN, URL, Town

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
