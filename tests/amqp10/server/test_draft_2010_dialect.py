"""The draft of 2010 over a container, with peers of the final standard too."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from tests.amqp10.peer.authority import believing, serving
from trio_amqp10.amqp10.draft_2010.connection import DraftConnection
from trio_amqp10.amqp10.server.draft_2010_dialect import Draft2010
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.container.dialects import dialects_of
from trio_amqp10.core.protocol_headers import AMQP_HEADER, SASL_HEADER
from trio_amqp10.sasl import Server
from trio_amqp10.tools.cli.node_rules import parse_dialect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FINAL, DRAFT = "1.0", "1.0-draft-2010"
HOST = "amqp://127.0.0.1:0"


@pytest.fixture
async def urls(nursery: trio.Nursery) -> AsyncIterator[dict[str, str]]:
    """A container with a queue ``q``, on one listener for each of the two standards."""
    container = amqp.Container("service")
    container.add_queue("q")
    (final,) = await nursery.start(partial(container.serve, HOST))
    (draft,) = await nursery.start(partial(container.serve, HOST, dialects=[DRAFT]))
    yield {FINAL: final.url, DRAFT: draft.url}
    nursery.cancel_scope.cancel()


def dial(urls: dict[str, str], dialect: str, **options: Any) -> Any:
    return amqp.open_connection(urls[dialect], dialect=dialect, **options)


MESSAGE = amqp.Message(
    {"n": 1, "list": [1, "two", None]},
    message_id=b"id",
    subject="hello",
    reply_to="back",
    content_type="text/plain",
    group_id="g",
    durable=True,
    priority=7,
    ttl=60_000,
    application_properties={"a": "b"},
    annotations={"x-opt-mine": 5},
)


@pytest.mark.parametrize(("here", "there"), [(FINAL, DRAFT), (DRAFT, FINAL), (DRAFT, DRAFT)])
async def test_message_goes_from_one_standard_to_the_other(
    urls: dict[str, str], here: str, there: str
) -> None:
    async with (
        dial(urls, here) as one,
        dial(urls, there) as two,
        one.open_sender("q") as sender,
        two.open_receiver("q") as receiver,
    ):
        await sender.send(MESSAGE)
        delivery = await receiver.receive()
        message = delivery.message
        delivery.accept()
    for name in (
        "body",
        "message_id",
        "subject",
        "reply_to",
        "content_type",
        "group_id",
        "durable",
        "priority",
    ):
        assert getattr(message, name) == getattr(MESSAGE, name), name
    assert message.application_properties == {"a": "b"}
    assert message.annotations["x-opt-mine"] == 5
    assert 0 < message.ttl <= 60_000


@pytest.mark.parametrize("size", [0, 1, 2_200, 1_000_000])
async def test_messages_of_any_size(urls: dict[str, str], size: int) -> None:
    async with (
        dial(urls, DRAFT) as connection,
        connection.open_sender("q") as sender,
        connection.open_receiver("q") as receiver,
    ):
        await sender.send(b"x" * size)
        delivery = await receiver.receive()
        assert delivery.message.body == b"x" * size
        delivery.accept()


async def test_very_many_messages_go_on_beyond_the_credit_of_the_session(nursery: trio.Nursery) -> None:
    container = amqp.Container("service")
    container.add_queue("q")
    serve = partial(container.serve, HOST, dialects=[DRAFT], limits=amqp.Limits(incoming_window=20))
    (listener,) = await nursery.start(serve)
    async with (
        dial({DRAFT: listener.url}, DRAFT) as connection,
        dial({DRAFT: listener.url}, DRAFT) as other,
        connection.open_sender("q") as sender,
        other.open_receiver("q", credit=50) as receiver,
    ):

        async def send() -> None:
            for number in range(300):
                await sender.transmit(number)

        async with trio.open_nursery() as both:
            both.start_soon(send)
            for number in range(300):
                delivery = await receiver.receive()
                assert delivery.message.body == number
                delivery.accept()
    nursery.cancel_scope.cancel()


async def test_message_that_is_not_settled_comes_again(urls: dict[str, str]) -> None:
    async with dial(urls, DRAFT) as connection:
        async with connection.open_sender("q") as sender:
            await sender.send("again")
        async with connection.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            delivery.modify(delivery_failed=True)
            delivery = await receiver.receive()
            assert delivery.message.delivery_count == 1
            delivery.reject()


@pytest.mark.parametrize(("rejects", "reads"), [(DRAFT, DRAFT), (DRAFT, FINAL), (FINAL, DRAFT)])
async def test_error_of_a_rejected_message_is_in_its_dead_letter(
    nursery: trio.Nursery, rejects: str, reads: str
) -> None:
    container = amqp.Container("service")
    container.add_queue("q", dead_letter="dead")
    container.add_queue("dead")
    (final,) = await nursery.start(partial(container.serve, HOST))
    (draft,) = await nursery.start(partial(container.serve, HOST, dialects=[DRAFT]))
    urls = {FINAL: final.url, DRAFT: draft.url}
    async with (
        dial(urls, rejects) as one,
        dial(urls, reads) as two,
        one.open_sender("q") as sender,
        one.open_receiver("q") as receiver,
        two.open_receiver("dead") as letters,
    ):
        await sender.send("tea")
        (await receiver.receive()).reject("shop:no-tea", "it is out")
        notes = (await letters.receive()).message.annotations
        assert notes["x-opt-deadletter-condition"] == "shop:no-tea"
        assert notes["x-opt-deadletter-description"] == "it is out"
        assert "rejected" not in notes
    nursery.cancel_scope.cancel()


async def test_connection_is_encrypted_by_protocol_id_2(
    nursery: trio.Nursery,
) -> None:
    container = amqp.Container("guarded")
    container.add_queue("q")
    serve = partial(container.serve, "amqp+tls://127.0.0.1:0", dialects=DRAFT, ssl_context=serving())
    (listener,) = await nursery.start(serve)
    async with (
        amqp.open_connection(listener.url, dialect=DRAFT, ssl_context=believing()) as connection,
        connection.open_sender("q") as sender,
        connection.open_receiver("q") as receiver,
    ):
        assert isinstance(connection.engine, DraftConnection)
        await sender.send("sealed")
        assert (await receiver.receive()).message.body == "sealed"
    nursery.cancel_scope.cancel()


async def test_link_to_no_node_is_refused() -> None:
    async with amqp.Container("strict", strict=True).connect(dialect=DRAFT) as connection:
        with pytest.raises(amqp.LinkRefusedError, match="not-found"):
            async with connection.open_receiver("nowhere"):
                pass


async def test_node_is_made_for_a_link(urls: dict[str, str]) -> None:
    async with (
        dial(urls, DRAFT) as connection,
        connection.open_receiver(None, source=Source(dynamic=True)) as receiver,
    ):
        assert receiver.address
        async with connection.open_sender(receiver.address) as sender:
            await sender.send("for you")
        assert (await receiver.receive()).message.body == "for you"


async def test_transaction_is_committed_and_rolled_back(urls: dict[str, str]) -> None:
    async with (
        dial(urls, DRAFT) as connection,
        connection.open_sender("q") as sender,
        connection.open_receiver("q") as receiver,
    ):
        async with connection.open_transaction() as transaction:
            await sender.send("kept", transaction=transaction)
        delivery = await receiver.receive()
        assert delivery.message.body == "kept"
        with pytest.raises(RuntimeError):
            async with connection.open_transaction() as transaction:
                await sender.send("dropped", transaction=transaction)
                delivery.accept(transaction=transaction)
                raise RuntimeError
        again = await receiver.receive()
        assert again.message.body == "kept"
        again.accept()


async def test_users_log_in_through_frames_of_the_draft(nursery: trio.Nursery) -> None:
    container = amqp.Container("guarded")
    container.add_queue("q")
    (listener,) = await nursery.start(
        partial(container.serve, HOST, dialects=DRAFT, sasl=Server(users={"u": "p"}))
    )
    url = listener.url.replace("//", "//u:p@")
    async with (
        amqp.open_connection(url, dialect=DRAFT) as connection,
        connection.open_sender("q") as sender,
    ):
        await sender.send("in")
    with pytest.raises(amqp.SecurityError):
        async with amqp.open_connection(url.replace("u:p", "u:wrong"), dialect=DRAFT):
            pass
    nursery.cancel_scope.cancel()


async def test_peer_of_the_final_standard_hears_that_it_is_not_understood(urls: dict[str, str]) -> None:
    with pytest.raises(amqp.AmqpError):
        async with amqp.open_connection(urls[DRAFT]):
            pass


async def test_container_is_reached_through_memory() -> None:
    container = amqp.Container("local")
    container.add_queue("q")
    async with container.connect(dialect=DRAFT) as connection:
        assert isinstance(connection.engine, DraftConnection)
        async with connection.open_sender("q") as sender, connection.open_receiver("q") as receiver:
            await sender.send("near")
            assert (await receiver.receive()).message.body == "near"


async def test_limits_of_the_dialect_are_its_own() -> None:
    container = amqp.Container("local")
    (dialect,) = dialects_of(container, {DRAFT: {"limits": amqp.Limits(channel_max=3)}})
    assert isinstance(dialect, Draft2010)
    assert dialect.claims(b"AMQP\x00\x01\x00\x00") is True
    assert dialect.claims(b"AMQP\x00\x00\x09\x01") is False
    assert dialect.claims(b"AMQP") is None


def test_command_line_names_it() -> None:
    assert parse_dialect(DRAFT) == {DRAFT: {}}


@pytest.fixture
async def both(nursery: trio.Nursery) -> AsyncIterator[amqp.Listener]:
    """Yield a listener that detects which of the two standards a peer uses.

    Its container has a queue ``q``.
    """
    container = amqp.Container("service")
    container.add_queue("q")
    serve = partial(container.serve, HOST, dialects={DRAFT: {"detect": True}})
    (listener,) = await nursery.start(serve)
    yield listener
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize("pipelined", [True, False])
@pytest.mark.parametrize("dialect", [FINAL, DRAFT])
async def test_listener_tells_the_two_standards_apart(
    both: amqp.Listener, dialect: Any, pipelined: bool
) -> None:
    async with (
        amqp.open_connection(both.url, dialect=dialect, pipelined=pipelined, sasl=False) as connection,
        connection.open_sender("q") as sender,
        connection.open_receiver("q") as receiver,
    ):
        assert isinstance(connection.engine, DraftConnection) is (dialect == DRAFT)
        await sender.send("told")
        assert (await receiver.receive()).message.body == "told"


async def test_peer_that_begins_with_sasl_gets_the_final_standard(both: amqp.Listener) -> None:
    async with (
        amqp.open_connection(both.url, sasl=amqp.sasl.Anonymous()) as connection,
        connection.open_sender("q") as sender,
    ):
        await sender.send("in")


async def test_header_is_answered_before_a_first_frame_that_never_comes(both: amqp.Listener) -> None:
    stream = await trio.open_tcp_stream("127.0.0.1", both.port)
    async with stream:
        await stream.send_all(AMQP_HEADER)
        assert await stream.receive_some(8) == AMQP_HEADER
        await stream.send_eof()
        assert await stream.receive_some(1) == b""


async def test_detection_leaves_users_who_have_to_log_in_to_sasl(nursery: trio.Nursery) -> None:
    container = amqp.Container("guarded")
    container.add_queue("q")
    serve = partial(container.serve, HOST, dialects={DRAFT: {"detect": True}}, sasl=Server(users={"u": "p"}))
    (listener,) = await nursery.start(serve)
    stream = await trio.open_tcp_stream("127.0.0.1", listener.port)
    async with stream:
        await stream.send_all(AMQP_HEADER)
        assert await stream.receive_some(8) == SASL_HEADER
    nursery.cancel_scope.cancel()
