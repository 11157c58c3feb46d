"""A channel of the client: what it declares, gets, publishes and settles, and how it ends."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio
import trio.lowlevel
from trio.testing import memory_stream_pair

from tests.container.served import accepted
from trio_amqp10 import amqp_10_3
from trio_amqp10.amqp091.engine.engine import Engine
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.engine.profile import V10_3
from trio_amqp10.amqp_10_3.server.protocol import Amqp103
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError

from .linked import SECONDS, channelled, connected, settle_down, with_queue


class Slow(trio.abc.Stream):
    """A stream that gives and takes one octet at a time."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        _ = max_bytes
        return bytes(await self._stream.receive_some(1))

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        for octet in bytes(data):
            await self._stream.send_all(bytes([octet]))

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()


async def test_message_goes_through_a_queue() -> None:
    async with channelled() as channel:
        await channel.publish("", "q", b"one", headers={"colour": "green"}, priority=7)
        async with channel.queue("q").consume(prefetch=1) as consumer:
            delivery = await consumer.receive()
        assert (delivery.body, delivery.headers, delivery.properties.priority) == (
            b"one",
            {"colour": "green"},
            7,
        )
        assert (delivery.exchange, delivery.routing_key, delivery.redelivered) == ("", "q", False)
        assert not delivery.settled
        delivery.ack()
        assert delivery.settled
        assert await channel.queue("q").get() is None
        assert repr(channel) == "<Channel 1, 0 consumers>"
        assert repr(channel.connection) == "<Connection OPEN, 1 channels>"
        assert channel.connection.server_properties["product"]
        assert channel.connection.statistics()["channels"] == 1


@pytest.mark.parametrize("size", [0, 100_000])
async def test_message_goes_through_one_octet_at_a_time_or_in_many_frames(size: int) -> None:
    options: dict[str, Any] = {} if size else {"wrap": Slow}
    async with channelled(frame_max=4096, **options) as channel:
        await channel.publish("", "q", b"x" * size, headers={"n": 1})
        async with channel.queue("q").consume() as consumer:
            delivery = await consumer.receive()
            assert (delivery.body, delivery.headers) == (b"x" * size, {"n": 1})
            delivery.ack()


async def test_get_takes_one() -> None:
    async with channelled() as channel:
        queue = channel.queue("q")
        assert await queue.get() is None
        await channel.publish("", "q", b"one")
        await channel.publish("", "q", b"two")
        delivery = await queue.get()
        assert delivery is not None
        assert (delivery.body, delivery.message_count) == (b"one", 1)
        delivery.ack()
        last = await queue.get(no_ack=True)
        assert last is not None
        assert last.settled
        with pytest.raises(LocalProtocolError, match="no_ack"):
            last.ack()


async def test_acknowledgement_of_many_is_one() -> None:
    async with channelled() as channel:
        for number in range(5):
            await channel.publish("", "q", b"%d" % number)
        async with channel.queue("q").consume() as consumer:
            found = await consumer.receive_many(5)
            while len(found) < 5:
                found.append(await consumer.receive())
            found[3].ack(multiple=True)
            assert [each.settled for each in found] == [True] * 4 + [False]
            found[4].ack()
        assert channel.unsettled == 0


async def test_rejected_message_comes_to_another_channel_alone() -> None:
    async with connected() as connection, connection.open_channel() as channel:
        await channel.publish("", "q", b"one")
        async with channel.queue("q").consume() as consumer:
            (await consumer.receive()).reject()
            await settle_down()
            assert not consumer.buffered
            async with (
                connection.open_channel() as other,
                other.queue("q").consume() as second,
            ):
                delivery = await second.receive()
                assert delivery.redelivered
                delivery.ack()


async def test_what_was_not_received_goes_back_when_the_channel_is_closed() -> None:
    async with connected() as connection:
        async with connection.open_channel() as channel:
            await channel.declare_queue("mine")
            await channel.publish("", "mine", b"one")
        for _ in range(3):
            async with connection.open_channel() as channel, channel.queue("mine").consume() as consumer:
                while not consumer.buffered:
                    await trio.lowlevel.checkpoint()
        async with connection.open_channel() as channel:
            delivery = await channel.queue("mine").get()
            assert delivery is not None
            assert delivery.body == b"one"


