"""The 0-9-1 client against real brokers: RabbitMQ 4, and 3.10."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from tests.amqp10.peer.authority import authority
from trio_amqp10 import amqp091
from trio_amqp10.sasl import AuthenticationError

if TYPE_CHECKING:
    from .rabbitmq import Broker

SECONDS = 60


def url_of(broker: Broker) -> str:
    return f"amqp091://guest:guest@127.0.0.1:{broker.port}/%2f"


def fresh(name: str) -> str:
    return f"{name}-{os.urandom(4).hex()}"


async def test_client_declares_publishes_and_consumes(broker: Broker) -> None:
    with trio.fail_after(SECONDS):
        async with (
            amqp091.open_connection(url_of(broker), connection_name="interop") as connection,
            connection.open_channel(prefetch=100) as channel,
        ):
            assert connection.server_properties["product"] == "RabbitMQ"
            exchange = await channel.declare_exchange(fresh("prices"), "topic", auto_delete=True)
            queue = await channel.declare_queue(fresh("q"), exclusive=True, arguments={"x-max-length": 1000})
            await queue.bind(exchange, "eu.*")
            async with connection.open_publisher() as out:
                for n in range(300):
                    await out.transmit(exchange, "eu.tea", b"%d" % n, headers={"n": n}, delivery_mode=2)
            async with queue.consume() as consumer:
                for n in range(300):
                    delivery = await consumer.receive()
                    assert (delivery.body, delivery.headers) == (b"%d" % n, {"n": n})
                    delivery.ack()
            assert await queue.get() is None
            assert (await channel.declare_queue(queue.name, passive=True)).message_count == 0


@pytest.mark.parametrize("size", [0, 1, 131_064, 131_065, 3_000_000])
async def test_client_carries_bodies_of_all_sizes(broker: Broker, size: int) -> None:
    body = os.urandom(size)
    with trio.fail_after(SECONDS):
        async with (
            amqp091.open_connection(url_of(broker), frame_max=8192) as connection,
            connection.open_publisher() as out,
        ):
            queue = await out.declare_queue(exclusive=True)
            assert queue.name.startswith("amq.gen-")
            await out.publish("", queue.name, body, mandatory=True)
            got = await queue.get()
            assert got is not None
            assert got.body == body
            got.ack()


async def test_client_reports_what_is_refused(broker: Broker) -> None:
    with trio.fail_after(SECONDS):
        async with amqp091.open_connection(url_of(broker)) as connection:
            name = fresh("q")
            async with connection.open_publisher() as out:
                await out.declare_queue(
                    name, exclusive=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"}
                )
                await out.publish("", name, b"1")
                refused = 0
                for _ in range(5):
                    try:
                        await out.publish("", name, b"2")
                    except amqp091.NackedError:
                        refused += 1
                assert refused >= 4
                with pytest.raises(amqp091.ReturnedError, match="312 NO_ROUTE"):
                    await out.publish("amq.direct", "nowhere", b"", mandatory=True, headers={"BCC": ["x"]})
                with pytest.raises(amqp091.NotFoundError, match="no exchange"):
                    await out.publish("nope", "", b"")
            async with connection.open_channel() as channel:
                with pytest.raises(amqp091.PreconditionFailedError, match="inequivalent arg"):
                    await channel.declare_queue(name, exclusive=True)
            async with connection.open_channel() as channel:
                with pytest.raises(amqp091.AccessRefusedError):
                    await channel.declare_queue("amq.mine")
            async with amqp091.open_connection(url_of(broker)) as other, other.open_channel() as channel:
                with pytest.raises(amqp091.ResourceLockedError):
                    await channel.declare_queue(name, passive=True)


async def test_client_reports_a_refused_login_and_virtual_host(broker: Broker) -> None:
    with trio.fail_after(SECONDS):
        with pytest.raises(AuthenticationError, match="ACCESS_REFUSED"):
            await amqp091.open_connection(f"amqp091://guest:wrong@127.0.0.1:{broker.port}").__aenter__()
        with pytest.raises(amqp091.ConnectionClosedError, match="530"):
            await amqp091.open_connection(f"amqp091://guest:guest@127.0.0.1:{broker.port}/nope").__aenter__()


async def test_client_has_transactions(broker: Broker) -> None:
    with trio.fail_after(SECONDS):
        async with (
            amqp091.open_connection(url_of(broker)) as connection,
            connection.open_channel() as channel,
        ):
            queue = await channel.declare_queue(exclusive=True)
            async with connection.open_transaction() as transaction:
                await transaction.publish("", queue.name, b"1")
            with pytest.raises(ZeroDivisionError):
                async with connection.open_transaction() as transaction:
                    await transaction.publish("", queue.name, b"2")
                    raise ZeroDivisionError
            async with connection.open_transaction() as transaction:
                got = await transaction.queue(queue.name).get()
                assert got is not None
                got.ack()
                await transaction.rollback()
                assert not got.settled
                got.ack()
            assert await queue.purge() == 0


async def test_client_asks_over_direct_reply_to(broker: Broker) -> None:
    async def serve(
        connection: amqp091.Connection,
        name: str,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        async with connection.open_channel() as channel:
            queue = await channel.declare_queue(name, exclusive=True)
            async with queue.consume() as consumer:
                task_status.started()
                async for request in consumer:
                    properties = request.properties
                    await channel.publish(
                        "",
                        properties.reply_to or "",
                        request.body.upper(),
                        correlation_id=properties.correlation_id or "",
                    )
                    request.ack()

    with trio.fail_after(SECONDS):
        async with amqp091.open_connection(url_of(broker)) as connection, trio.open_nursery() as nursery:
            name = fresh("upper")
            await nursery.start(serve, connection, name)
            async with connection.open_requester(name) as requester:
                for body in (b"a", b"b"):
                    assert (await requester.request(body)).body == body.upper()
            async with connection.open_requester("nobody") as requester:
                with pytest.raises(amqp091.ReturnedError):
                    await requester.request(b"")
            nursery.cancel_scope.cancel()


async def test_consumer_is_cancelled_with_its_queue(broker: Broker) -> None:
    with trio.fail_after(SECONDS):
        async with (
            amqp091.open_connection(url_of(broker)) as connection,
            connection.open_channel() as channel,
        ):
            queue = await channel.declare_queue(fresh("q"))
            async with queue.consume() as consumer:
                await queue.delete()
                with pytest.raises(amqp091.ConsumerCancelledError):
                    await consumer.receive()


async def test_consumer_settles_in_every_way(broker: Broker) -> None:
    with trio.fail_after(SECONDS):
        async with amqp091.open_connection(url_of(broker)) as connection, connection.open_publisher() as out:
            dead = await out.declare_queue(exclusive=True)
            queue = await out.declare_queue(
                exclusive=True,
                arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.name},
            )
            for n in range(6):
                await out.transmit("", queue.name, b"%d" % n)
            await out.wait_confirmed()
            async with queue.consume(priority=3, exclusive=True) as consumer:
                first = await consumer.receive_many(1)
                while len(first) < 6:
                    first += await consumer.receive_many(6)
                first[1].ack(multiple=True)
                first[2].nack()
                first[3].reject(requeue=False)
                first[5].nack(multiple=True, requeue=False)
                again = await consumer.receive()
                assert (again.body, again.redelivered) == (b"2", True)
                again.ack()
            while (await out.declare_queue(dead.name, passive=True)).message_count < 3:  # noqa: ASYNC110 - the broker's doing
                await trio.sleep(0.01)
            found = [await dead.get(no_ack=True) for _ in range(3)]
            assert sorted(each.body for each in found if each) == [b"3", b"4", b"5"]
            assert found[0] is not None
            assert found[0].headers["x-death"][0]["reason"] == "rejected"


async def test_consumer_without_acknowledgements_is_held_back_by_its_buffer(broker: Broker) -> None:
    with trio.fail_after(SECONDS):
        async with amqp091.open_connection(url_of(broker)) as connection, connection.open_publisher() as out:
            queue = await out.declare_queue(exclusive=True)
            for _ in range(200):
                await out.transmit("", queue.name, bytes(10_000))
            await out.wait_confirmed()
            async with queue.consume(no_ack=True, prefetch=10) as consumer:
                for _ in range(200):
                    assert len((await consumer.receive()).body) == 10_000


async def test_publisher_waits_while_an_alarm_blocks_it(broker: Broker) -> None:
    alarm = "{{resource_limit, memory, node()}, []}"
    with trio.fail_after(SECONDS):
        async with amqp091.open_connection(url_of(broker)) as connection, connection.open_publisher() as out:
            queue = await out.declare_queue(exclusive=True)
            await out.publish("", queue.name, b"1")
            broker.evaluate(f"rabbit_alarm:set_alarm({alarm})")
            try:
                with trio.move_on_after(10):
                    while connection.blocked is None:  # a connection is blocked by a publish of its own
                        await out.publish("", queue.name, b"2")
                assert connection.blocked is not None
                assert "memory" in connection.blocked
            finally:
                broker.evaluate("rabbit_alarm:clear_alarm({resource_limit, memory, node()})")
            await connection.wait_unblocked()
            await out.publish("", queue.name, b"3")


async def test_connection_forced_by_the_operator_comes_back(broker: Broker) -> None:
    with trio.fail_after(SECONDS):
        async with (
            amqp091.open_connection(url_of(broker)) as plain,
            amqp091.open_connection(url_of(broker), reconnect=True) as connection,
            connection.open_channel() as channel,
        ):
            queue = await channel.declare_queue(exclusive=True)
            name = queue.name
            changes = connection.changes()
            broker.evaluate(
                '[rabbit_networking:close_connection(P, "by hand") || P <- rabbit_networking:connections()]'
            )
            with pytest.raises(amqp091.ConnectionClosedError, match="320 CONNECTION_FORCED") as caught:
                await plain.wait_closed()
            assert caught.value.code == 320
            assert (await changes.__anext__()).kind == "lost"
            assert (await changes.__anext__()).kind == "restored"
            assert queue.name != name
            assert await queue.get() is None


async def test_client_takes_a_new_secret(broker: Broker) -> None:
    with trio.fail_after(SECONDS):
        async with amqp091.open_connection(url_of(broker)) as connection:
            await connection.update_secret(b"guest", "as before")
            async with connection.open_channel() as channel:
                await channel.declare_queue(exclusive=True)


async def test_heartbeats_keep_an_idle_connection_alive(broker: Broker) -> None:
    with trio.fail_after(SECONDS):
        async with (
            amqp091.open_connection(url_of(broker), heartbeat=1) as connection,
            connection.open_channel() as channel,
        ):
            assert connection.heartbeat == 1
            await trio.sleep(5)
            await channel.declare_queue(exclusive=True)


async def test_client_logs_in_by_a_certificate(rabbitmq4: Broker) -> None:
    ann = authority("clients").issue(common_name="ann").file
    with trio.fail_after(SECONDS):
        async with (
            amqp091.open_connection(
                f"amqp091s://localhost:{rabbitmq4.tls_port}", cafile=authority().cafile, certfile=ann
            ) as connection,
            connection.open_channel() as channel,
        ):
            queue = await channel.declare_queue(exclusive=True)
            assert await queue.get() is None


async def test_quorum_queue_counts_and_limits_deliveries(rabbitmq4: Broker) -> None:
    with trio.fail_after(SECONDS):
        async with (
            amqp091.open_connection(url_of(rabbitmq4)) as connection,
            connection.open_publisher() as out,
        ):
            queue = await out.declare_queue(
                fresh("quorum"), durable=True, arguments={"x-queue-type": "quorum", "x-delivery-limit": 2}
            )
            await out.publish("", queue.name, b"1")
            counts = []
            async with queue.consume() as consumer:
                for _ in range(3):
                    delivery = await consumer.receive()
                    counts.append(delivery.headers.get("x-delivery-count", 0))
                    delivery.nack()
            assert counts == [0, 1, 2]
            await queue.delete()


async def test_stream_is_read_from_an_offset(rabbitmq4: Broker) -> None:
    with trio.fail_after(SECONDS):
        async with (
            amqp091.open_connection(url_of(rabbitmq4)) as connection,
            connection.open_publisher() as out,
        ):
            stream = await out.declare_queue(
                fresh("stream"), durable=True, arguments={"x-queue-type": "stream"}
            )
            for n in range(10):
                await out.transmit("", stream.name, b"%d" % n)
            await out.wait_confirmed()
            async with stream.consume(arguments={"x-stream-offset": 4}) as consumer:
                for n in range(4, 10):
                    delivery = await consumer.receive()
                    assert (delivery.body, delivery.headers["x-stream-offset"]) == (b"%d" % n, n)
                    delivery.ack()
            await stream.delete()


def test_nothing_is_lost_in_three_restarts(broker: Broker) -> None:
    trio.run(_restart, broker)  # a restart may take longer than other tests do


async def _restart(broker: Broker) -> None:
    sent: set[bytes] = set()
    seen: dict[bytes, int] = {}
    name = fresh("restarts")
    done = trio.Event()

    async def publish(connection: amqp091.Connection) -> None:
        async with connection.open_publisher(window=50) as out:
            number = 0
            while not done.is_set():
                sent.add(body := b"%d" % number)
                number += 1
                await out.transmit("", name, body, delivery_mode=2)
                await trio.sleep(0.002)
            sent.add(b"last")
            await out.publish("", name, b"last", delivery_mode=2)

    async def consume(connection: amqp091.Connection) -> None:
        async with connection.open_channel(prefetch=20) as channel, channel.queue(name).consume() as consumer:
            async for delivery in consumer:
                seen[delivery.body] = seen.get(delivery.body, 0) + 1
                try:
                    delivery.ack()
                except amqp091.DeliveryLostError:
                    continue
                if b"last" in seen and sent <= seen.keys():
                    return

    backoff = amqp091.Backoff(maximum=1.0)
    with trio.fail_after(3 * SECONDS):
        async with (
            amqp091.open_connection(url_of(broker), reconnect=backoff) as first,
            amqp091.open_connection(url_of(broker), reconnect=backoff) as second,
        ):
            async with first.open_channel() as channel:
                await channel.declare_queue(name, durable=True)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(publish, first)
                nursery.start_soon(consume, second)
                for _ in range(3):
                    await trio.sleep(0.5)
                    before = len(seen)
                    await trio.to_thread.run_sync(partial(broker.evaluate, "rabbit:stop()"))
                    await trio.to_thread.run_sync(partial(broker.evaluate, "rabbit:start()"))
                    while len(seen) < before + 50:  # noqa: ASYNC110 - the consumer does not stop for this
                        await trio.sleep(0.05)
                done.set()
            assert first.statistics()["transports"] >= 4
            assert second.statistics()["transports"] >= 4
            async with first.open_channel() as channel:
                await channel.delete_queue(name)
    assert sent <= seen.keys(), f"{len(sent - seen.keys())} of {len(sent)} are lost"
