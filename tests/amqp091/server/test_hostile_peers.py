"""Peers that are slow, silent or greedy; and 0-9-1 on TLS and WebSockets."""

from __future__ import annotations

import socket
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp
from bench import memory_amqp091
from tests.amqp091.pairs import written
from tests.amqp10.peer.authority import authority, serving
from tests.container.served import accepted
from trio_amqp10 import amqp091
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.server.protocol import Amqp091
from trio_amqp10.amqp091.wire.frames import PROTOCOL_HEADER
from trio_amqp10.container import Container

from .script import Client, dialled, opened

pytestmark = pytest.mark.whole


async def test_peer_that_never_reads_is_given_no_more_than_the_write_buffer() -> None:
    container = Container(memory_limit=None)
    limits = amqp091.Limits(write_buffer=100_000)
    ours, theirs = (trio.SocketStream(trio.socket.from_stdlib_socket(each)) for each in socket.socketpair())
    async with opened(container) as client, trio.open_nursery() as nursery, theirs:
        nursery.start_soon(Amqp091(container, limits=limits).serve, accepted(ours))
        silent = Client(theirs)
        await silent.open()
        await client.ask(spec.QueueDeclare(queue="q"))
        await silent.ask(spec.BasicConsume(queue="q", consumer_tag="c", no_ack=True))
        for _ in range(100):
            await client.publish("", "q", bytes(50_000))
        assert (await client.ask(spec.QueueDeclare(queue="q")))["message_count"] >= 80
        slow = next(each for each in container.connected if each.statistics()["senders"])
        assert slow.statistics()["waiting"] <= 200_000
        for _ in range(100):  # it goes on when it reads
            assert (await silent.hear()).name == "basic.deliver"  # type: ignore[union-attr]
        nursery.cancel_scope.cancel()


async def test_peer_that_says_one_octet_at_a_time_is_served() -> None:
    octets = PROTOCOL_HEADER
    for channel, method in (
        (0, spec.ConnectionStartOk(response=b"\0guest\0guest")),
        (0, spec.ConnectionTuneOk(channel_max=1, frame_max=4096)),
        (0, spec.ConnectionOpen()),
        (1, spec.ChannelOpen()),
        (1, spec.QueueDeclare(queue="q")),
    ):
        octets += written(method, channel)
    async with dialled(Container()) as client:
        for octet in octets:
            await client.stream.send_all(bytes([octet]))
        heard = [await client.hear() for _ in range(5)]
        assert [each.name for each in heard if each is not None] == [
            "connection.start",
            "connection.tune",
            "connection.open-ok",
            "channel.open-ok",
            "queue.declare-ok",
        ]


@pytest.mark.parametrize("octets", [PROTOCOL_HEADER, PROTOCOL_HEADER + b"\1\0\0\0\0\1\0" + bytes(256)])
async def test_peer_that_takes_its_time_in_the_handshake_is_closed(
    octets: bytes, autojump_clock: trio.testing.MockClock
) -> None:
    _ = autojump_clock
    ours, theirs = memory_stream_pair()
    acceptor_limits = amqp.Limits(header_timeout=10, handshake_timeout=30)
    container = Container()
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(
            partial(container.serve, "amqp://127.0.0.1:0", dialects="all", limits=acceptor_limits)
        )
        nursery.start_soon(Amqp091(container).serve, accepted(ours))
        with trio.move_on_after(600):
            for octet in octets:
                await trio.sleep(9)
                try:
                    await theirs.send_all(bytes([octet]))
                except trio.BrokenResourceError:
                    break
            while await theirs.receive_some():
                pass
        assert trio.current_time() - began <= 60
        assert listeners
        nursery.cancel_scope.cancel()
    assert not container.connected


async def test_channels_beyond_the_highest_number_end_the_connection() -> None:
    container = Container()
    async with opened(container) as client:
        octets = b"".join(written(spec.ChannelOpen(), number) for number in range(2, 10_001))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_say_all, client, octets)
            heard = [await client.hear() for _ in range(2047)]
            nursery.cancel_scope.cancel()
        names = [each.name for each in heard if each is not None]
        assert names == ["channel.open-ok"] * 2046 + ["connection.close"]
        assert heard[-1] is not None
        assert heard[-1]["reply_code"] == 504
        await wait_all_tasks_blocked()
        assert all(not each.statistics()["sessions"] for each in container.connected)