async def test_message_of_a_get_that_was_cancelled_goes_back_when_the_channel_is_closed() -> None:
    async with connected() as connection:
        async with connection.open_channel() as channel:
            queue = channel.queue("q")
            await channel.publish("", "q", b"one")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(queue.get)
                while not channel._replies:
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            assert await queue.get() is None
        async with connection.open_channel() as channel:
            assert await channel.queue("q").get() is not None


async def test_windows_hold_messages_back() -> None:
    async with connected() as connection, connection.open_channel(prefetch_octets=2500) as channel:
        for _ in range(4):
            await channel.publish("", "q", b"x" * 1000)
        async with channel.queue("q").consume(prefetch=3) as consumer:
            await settle_down()
            assert consumer.buffered == 2
        async with (
            connection.open_channel() as other,
            other.queue("q").consume(prefetch_octets=1500) as consumer,
        ):
            await settle_down()
            assert consumer.buffered == 1


async def test_messages_of_this_connection_are_left_out() -> None:
    async with channelled() as channel, channel.queue("q").consume(no_local=True) as consumer:
        await channel.publish("", "q", b"one")
        await settle_down()
        assert not consumer.buffered


async def test_flow_stops_deliveries() -> None:
    async with channelled() as channel, channel.queue("q").consume() as consumer:
        await channel.flow(False)
        await channel.publish("", "q", b"one")
        await settle_down()
        assert not consumer.buffered
        await channel.flow(True)
        assert (await consumer.receive()).body == b"one"


async def test_message_that_no_queue_takes_comes_back() -> None:
    async with channelled() as channel:
        await channel.publish("", "nothing", b"one", mandatory=True)
        await channel.declare_queue("mine")
        await channel.publish("", "mine", b"two", immediate=True)
        codes: list[tuple[int, bytes]] = []
        async for returned in channel.returns():
            codes.append((returned.code, returned.body))
            if len(codes) == 2:
                break
        assert codes == [(312, b"one"), (313, b"two")]


async def test_server_warns_of_a_message_that_a_full_queue_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with channelled() as channel:
        arguments = {"x_max_length": 1, "x_overflow": "reject-publish"}
        queue = await channel.declare_queue("full", arguments=arguments)
        await channel.publish("", queue.name, b"one")
        await channel.publish("", queue.name, b"two")
        alert = await channel.next_alert()
        assert alert.code >= 300
        assert alert.details == {"exchange": "", "routing_key": "full"}
        assert "warning of the server on channel 1" in caplog.text


async def test_alerts_are_bounded_and_end_with_the_channel() -> None:
    async with channelled() as channel, trio.open_nursery() as nursery:
        arguments = {"x_max_length": 1, "x_overflow": "reject-publish"}
        await channel.declare_queue("full", arguments=arguments)
        for _ in range(110):
            await channel.publish("", "full", b"one")
        await channel.declare_queue("full", passive=True)
        await settle_down()
        for _ in range(100):
            await channel.next_alert()

        async def wait() -> None:
            with pytest.raises(trio.ClosedResourceError):
                await channel.next_alert()

        nursery.start_soon(wait)
        await settle_down()
        await channel.aclose()


async def test_consumer_whose_queue_is_deleted_is_cancelled() -> None:
    async with channelled() as channel:
        queue = await channel.declare_queue("mine")
        async with queue.consume() as consumer:
            await queue.delete()
            with pytest.raises(amqp_10_3.ConsumerCancelledError):
                await consumer.receive()


async def test_transaction_is_committed_or_rolled_back() -> None:
    async with connected() as connection:
        async with connection.open_transaction() as out:
            await out.publish("", "q", b"one")
            await out.rollback()
            await out.publish("", "q", b"two")
        with pytest.raises(KeyError):
            async with connection.open_transaction() as out:
                await out.publish("", "q", b"three")
                raise KeyError
        async with connection.open_transaction() as out:
            delivery = await out.queue("q").get()
            assert delivery is not None
            delivery.ack()
            await out.rollback()
            assert not delivery.settled
            delivery.ack()
        async with connection.open_channel() as channel:
            assert (await channel.declare_queue("q", passive=True)).message_count == 0


