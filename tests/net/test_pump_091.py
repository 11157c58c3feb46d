"""The pump with the engine of AMQP 0-9-1, as client and as server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

from tests.amqp091.pairs import OPENING, written
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.engine import Engine
from trio_amqp10.amqp091.engine.events import (
    ChannelOpened,
    ConnectionClosed,
    ConnectionLost,
    OpenRequested,
    StartAnswered,
    Started,
)
from trio_amqp10.amqp091.wire.content import BasicProperties, Content
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.net.pump import Pump
from trio_amqp10.net.waiters import OneShotEvent

if TYPE_CHECKING:
    from trio_amqp10.amqp091.engine.channel import Channel


class End:
    """An engine with its pump, which answers the handshake and stores events."""

    def __init__(self, role: EndpointRole, stream: trio.abc.Stream) -> None:
        self.engine = Engine(role, trio.current_time())
        self.events: list[Any] = []
        self.pump = Pump(self.engine, stream, self.on_event, lambda: None)
        self.arrived = OneShotEvent()
        self.opened = OneShotEvent()
        self.channel: Channel | None = None

    def on_event(self, event: Any) -> None:
        now = trio.current_time()
        self.events.append(event)
        if isinstance(event, Started):
            self.engine.answer_start(spec.ConnectionStartOk(response=b"\0ada\0secret"), now)
        elif isinstance(event, StartAnswered):
            self.engine.accept_login("ada", now)
        elif isinstance(event, OpenRequested):
            self.engine.accept_open(now)
        elif isinstance(event, ChannelOpened):
            self.channel = event.channel
            event.channel.on_touch = self.arrived.set
        if self.engine.is_open:
            self.opened.set()


async def test_pump_carries_a_publish_from_a_client_to_a_server(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        client, server = End(EndpointRole.CLIENT, ours), End(EndpointRole.SERVER, theirs)
        for end in (client, server):
            end.pump.start(nursery)
        await client.opened.wait()
        channel = client.engine.open_channel()
        channel.send(spec.BasicPublish(routing_key="q"), Content(BasicProperties(), bytes(500_000)))
        client.pump.wake_writer()
        await server.arrived.wait()
        assert server.channel is not None
        arrival = server.channel.next_arrival()
        assert arrival is not None
        assert arrival.content is not None
        assert len(arrival.content.body) == 500_000
        await trio.sleep(600)  # heartbeats keep both alive
        assert client.engine.is_open
        assert server.engine.is_open
        client.engine.close(trio.current_time())
        client.pump.wake_writer()
        await client.pump.finished.wait()
        await server.pump.finished.wait()
    assert client.pump.failure is server.pump.failure is None


async def test_pump_gives_up_a_peer_without_heartbeats(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        server = End(EndpointRole.SERVER, theirs)
        server.pump.start(nursery)
        await ours.send_all(OPENING)
        await server.opened.wait()
        began = trio.current_time()
        await server.pump.finished.wait()
        assert 120 <= trio.current_time() - began < 122
    assert server.events[-1] == ConnectionLost("the peer was silent for 120 s, two heartbeats")


async def test_pump_reads_what_a_client_still_sends_behind_its_close(autojump_clock: MockClock) -> None:
    """amqplib sends its close before publishes that wait on a channel.

    If these were unread when the stream closes, the system would reset it and the close-ok would be lost.
    """
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        server = End(EndpointRole.SERVER, theirs)
        server.pump.start(nursery)
        await ours.send_all(OPENING)
        await server.opened.wait()
        await ours.send_all(written(spec.ConnectionClose()))
        said = b"".join([data async for data in ours])  # up to the end of the server's direction
        assert said.endswith(written(spec.ConnectionCloseOk()))
        for _ in range(3):
            await trio.sleep(0.3)
            await ours.send_all(written(spec.BasicPublish(), 1))
        assert not server.pump.finished.is_set()
        await ours.aclose()
        await server.pump.finished.wait()
    assert server.pump.failure is None
    assert [type(event) for event in server.events[-2:]] == [OpenRequested, ConnectionClosed]


async def test_pump_closes_the_stream_where_a_client_that_closed_does_not(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        server = End(EndpointRole.SERVER, theirs)
        server.pump.start(nursery)
        await ours.send_all(OPENING)
        await server.opened.wait()
        await ours.send_all(written(spec.ConnectionClose()))
        began = trio.current_time()
        await server.pump.finished.wait()
        assert trio.current_time() - began == pytest.approx(1.0)
    assert server.pump.failure is None


class Thinking(End):
    """A server that takes two seconds for each decision."""

    def __init__(self, stream: trio.abc.Stream, nursery: trio.Nursery) -> None:
        super().__init__(EndpointRole.SERVER, stream)
        self._nursery = nursery

    def on_event(self, event: Any) -> None:
        if isinstance(event, (StartAnswered, OpenRequested)):
            self._nursery.start_soon(self._decide, event)
        else:
            super().on_event(event)

    async def _decide(self, event: Any) -> None:
        await trio.sleep(2)
        super().on_event(event)
        self.pump.settle()


async def test_pump_goes_on_with_a_pipelined_opening_after_each_decision(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        server = Thinking(theirs, nursery)
        server.pump.start(nursery)
        await ours.send_all(OPENING)
        began = trio.current_time()
        await server.opened.wait()
        assert trio.current_time() - began == pytest.approx(4)
        server.pump.cancel()


async def test_pump_holds_back_a_publisher_whose_server_is_full(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        client, server = End(EndpointRole.CLIENT, ours), End(EndpointRole.SERVER, theirs)
        for end in (client, server):
            end.pump.start(nursery)
        await client.opened.wait()
        channel = client.engine.open_channel()
        client.pump.wake_writer()
        await wait_all_tasks_blocked()
        server.engine.braked = True
        server.pump.wake_writer()
        read = server.pump._totals.octets_in
        for _ in range(3):
            channel.send(spec.BasicPublish(routing_key="q"), Content(BasicProperties(), bytes(500_000)))
            client.pump.wake_writer()
            await wait_all_tasks_blocked()
        await trio.sleep(600)
        # What it waited for when the brake was put on came still.
        assert server.pump._totals.octets_in - read <= server.pump.read_size
        server.engine.braked = False
        server.pump.wake_writer()
        await wait_all_tasks_blocked()
        assert server.pump._totals.octets_in - read > 1_500_000
        assert client.engine.is_open
        assert server.engine.is_open
        for end in (client, server):
            end.pump.cancel()