async def _say_all(client: Client, octets: bytes) -> None:
    await client.stream.send_all(octets)


async def test_methods_behind_a_failing_one_are_dropped_on_all_channels_at_once() -> None:
    container = Container()
    async with opened(container) as client:
        for number in range(2, 11):
            await client.ask(spec.ChannelOpen(), number)
        for number in range(1, 11):
            failing = spec.QueueDeclare(queue="nope", passive=True)
            behind = [spec.QueueDeclare(queue=f"q{number}.{n}") for n in range(98)]
            await client.say(failing, *behind, channel=number)
        closed = [await client.hear() for _ in range(10)]
        assert [each.name for each in closed if each is not None] == ["channel.close"] * 10
        assert {each["reply_code"] for each in closed if each is not None} == {404}
        for number in range(1, 11):
            await client.say(spec.ChannelCloseOk(), channel=number)
            assert (await client.ask(spec.ChannelOpen(), number)).name == "channel.open-ok"
        assert not [name for name in container.nodes if name.startswith("q")]


async def test_message_whose_header_is_larger_than_a_frame_is_delivered_in_one() -> None:
    container = Container()
    async with opened(container) as client, dialled(container) as narrow:
        await narrow.log_in(frame_max=4096)
        assert (await narrow.ask(spec.ConnectionOpen(), 0)).name == "connection.open-ok"
        await narrow.ask(spec.ChannelOpen())
        await narrow.ask(spec.QueueDeclare(queue="q"))
        await narrow.ask(spec.BasicQos(prefetch_count=1, global_=True))
        await narrow.ask(spec.BasicConsume(queue="q", consumer_tag="c"))
        await client.publish("", "q", b"1", headers={"x": "y" * 5000})
        await client.publish("", "q", b"2")
        large = await narrow.hear()
        assert large is not None
        assert (large.body, "y" * 5000 in repr(large.properties)) == (b"1", True)
        await narrow.say(spec.BasicAck(delivery_tag=1))
        assert (await narrow.hear()).body == b"2"  # type: ignore[union-attr]


@pytest.mark.parametrize(("kind", "goal"), memory_amqp091.GOALS.items())
def test_connection_channel_and_consumer_cost_no_more_memory_than_they_may(kind: str, goal: int) -> None:
    each, _ = memory_amqp091.measure(kind, more=100)
    assert each < goal * 1.3  # of a hundred, the tables that grow by doubling are no small part


# -- layers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "options"),
    [
        ("amqps", {"ssl_context": True}),
        ("amqpws", {}),
        ("amqpwss", {"ssl_context": True}),
        ("amqp", {"detect": True}),
    ],
)
async def test_both_protocols_are_served_on_every_layer(scheme: str, options: dict[str, Any]) -> None:
    container = Container()
    trusted = {"cafile": authority().cafile} if "ssl_context" in options else {}
    if trusted:
        options = {"ssl_context": serving()}
    async with trio.open_nursery() as nursery:
        serve = partial(container.serve, f"{scheme}://127.0.0.1:0", dialects="all", **options)
        listeners = await nursery.start(serve)
        host = "localhost" if trusted else "127.0.0.1"
        schemes = [scheme, "amqpws"] if options.get("detect") else [scheme]
        for each in schemes:
            url = f"{each}://{host}:{listeners[0].port}"
            async with (
                amqp091.open_connection(url, **trusted) as old,
                old.open_channel() as channel,
                amqp.open_connection(url, **trusted) as new,
                new.open_receiver("q") as receiver,
            ):
                await channel.declare_queue("q")
                await channel.publish("", "q", b"over any layer")
                delivery = await receiver.receive()
                assert delivery.message.body == b"over any layer"
                delivery.accept()
        nursery.cancel_scope.cancel()