async def test_commit_whose_answer_is_lost_is_in_doubt() -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Amqp103(with_queue()).serve, accepted(ours))
        with pytest.raises(amqp_10_3.TransactionInDoubtError):
            async with (
                amqp_10_3.open_connection(theirs, allow_plaintext_password=True) as connection,
                connection.open_transaction() as out,
            ):
                await out.publish("", "q", b"one")
                nursery.start_soon(ours.aclose)
                await out.commit()
        nursery.cancel_scope.cancel()


async def test_channel_asks_for_a_ticket_and_names_it() -> None:
    async with connected() as connection:
        async with connection.open_channel() as channel:
            first = channel.ticket
            await channel.request_access(rights=["read"])
            assert 0 != channel.ticket != first
            with pytest.raises(amqp_10_3.AccessRefusedError) as caught:
                await channel.declare_queue("other")
            assert caught.value.code == 403
        async with connection.open_channel(realm=None) as channel:
            assert channel.ticket == 0
            with pytest.raises(amqp_10_3.AccessRefusedError):
                await channel.queue("q").get()
        async with connection.open_channel(rights=["write"]) as channel:
            await channel.publish("", "q", b"one")


async def test_server_that_needs_no_tickets_is_asked_for_none() -> None:
    async with (
        connected(dialect={"tickets": False}) as connection,
        connection.open_channel(realm=None) as channel,
    ):
        assert (await channel.declare_queue("mine")).name == "mine"


async def test_message_that_the_server_gives_up_ends_the_get() -> None:
    ours, theirs = memory_stream_pair()
    server = Engine(EndpointRole.SERVER, 0, Limits(), profile=V10_3)

    async def serve() -> None:
        async for data in ours:
            server.receive_data(bytes(data), 0)
            while (event := server.next_event()) is not None:
                answer(event)
            for channel in server.take_touched():
                while (arrival := channel.next_arrival()) is not None:
                    if isinstance(arrival.method, spec.AccessRequest):
                        channel.send(spec.AccessRequestOk(ticket=1))
                    if isinstance(arrival.method, spec.BasicGet):
                        octets = bytearray(server.data_to_send() or b"")
                        for method in (spec.BasicGetOk(delivery_tag=1),):
                            octets += V10_3.frames.frame(1, 1, method.plan.write(method, V10_3.letters))
                        octets += V10_3.frames.frame(
                            2, 1, (60).to_bytes(2) + bytes(2) + (9).to_bytes(8) + bytes(2)
                        )
                        octets += V10_3.frames.frame(3, 1, b"")
                        await ours.send_all(octets)
            await ours.send_all(server.data_to_send() or b"")

    def answer(event: object) -> None:
        name = type(event).__name__
        if name == "StartAnswered":
            server.accept_login("ada", 0)
        elif name == "OpenRequested":
            server.accept_open(0)

    with trio.fail_after(SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            dial = amqp_10_3.open_connection(theirs, allow_plaintext_password=True, close_timeout=0)
            async with dial as connection, connection.open_channel() as channel:
                with pytest.raises(amqp_10_3.MessageAbortedError):
                    await channel.queue("q").get()
            nursery.cancel_scope.cancel()


async def test_call_that_is_cancelled_leaves_the_channel_usable() -> None:
    async with channelled() as channel:
        queue = channel.queue("q")

        async def consume() -> None:
            async with queue.consume():
                pass

        for call in (
            partial(channel.publish, "", "nothing", b"x"),
            partial(channel.declare_queue, "other"),
            partial(channel.declare_exchange, "logs"),
            partial(queue.bind, "amq.fanout"),
            channel.request_access,
            queue.purge,
            queue.get,
            consume,
            channel.next_alert,
        ):
            with trio.CancelScope() as scope:
                scope.cancel()
                await call()
            assert scope.cancelled_caught
            with trio.move_on_after(0):  # after the request is written
                await call()
        await channel.publish("", "q", b"one")
        async with queue.consume() as consumer:
            assert (await consumer.receive()).body == b"one"
