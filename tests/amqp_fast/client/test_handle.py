"""Handles of the client: sent, received, browsed, paused and closed."""

from __future__ import annotations

import pytest
import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

from tests.container.served import OneOctetStream
from trio_amqp10 import amqp_fast
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.amqp_fast.wire.frames import frame_of
from trio_amqp10.core.errors import LocalProtocolError

from .linked import channelled, connected, with_nodes


async def test_message_goes_through_a_queue() -> None:
    async with channelled() as channel, channel.open_handle("q") as handle:
        await handle.send(b"one", identifier="id", headers={"n": 1})
        await handle.send(amqp_fast.Message(amqp_fast.MessageHead(priority=7), b"two"), confirm=False)
        await handle.consume()
        first, second = await handle.receive(), await handle.receive()
        assert (first.body, first.head.identifier, first.head.headers) == (b"two", "", {})
        assert (second.body, second.head.headers, second.destination) == (b"one", {"n": 1}, "q")
        assert not first.redelivered
        second.ack()
        connection = channel.connection
        connection.ping()
        assert repr(connection) == "<Connection OPEN, 1 channels>"
        assert repr(handle).startswith("<Handle 1")
        assert repr(channel) == "<Channel 1>"


async def test_large_message_goes_in_fragments_on_a_restartable_channel() -> None:
    limits = Limits(frame_max=2048)
    async with (
        connected(limits=limits) as connection,
        connection.open_channel(restartable=True) as channel,
        channel.open_handle("q") as handle,
    ):
        await handle.send(b"x" * 20_000)
        await handle.consume()
        assert (await handle.receive()).body == b"x" * 20_000


async def test_query_and_browse_show_what_there_is() -> None:
    async with channelled() as channel, channel.open_handle("q") as handle:
        for number in range(3):
            await handle.send(b"%d" % number, headers={"n": number})
        assert await handle.query() == [range(1, 4)]
        assert await handle.query(selector=b"n=1") == [range(2, 3)]
        with pytest.raises(amqp_fast.NotAvailableError) as caught:
            await handle.browse(99)
        assert caught.value.code == 310
        assert (await handle.browse(1)).body == b"0"


async def test_unget_pause_and_resume() -> None:
    async with channelled() as channel, channel.open_handle("q") as handle:
        await handle.consume(1)
        await handle.send(b"one")
        delivery = await handle.receive()
        await handle.pause()
        delivery.unget()
        await wait_all_tasks_blocked()
        assert not handle._inbox
        await handle.resume()
        assert (await handle.receive()).body == b"one"


@pytest.mark.parametrize(("unreliable", "transacted"), [(False, False), (True, False), (False, True)])
async def test_handle_gives_back_what_was_not_received_as_it_is_closed(
    unreliable: bool, transacted: bool
) -> None:
    container = with_nodes()
    async with connected(container, wrap=OneOctetStream) as connection:
        async with connection.open_channel() as channel, channel.open_handle("q") as handle:
            for body in (b"1", b"2", b"3"):
                await handle.send(body)
        async with (
            connection.open_channel(transacted=transacted) as channel,
            channel.open_handle("q") as handle,
        ):
            await handle.consume(prefetch=3, unreliable=unreliable)
            assert (await handle.receive()).body == b"1"
            await wait_all_tasks_blocked()
            assert handle.buffered == 2
        counts: list[int] = []
        expected = [] if unreliable else [1, 1, 1] if transacted else [1, 0, 0]
        async with container.connect() as local, local.open_receiver("q") as receiver:
            for _ in expected:
                delivery = await receiver.receive()
                counts.append(delivery.message.delivery_count)
                delivery.accept()
        assert counts == expected
        assert container.nodes["q"].statistics()["available"] == 0


async def test_durable_subscription_is_cancelled() -> None:
    async with (
        channelled(client_name="ada") as channel,
        channel.open_handle("t", service="topic") as handle,
    ):
        await handle.consume(identifier="mine")
        await handle.cancel("mine")
        with pytest.raises(amqp_fast.HandleClosedError) as caught:
            await handle.cancel("mine")
        assert caught.value.code == 404


async def test_temporary_queue_has_the_name_of_the_server() -> None:
    async with channelled() as channel, channel.open_handle(temporary=True) as handle:
        assert handle.name.startswith("temporary/")
        await handle.consume(unreliable=True)
        await handle.send(b"one")
        assert (await handle.receive()).body == b"one"


async def test_function_answers() -> None:
    async with channelled() as channel, channel.open_handle("upper", service="peer") as handle:
        await handle.send(b"one", identifier="r1")
        reply = await handle.receive()
        assert (reply.body, reply.head.identifier, reply.number) == (b"ONE", "r1", 1)


async def test_handle_that_is_refused_raises_and_the_channel_lives() -> None:
    async with channelled() as channel:
        async with channel.open_handle("nothing") as handle:
            with pytest.raises(amqp_fast.HandleClosedError) as caught:
                await handle.send(b"one")
            assert caught.value.code == 404
            with pytest.raises(amqp_fast.HandleClosedError):
                await handle.receive()
        with pytest.raises(amqp_fast.HandleClosedError):
            async with channel.open_handle("q", temporary=True):
                pass
        with pytest.raises(LocalProtocolError):
            async with channel.open_handle("q", service="other"):  # type: ignore[arg-type]
                pass
        async with channel.open_handle("q") as handle:
            with pytest.raises(LocalProtocolError):
                await handle.send(b"one", priority=77)
            with pytest.raises(LocalProtocolError):
                await handle.consume(identifier="x")
            await handle.send(b"one")


async def test_iteration_ends_when_the_handle_is_closed() -> None:
    got = []
    async with channelled() as channel, trio.open_nursery() as nursery, channel.open_handle("q") as handle:

        async def read() -> None:
            got.extend([delivery.body async for delivery in handle])

        nursery.start_soon(read)
        await handle.consume()
        await handle.send(b"one")
        await wait_all_tasks_blocked()
    assert got == [b"one"]


async def test_rule_that_the_server_breaks_closes_the_handle() -> None:
    ours, theirs = memory_stream_pair()

    async def serve() -> None:
        await ours.send_all(frame_of(spec.ConnectionChallenge(mechanisms="NONE")))
        await ours.send_all(frame_of(spec.ConnectionTune(options={"FRAME_MAX": 4096})))
        await ours.send_all(frame_of(spec.ConnectionReply(confirm_tag=1)))
        await wait_all_tasks_blocked()
        await ours.send_all(frame_of(spec.ChannelReply(channel_id=1, confirm_tag=1)))
        await wait_all_tasks_blocked()
        await ours.send_all(frame_of(spec.HandleReply(handle_id=1, confirm_tag=1)))
        await wait_all_tasks_blocked()
        notify = spec.HandleNotify(handle_id=1, delivered=True, out_of_band=True)
        await ours.send_all(frame_of(notify))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        async with (
            amqp_fast.open_connection(theirs, close_timeout=0) as connection,
            connection.open_channel() as channel,
            channel.open_handle("q") as handle,
        ):
            with pytest.raises(amqp_fast.HandleClosedError) as caught:
                await handle.consume()
            assert caught.value.code == 540
            await ours.aclose()
