"""What comes back after a loss: channels, declarations, consumers, publishes."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_amqp10 import amqp091
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.wire.content import BasicProperties, Content
from trio_amqp10.net import dialling_base
from trio_amqp10.sasl import AuthenticationError

from .broker import Message
from .conftest import URL


async def test_connection_comes_back_with_what_was_declared(
    connected: Any, autojump_clock: MockClock
) -> None:
    async with connected(reconnect=True) as (broker, connection), connection.open_channel() as channel:
        exchange = await channel.declare_exchange("prices", "fanout")
        other = await channel.declare_exchange("other", "direct", auto_delete=True)
        queue = await channel.declare_queue("orders")
        await queue.bind(exchange)
        await queue.bind(other, "a")
        await queue.unbind(other, "a")
        changes = connection.changes()
        broker.sever()
        broker.queues.clear()
        broker.exchanges.clear()
        broker.bindings.clear()
        await wait_all_tasks_blocked()
        await channel.publish(exchange, "", b"tea")
        got = await queue.get()
        assert got is not None
        assert got.body == b"tea"
        assert list(broker.exchanges) == ["prices"]
        assert broker.bindings == [("prices", "orders", "")]
        assert [(await changes.__anext__()).kind for _ in range(2)] == ["lost", "restored"]
        assert connection.statistics()["transports"] == 2


async def test_queue_that_the_server_named_has_a_new_name(connected: Any, autojump_clock: MockClock) -> None:
    async with connected(reconnect=True) as (broker, connection), connection.open_channel() as channel:
        await channel.declare_exchange("x", "fanout")
        queue = await channel.declare_queue(exclusive=True)
        same = channel.queue(queue.name)
        await queue.bind("x")
        assert (queue.name, queue.renamed) == ("amq.gen-1", None)
        async with same.consume() as consumer:
            broker.sever()
            await wait_all_tasks_blocked()
            await channel.publish("x", "", b"1")
            delivery = await consumer.receive()
            assert (queue.name, queue.renamed) == ("amq.gen-2", "amq.gen-1")
            assert same.name == "amq.gen-2"
            assert broker.bindings == [("x", "amq.gen-2", "")]
            delivery.ack()
        await queue.delete()
        broker.sever()
        await channel.qos(4)
        assert not broker.queues


async def test_consumer_goes_on_after_a_loss(connected: Any, autojump_clock: MockClock) -> None:
    async with connected(reconnect=True) as (broker, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q", durable=True)
        for body in (b"1", b"2", b"3"):
            await channel.publish("", "q", body)
        async with queue.consume(prefetch=2) as consumer:
            old = await consumer.receive()
            broker.sever()
            await wait_all_tasks_blocked()
            with pytest.raises(amqp091.DeliveryLostError, match="delivers the message again"):
                old.ack()
            bodies = []
            for _ in range(3):
                delivery = await consumer.receive()
                bodies.append((delivery.body, delivery.redelivered))
                delivery.ack()
            assert bodies == [(b"1", True), (b"2", True), (b"3", False)]
            assert old.settled
            [server] = broker.peers[0].channels
            assert server.consumers[consumer.tag][2] == 2


async def test_delivery_that_came_right_before_the_loss_settles_nothing_else(
    connected: Any, autojump_clock: MockClock
) -> None:
    async with connected(reconnect=True) as (broker, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        found: list[amqp091.Delivery] = []
        async with queue.consume() as consumer:
            consumer.on_delivery = found.append
            node = broker.queues["q"]
            for body in (b"1", b"2"):  # in one write with the close
                node.messages.append(
                    Message(spec.BasicPublish(routing_key="q"), Content(BasicProperties(), body))
                )
            broker.deliver(node)
            broker.peers[0].close(320, "CONNECTION_FORCED")
            await trio.sleep(5)
            assert [each.body for each in found] == [b"1", b"2"] * 2
            for stale in found[:2]:
                with pytest.raises(amqp091.DeliveryLostError):
                    stale.ack()
            assert not any(each.settled for each in found[2:])


async def test_publisher_publishes_again_what_was_not_confirmed(
    connected: Any, autojump_clock: MockClock
) -> None:
    async with connected(reconnect=True) as (broker, connection), connection.open_publisher() as out:
        await out.declare_queue("q")
        broker.hold = True
        tickets = [await out.transmit("", "q", b"%d" % n) for n in range(3)]
        await wait_all_tasks_blocked()
        broker.sever()
        broker.hold = False
        await out.publish("", "q", b"3")
        for ticket in tickets:
            await ticket.outcome()
        assert broker.received == [b"0", b"1", b"2", b"0", b"1", b"2", b"3"]


async def test_publisher_may_leave_it_in_doubt_instead(connected: Any, autojump_clock: MockClock) -> None:
    async with (
        connected(reconnect=True) as (broker, connection),
        connection.open_publisher(republish=False) as out,
    ):
        await out.declare_queue("q")
        broker.hold = True
        ticket = await out.transmit("", "q", b"1")
        await wait_all_tasks_blocked()
        broker.sever()
        with pytest.raises(amqp091.PublishInDoubtError, match="publish it again"):
            await ticket.outcome()
        broker.hold = False
        await out.publish("", "q", b"2")
        assert broker.received == [b"1", b"2"]


async def test_calls_wait_while_the_connection_is_down(connected: Any, autojump_clock: MockClock) -> None:
    async with connected(reconnect=True) as (broker, connection), connection.open_channel() as channel:
        broker.accepts = False
        broker.sever()
        done = []

        async def call() -> None:
            done.append((await channel.declare_queue("q")).name)
            async with connection.open_channel() as late:
                done.append((await late.declare_queue("r")).name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.sleep(100)
            assert not done
            assert broker.dials > 4
            broker.accepts = True
        assert done == ["q", "r"]


async def test_connection_gives_up_when_the_backoff_does(connected: Any, autojump_clock: MockClock) -> None:
    backoff = amqp091.Backoff(attempts=3)
    async with connected(reconnect=backoff) as (broker, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        changes = connection.changes()
        async with queue.consume() as consumer:
            broker.accepts = False
            broker.sever()
            with pytest.raises(amqp091.ConnectionClosedError, match="3 attempts"):
                await consumer.receive()
        for call in (channel.declare_queue, connection.wait_closed):
            with pytest.raises(amqp091.ConnectionClosedError, match="3 attempts"):
                await call()
        assert [change.kind async for change in changes] == ["lost", "stopped"]


async def test_connection_gives_up_when_the_login_is_refused(
    connected: Any, autojump_clock: MockClock
) -> None:
    async with connected(reconnect=True) as (broker, connection):
        broker.password = "changed"
        broker.sever()
        with pytest.raises(amqp091.ConnectionClosedError, match="refused") as caught:
            await connection.wait_closed()
        assert isinstance(caught.value.__cause__, AuthenticationError)


@pytest.mark.parametrize(("code", "comes_back"), [(320, True), (541, True), (530, False), (504, False)])
async def test_connection_comes_back_where_that_makes_sense(
    connected: Any, autojump_clock: MockClock, code: int, comes_back: bool
) -> None:
    async with connected(reconnect=True) as (broker, connection):
        broker.peers[0].close(code, "because")
        if comes_back:
            await trio.sleep(10)
            assert broker.dials == 2
        else:
            with pytest.raises(amqp091.ConnectionClosedError, match=str(code)):
                await connection.wait_closed()


async def test_connection_waits_until_the_old_one_leaves_its_exclusive_queue(
    connected: Any, autojump_clock: MockClock
) -> None:
    async with connected(reconnect=True) as (broker, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("mine", exclusive=True)
        stale = broker.peers[0]
        node = broker.queues["mine"]
        broker.sever()
        broker.queues["mine"] = node  # the broker has not noticed the loss
        assert node.owner is stale
        await trio.sleep(3)
        assert broker.dials > 2
        del broker.queues["mine"]
        assert await queue.get() is None
        assert broker.queues["mine"].owner is not stale


async def test_declaration_that_the_server_refuses_now_is_left_out(
    connected: Any, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(reconnect=True) as (broker, connection), connection.open_channel() as channel:
        for name in ("a", "b", "c"):
            await channel.declare_queue(name)
        broker.sever()
        broker.queues["b"].method.durable = True  # type: ignore[misc]  # another program has declared it anew
        del broker.queues["c"]
        await channel.declare_queue("d")
        assert sorted(broker.queues) == ["a", "b", "c", "d"]
        assert "could not be declared again" in caplog.text


class Late(trio.abc.HalfCloseableStream):
    """A stream whose peer is ``seconds`` away: what comes is received so much later."""

    def __init__(self, stream: Any, seconds: float) -> None:
        self.stream = stream
        self.seconds = seconds

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        octets: bytes = await self.stream.receive_some(max_bytes)
        await trio.sleep(self.seconds)
        return octets

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self.stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self.stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        await self.stream.send_eof()

    async def aclose(self) -> None:
        await self.stream.aclose()


async def test_thousand_declarations_cost_few_round_trips(
    brokered: Any, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with brokered() as broker:

        async def far(url: Any) -> Late:
            return Late(await broker.dial(url), 0.02)

        monkeypatch.setattr(dialling_base, "connect", far)
        backoff = amqp091.Backoff(initial=1, jitter=False)
        async with (
            amqp091.open_connection(URL, reconnect=backoff) as connection,
            connection.open_channel() as channel,
        ):
            await channel.declare_exchange("x", "fanout")
            async with trio.open_nursery() as nursery:
                for n in range(1000):
                    nursery.start_soon(channel.declare_queue, f"q{n}" if n % 4 else "")
            names = set(broker.queues)
            assert len(names) == 1000
            async with trio.open_nursery() as nursery:
                for name in names:
                    nursery.start_soon(channel.queue(name).bind, "x")
            broker.sever()
            broker.queues.clear()
            broker.bindings.clear()
            began = trio.current_time()
            await channel.qos(7)
            assert trio.current_time() - began < 1 + 1  # the pause, and 2,001 declarations
            assert len(broker.queues) == 1000
            assert {queue for _, queue, _ in broker.bindings} == set(broker.queues)


@pytest.mark.parametrize("refused", [{0}, {4}, {9}, {0, 1, 2}, {3, 5, 6, 9}, set(range(10))])
async def test_each_declaration_that_is_refused_is_named_and_no_other_is_left_out(
    connected: Any, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture, refused: set[int]
) -> None:
    async with connected(reconnect=True) as (broker, connection), connection.open_channel() as channel:
        for n in range(10):
            await channel.declare_queue(f"q{n}")
        broker.sever()
        for n in range(10):
            if n in refused:
                broker.queues[f"q{n}"].method.durable = True
            else:
                del broker.queues[f"q{n}"]
        await channel.declare_queue("last")
        assert len(broker.queues) == 11
        said = [each for each in caplog.messages if "could not be declared again" in each]
        assert [each.split("queue='")[1].split("'")[0] for each in said] == [f"q{n}" for n in sorted(refused)]


async def test_consumer_of_a_queue_that_is_gone_ends_its_channel_alone(
    connected: Any, autojump_clock: MockClock
) -> None:
    async with connected(reconnect=True) as (broker, connection), connection.open_channel() as good:
        async with connection.open_channel() as channel:
            queue = await channel.declare_queue("q")
            passive = await channel.declare_queue("q", passive=True)
            await queue.delete()
            await good.declare_queue("q")
            await good.delete_queue("q")
            broker.queues["q"] = broker.reply_node
            async with passive.consume() as consumer:
                del broker.queues["q"]
                broker.sever()
                with pytest.raises(amqp091.NotFoundError):
                    await consumer.receive()
        await good.declare_queue("still")


async def test_loss_while_it_comes_back_is_tried_again(connected: Any, autojump_clock: MockClock) -> None:
    async with connected(reconnect=True) as (broker, connection), connection.open_channel() as channel:
        for n in range(5):
            await channel.declare_queue(f"q{n}")

        broker.sever()
        broker.queues.clear()
        broker.fuses = [1, 2, 4]
        await channel.declare_queue("last")
        assert len(broker.queues) == 6
        assert broker.dials == 5


async def test_connection_dials_the_first_time_again(brokered: Any, autojump_clock: MockClock) -> None:
    async with brokered() as broker:
        broker.accepts = False

        async def start() -> None:
            await trio.sleep(20)
            broker.accepts = True

        broker.nursery.start_soon(start)
        async with amqp091.open_connection(URL, reconnect=True) as connection:
            assert connection.is_up
            assert broker.dials > 3


async def test_connection_that_is_down_can_be_left(connected: Any, autojump_clock: MockClock) -> None:
    async with connected(reconnect=True) as (broker, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        async with queue.consume():
            broker.accepts = False
            broker.sever()
            await trio.sleep(5)


async def test_nothing_comes_back_without_being_asked_for(connected: Any, autojump_clock: MockClock) -> None:
    async with connected() as (broker, connection):
        assert [each async for each in connection.changes()] == []
        broker.sever()
        await trio.sleep(100)
        assert broker.dials == 1


async def test_changes_report_the_attempts_of_the_first_dial(
    brokered: Any, autojump_clock: MockClock
) -> None:
    async with brokered() as broker, trio.open_nursery() as nursery:
        broker.accepts = False
        dialling = amqp091.open_connection(URL, reconnect=amqp091.Backoff(initial=1, factor=1, jitter=False))
        changes = dialling.changes()
        kinds: list[str] = []

        async def watch() -> None:
            async for change in changes:
                kinds.append(change.kind)
                broker.accepts = len(kinds) >= 3

        nursery.start_soon(watch)
        async with dialling:
            await wait_all_tasks_blocked()
    assert kinds == ["failed", "failed", "failed", "restored", "stopped"]


async def test_changes_end_when_the_first_dial_gives_up(brokered: Any, autojump_clock: MockClock) -> None:
    async with brokered() as broker:
        broker.accepts = False
        dialling = amqp091.open_connection(URL, reconnect=amqp091.Backoff(give_up_after=60))
        changes = dialling.changes()
        with pytest.raises(OSError, match="is down"), trio.fail_after(61):
            await dialling.__aenter__()
        found = [change async for change in changes]
        assert [change.kind for change in found] == ["failed", "stopped"]
        assert isinstance(found[-1].reason, OSError)
        assert [each async for each in amqp091.open_connection(URL).changes()] == []


async def test_changes_report_failed_attempts_where_asked_for(
    connected: Any, autojump_clock: MockClock
) -> None:
    async with connected(reconnect=True) as (broker, connection):
        every, few = connection.changes(attempts=True), connection.changes()
        broker.accepts = False
        broker.sever()
        await trio.sleep(10)
        broker.accepts = True
        await trio.sleep(60)
        assert [(await every.__anext__()).kind for _ in range(3)] == ["lost", "failed", "restored"]
        assert [(await few.__anext__()).kind for _ in range(2)] == ["lost", "restored"]


async def test_request_for_which_the_server_closes_the_connection_is_not_sent_again(
    connected: Any, autojump_clock: MockClock
) -> None:
    async with connected(reconnect=True) as (broker, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        broker.peers[0].mute = True
        async with trio.open_nursery() as nursery:

            async def close() -> None:
                await wait_all_tasks_blocked()
                broker.peers[0].close(541, "INTERNAL_ERROR", spec.QueuePurge())

            nursery.start_soon(close)
            nursery.start_soon(
                channel.declare_exchange, "x", "direct"
            )  # another request, which is sent again
            with pytest.raises(amqp091.ConnectionClosedError) as caught:
                await queue.purge()
        assert (caught.value.code, caught.value.method) == (541, "queue.purge")
        assert broker.log.count("queue.purge") == 1
        assert await queue.purge() == 0
        assert list(broker.exchanges) == ["x"]
