"""Connections of a server: rights, quotas, back-pressure, and their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.served import accepted
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.server.protocol import Amqp091
from trio_amqp10.container import Container, Quotas, Rules

from .script import Client, dialled, opened, started

if TYPE_CHECKING:
    import pytest


async def test_connection_that_is_not_permitted_is_refused_with_530() -> None:
    container = Container(authorise=Rules(("ada", "send", "*")))
    async with dialled(container) as client:
        await started(client)
        await client.ask(spec.ConnectionStartOk(response=b"\0guest\0guest"), 0)
        await client.say(spec.ConnectionTuneOk(channel_max=1, frame_max=4096), channel=0)
        assert (await client.ask(spec.ConnectionOpen(), 0))["reply_code"] == 530
        await client.say(spec.ConnectionCloseOk(), channel=0)
        assert await client.hear() is None
    assert not container.connected


async def test_connection_beyond_a_quota_is_refused_with_530() -> None:
    container = Container(quotas=Quotas(connections=1))
    async with opened(container), dialled(container) as client:
        await started(client)
        await client.ask(spec.ConnectionStartOk(response=b"\0guest\0guest"), 0)
        await client.say(spec.ConnectionTuneOk(channel_max=1, frame_max=4096), channel=0)
        assert (await client.ask(spec.ConnectionOpen(), 0))["reply_code"] == 530


async def test_close_of_the_connection_is_answered_after_the_methods_before_it() -> None:
    container = Container()
    queue = container.add_queue("q")
    async with opened(container) as client:
        await client.publish("", "q", b"1")
        await client.say(spec.ChannelClose())
        await client.say(spec.ConnectionClose(), channel=0)
        assert (await client.hear()).name == "channel.close-ok"  # type: ignore[union-attr]
        assert (await client.hear()).name == "connection.close-ok"  # type: ignore[union-attr]
        assert await client.hear() is None
        assert len(queue) == 1
    assert not container.connected


async def test_publish_is_processed_when_a_close_follows_it_at_once() -> None:
    container = Container()
    queue = container.add_queue("q")
    async with opened(container) as client:
        await client.publish("", "q", b"1")
        await client.say(spec.ConnectionClose(), channel=0)
        assert (await client.hear()).name == "connection.close-ok"  # type: ignore[union-attr]
        assert len(queue) == 1


async def test_service_that_ends_closes_connections_with_320() -> None:
    ours, theirs = memory_stream_pair()
    client = Client(theirs)
    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()

        async def serve() -> None:
            with scope:
                await Amqp091(Container()).serve(accepted(ours))

        nursery.start_soon(serve)
        await client.open()
        scope.cancel()
        close = await client.hear()
        assert close is not None
        assert (close.name, close["reply_code"]) == ("connection.close", 320)
        await client.say(spec.ConnectionCloseOk(), channel=0)
        assert await client.hear() is None


async def test_client_is_blocked_while_memory_is_short_and_unblocked_afterwards() -> None:
    container = Container(memory_limit=4_000)
    container.add_queue("q")
    async with opened(container) as client, opened(container) as other:
        for _ in range(2):
            await client.publish("", "q", bytes(3_000))
        blocked = await client.hear()
        assert blocked is not None
        assert (blocked.name, blocked["reason"]) == ("connection.blocked", b"low on memory")
        await client.say(spec.QueueDeclare(queue="later"))
        await wait_all_tasks_blocked()
        assert "later" not in container.nodes
        assert (await other.ask(spec.QueuePurge(queue="q"))).name == "queue.purge-ok"
        assert (await client.hear()).name == "connection.unblocked"  # type: ignore[union-attr]
        assert (await client.hear()).name == "queue.declare-ok"  # type: ignore[union-attr]


async def test_client_is_not_read_while_a_queue_of_the_program_is_full() -> None:
    container = Container()
    queue = container.add_queue("q", max_length=1)
    async with opened(container) as client, opened(container) as other:
        for _ in range(3):
            await client.publish("", "q")
        await wait_all_tasks_blocked()
        assert len(queue) == 1
        for _ in range(3):
            assert (await other.ask(spec.BasicGet(queue="q", no_ack=True))).name == "basic.get-ok"
        await wait_all_tasks_blocked()
        assert len(queue) == 0


async def test_unacknowledged_message_goes_back_at_once_when_a_method_ends_the_connection() -> None:
    container = Container()
    container.add_queue("q")
    async with opened(container) as client, opened(container) as other:
        await client.publish("", "q", b"1")
        await client.ask(spec.BasicGet(queue="q"))
        close = await client.ask(spec.BasicQos(prefetch_count=1, prefetch_size=1))
        assert (close.name, close["reply_code"]) == ("connection.close", 540)
        assert (await other.ask(spec.BasicGet(queue="q"))).body == b"1"
        await other.say(spec.BasicNack(delivery_tag=1))
        await client.say(spec.ConnectionCloseOk(), channel=0)
    async with opened(container) as client, opened(container) as other:
        await client.ask(spec.BasicGet(queue="q"))
        close = await client.ask(spec.QueueDeclare(queue="s", arguments={"x-queue-type": "stream"}))
        assert (close.name, close["reply_code"]) == ("connection.close", 540)
        assert (await other.ask(spec.BasicGet(queue="q"))).body == b"1"
        await other.say(spec.BasicNack(delivery_tag=1))
    async with opened(container) as client, opened(container) as other:
        await client.ask(spec.BasicGet(queue="q"))
        close = await client.ask(spec.ChannelOpen())
        assert (close.name, close["reply_code"]) == ("connection.close", 504)
        assert (await other.ask(spec.BasicGet(queue="q"))).body == b"1"
        await other.say(spec.BasicNack(delivery_tag=1))
    async with opened(container) as client, opened(container) as other:
        await client.ask(spec.BasicGet(queue="q"))
        container.connected[0].close("amqp:connection:forced", "enough")
        close = await client.hear()
        assert close is not None
        assert (close.name, close["reply_code"]) == ("connection.close", 320)
        assert (await other.ask(spec.BasicGet(queue="q"))).body == b"1"


async def test_connection_is_shown_to_management_with_its_consumers() -> None:
    container = Container()
    async with opened(container, connection_name="mine") as client:
        await client.ask(spec.QueueDeclare(queue="q"))
        await client.ask(spec.BasicConsume(queue="q", consumer_tag="c"))
        (peer,) = container.connected
        assert peer.container_id == "mine"
        assert peer.statistics()["protocol"] == "AMQP 0-9-1"
        (link,) = peer.links()
        assert (link.role, link.name, link.statistics()["address"]) == ("sender", "1/c", "q")


async def test_management_closes_a_connection_with_320() -> None:
    container = Container()
    container.add_management()
    asked = {"operation": "DELETE", "type": "connection", "identity": "1"}
    async with opened(container) as client:
        async with container.connect() as conn, conn.open_requester("$management") as requester:
            reply = await requester.request(amqp.Message(None, application_properties=asked))
            assert reply.application_properties["statusCode"] == 204
        close = await client.hear()
        assert close is not None
        assert (close.name, close["reply_code"]) == ("connection.close", 320)


async def test_connection_ends_quietly_when_the_client_leaves_after_its_limits_were_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    container = Container()
    ours, theirs = memory_stream_pair()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Amqp091(container).serve, accepted(ours))
            client = Client(theirs)
            await started(client)
            await client.ask(spec.ConnectionStartOk(response=b"\0guest\0guest"), 0)
            close = await client.ask(spec.ConnectionTuneOk(frame_max=0xFFFFFFFF), 0)
            assert (close.name, close["reply_code"]) == ("connection.close", 530)
            await theirs.aclose()
    assert not [record for record in caplog.records if record.exc_info]


async def test_connection_ends_quietly_when_its_permission_comes_too_late(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    _ = autojump_clock

    async def authorise(_access: object) -> bool:
        await trio.sleep(100)
        return True

    container = Container(authorise=authorise)
    with trio.fail_after(1000):
        async with dialled(container) as client:
            await started(client)
            await client.ask(spec.ConnectionStartOk(response=b"\0guest\0guest"), 0)
            await client.say(spec.ConnectionTuneOk(channel_max=1, frame_max=4096), channel=0)
            await client.say(spec.ConnectionOpen(), channel=0)
            assert await client.hear() is None
            await trio.sleep(200)
            assert not container.connected
    assert not [record for record in caplog.records if record.exc_info]
