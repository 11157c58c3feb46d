"""RabbitMQ as a client sees it, against the emulator; ``tests/interop/test_rabbitmq_management.py`` has the same with a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10 import rabbitmq
from trio_amqp10.testing import rabbitmq_emulator

from .amqp10.peer.helpers import Node, served

if TYPE_CHECKING:
    from trio.testing import MockClock

NAME = "a/b c%ü"


async def use(conn: amqp.Connection, prefix: str) -> None:
    """All that a client may ask for, at any broker; the names begin with ``prefix``."""
    queue, exchange, other = f"{prefix}{NAME}", f"{prefix}shop", f"{prefix}all"
    async with rabbitmq.open_management(conn) as broker:
        made = await broker.declare_queue(queue, arguments={"x-max-length": 100})
        assert (made.name, made.type, made.durable, made.message_count) == (queue, "classic", True, 0)
        assert await broker.declare_queue(queue, arguments={"x-max-length": 100}) == made
        with pytest.raises(rabbitmq.ManagementError, match="409") as unlike:
            await broker.declare_queue(queue, arguments={"x-max-length": 5})
        assert unlike.value.status == 409
        with pytest.raises(rabbitmq.ManagementError) as absent:
            await broker.queue(f"{prefix}nothing")
        assert absent.value.status == 404

        await broker.declare_exchange(exchange, "topic")
        await broker.declare_exchange(other, "fanout")
        await broker.bind(other, exchange=exchange)
        await broker.bind(exchange, queue=queue, routing_key="*.tea")
        async with conn.open_sender(rabbitmq.exchange_address(exchange, "green.tea")) as sender:
            await sender.send("one")
        async with conn.open_sender(rabbitmq.queue_address(queue)) as sender:
            await sender.send("two")
        assert (await broker.queue(queue)).message_count == 2
        async with conn.open_receiver(rabbitmq.queue_address(queue)) as receiver:
            for body in ("one", "two"):
                delivery = await receiver.receive()
                assert delivery.message.body == body
                delivery.accept()

        await broker.unbind(exchange, queue=queue, routing_key="*.tea")
        await broker.unbind(exchange, queue=queue, routing_key="*.tea")  # there is none
        async with conn.open_sender(rabbitmq.exchange_address(exchange, "green.tea")) as sender:
            with pytest.raises(
                amqp.DeliveryReleasedError, match=r"a broker releases a message for '.*' that no queue takes"
            ):
                await sender.send("three")
        async with conn.open_sender(rabbitmq.queue_address(queue)) as sender:
            await sender.send("four")
        assert await broker.purge_queue(queue) == 1
        await broker.bind(other, queue=queue, arguments={"colour": "red"})
        await broker.unbind(other, queue=queue, arguments={"colour": "blue"})  # another one
        assert await broker.bindings(other, queue=queue) == [{"colour": "red"}]
        assert await broker.bindings(other, exchange=exchange) == [{}]
        assert await broker.bindings(other, queue=queue, routing_key="other") == []
        await broker.unbind(other, queue=queue, arguments={"colour": "red"})
        await broker.delete_exchange(other)
        await broker.delete_exchange(exchange)
        await broker.delete_exchange(exchange)
        assert await broker.delete_queue(queue) == 0
        with pytest.raises(rabbitmq.ManagementError):
            await broker.queue(queue)


async def use_wrongly(conn: amqp.Connection, good: str) -> None:
    """A misspelt queue is an error of its link alone, and a guarantee that there is not has its own."""
    async with conn.open_receiver(good) as receiver, conn.open_sender(good) as sender:
        with pytest.raises(amqp.LinkRefusedError, match="not-found"):
            async with conn.open_sender("/queues/misspelt"):
                pytest.fail("there is no such queue")
        await sender.send("tea")
        (await receiver.receive()).accept()


async def test_client_declares_binds_and_deletes() -> None:
    async with rabbitmq_emulator.RabbitMQ().container.connect() as conn:
        await use(conn, "")


async def test_misspelt_queue_ends_no_other_link() -> None:
    emulator = rabbitmq_emulator.RabbitMQ()
    emulator.declare_queue("tea")
    async with emulator.container.connect() as conn:
        await use_wrongly(conn, "/queues/tea")


async def test_links_have_sessions_of_their_own_where_the_peer_says_that_it_is_rabbitmq() -> None:
    container = amqp.Container()
    container.add_queue("q")
    async with container.connect() as conn, conn.open_sender("q"), conn.open_receiver("q"):
        assert len(conn.sessions) == 1
    says = {"properties": {"product": "RabbitMQ"}}
    async with served(Node().handle, accept=says, channel_max=3) as conn:
        async with conn.open_sender("/queues/q") as one, conn.open_sender("/queues/q") as two:
            assert len({one.session, two.session}) == 2
            async with conn.open_sender("/queues/q") as three, conn.open_sender("/queues/q") as four:
                assert (
                    three.session is not four.session
                )  # no more than four: the last is on the first session
            async with conn.open_sender("/queues/q", own_session=False) as shared:
                assert shared.session not in (one.session, two.session)
            async with conn.open_sender("/queues/q", session=one.session) as beside:
                assert beside.session is one.session
            pair = {"name": "pair", "properties": {"paired": True}}
            async with conn.open_sender("/q", **pair) as out, conn.open_receiver("/q", **pair) as back:
                assert out.session is back.session
        assert len(conn.sessions) == 1


@pytest.mark.parametrize("options", [{}, {"queue": "q", "exchange": "e"}])
async def test_binding_leads_to_one_place(options: dict[str, str]) -> None:
    async with (
        rabbitmq_emulator.RabbitMQ().container.connect() as conn,
        rabbitmq.open_management(conn) as broker,
    ):
        with pytest.raises(
            amqp.LocalProtocolError, match=r"either queue=\.\.\. or exchange=\.\.\., not both"
        ):
            await broker.bind("amq.direct", **options)


async def test_peer_that_does_not_answer_is_too_slow(autojump_clock: MockClock) -> None:
    container = amqp.Container()
    container.add_queue("/management")
    async with container.connect() as conn, rabbitmq.open_management(conn, timeout=5) as broker:
        with pytest.raises(trio.TooSlowError):
            await broker.queue("q")


def test_addresses_are_percent_encoded() -> None:
    assert rabbitmq.queue_address("a/b c") == "/queues/a%2Fb%20c"
    assert rabbitmq.exchange_address("e", "k.ü") == "/exchanges/e/k.%C3%BC"
    assert rabbitmq.exchange_address("e") == "/exchanges/e"
    with pytest.raises(amqp.LocalProtocolError, match=r"queue_address\('q'\)"):
        rabbitmq.exchange_address("", "q")
