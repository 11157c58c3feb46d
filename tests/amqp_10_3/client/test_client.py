"""The client of 10.3: what a program does, what it is told, and what holds when it is cancelled."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.lowlevel
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

from tests.container.protocols.served import accepted
from tests.peer.authority import believing, serving
from trio_amqp10 import amqp_10_3, sasl
from trio_amqp10.amqp091.engine import Engine
from trio_amqp10.amqp091.limits import Limits
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.profile import V10_3
from trio_amqp10.container import Container
from trio_amqp10.container.protocols.amqp_10_3.protocol import Amqp103
from trio_amqp10.endpoint_role import EndpointRole
from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError, SecurityError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from trio_amqp10.amqp_10_3 import Channel, Connection

SECONDS = 20


def with_queue() -> Container:
    container = Container()
    container.add_queue("q")
    return container


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


@asynccontextmanager
async def connected(
    container: Container | None = None,
    *,
    users: sasl.Server | None = None,
    dialect: dict[str, Any] | None = None,
    wrap: Callable[[trio.abc.Stream], trio.abc.Stream] = lambda stream: stream,
    **options: Any,
) -> AsyncGenerator[Connection]:
    served = Amqp103(container or with_queue(), **(dialect or {}))
    ours, theirs = memory_stream_pair()
    with trio.fail_after(SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(served.serve, accepted(ours, users))
            options.setdefault("allow_plaintext_password", True)
            try:
                async with amqp_10_3.open_connection(wrap(theirs), **options) as connection:
                    yield connection
            finally:
                nursery.cancel_scope.cancel()


@asynccontextmanager
async def channelled(container: Container | None = None, **options: Any) -> AsyncGenerator[Channel]:
    async with connected(container, **options) as connection, connection.open_channel() as channel:
        yield channel


async def settle_down() -> None:
    await wait_all_tasks_blocked(0.01)


# -- messages -------------------------------------------------------------------------------


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


async def test_exchange_and_queue_are_declared_bound_purged_and_deleted() -> None:
    async with channelled() as channel:
        await channel.declare_exchange("logs", "topic", arguments={"alternate_exchange": "amq.fanout"})
        queue = await channel.declare_queue(arguments={"x_max_length": 2})
        assert queue.name
        await queue.bind("logs", "a.*")
        for number in range(3):
            await channel.publish("logs", f"a.{number}", b"%d" % number)
        again = await channel.declare_queue(queue.name, passive=True)
        assert (again.message_count, again.consumer_count) == (2, 0)
        assert await queue.purge() == 2
        await channel.publish("logs", "a.b", b"last")
        assert await queue.delete() == 1
        await channel.delete_exchange("logs")
        with pytest.raises(amqp_10_3.NotFoundError) as caught:
            await channel.declare_exchange("logs", "topic", passive=True)
        assert (caught.value.code, caught.value.method) == (404, "exchange.declare")


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


# -- alerts ---------------------------------------------------------------------------------


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
        assert "the server warns on channel 1" in caplog.text


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


# -- transactions ---------------------------------------------------------------------------


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


# -- access ---------------------------------------------------------------------------------


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


async def test_realm_that_there_is_not_closes_the_channel_with_402() -> None:
    async with connected() as connection:
        with pytest.raises(amqp_10_3.ChannelClosedError) as caught:
            async with connection.open_channel(realm="/data/other"):
                pass
        assert (caught.value.code, caught.value.method) == (402, "access.request")
        async with connection.open_channel():
            pass
        with pytest.raises(LocalProtocolError, match="no such right: all"):
            async with connection.open_channel(rights=["all"]):  # type: ignore[list-item]
                pass


async def test_realm_in_exclusive_use_ends_the_connection_with_403() -> None:
    async with connected() as connection:
        with pytest.raises(amqp_10_3.ConnectionClosedError) as caught:
            async with connection.open_channel(exclusive=True), connection.open_channel():
                pass
        assert caught.value.code == 403


# -- refusals -------------------------------------------------------------------------------


async def test_refusal_closes_the_channel_alone() -> None:
    async with connected() as connection:
        with pytest.raises(amqp_10_3.NotFoundError) as caught:
            async with connection.open_channel() as channel:
                await channel.queue("nothing").purge()
        assert (caught.value.code, caught.value.method) == (404, "queue.purge")
        assert caught.value.condition == "amqp:not-found"
        async with connection.open_channel() as channel:
            with pytest.raises(amqp_10_3.NotFoundError):
                async with channel.queue("nothing").consume():
                    pass
        with pytest.raises(amqp_10_3.NotFoundError) as caught:
            async with connection.open_channel() as channel:
                await channel.publish("nothing", "q", b"one")
                await settle_down()
        assert caught.value.method == "basic.publish"


async def test_refusal_of_the_connection_reports_its_code() -> None:
    async with connected() as connection, connection.open_channel() as channel:
        await channel.declare_exchange("logs", "topic")
        with pytest.raises(amqp_10_3.ConnectionClosedError) as caught:
            await channel.declare_exchange("logs", "fanout")
        assert (caught.value.code, caught.value.method) == (530, "exchange.declare")
        with pytest.raises(amqp_10_3.ConnectionClosedError):
            await connection.wait_closed()


async def test_what_cannot_be_written_is_refused_here() -> None:
    async with channelled() as channel:
        with pytest.raises(LocalProtocolError):
            await channel.publish("", "q", b"one", headers={"x-hyphen": "no"})
        with pytest.raises(LocalProtocolError):
            await channel.declare_queue("other", arguments={"x-max-length": 1})
        with pytest.raises(LocalProtocolError, match="prefetch"):
            channel.queue("q").consume(prefetch=0)
        async with channel.queue("q").consume(tag="mine"):
            with pytest.raises(LocalProtocolError, match="mine"):
                async with channel.queue("q").consume(tag="mine"):
                    pass
        assert await channel.queue("q").get() is None


# -- connections ----------------------------------------------------------------------------


async def test_client_logs_in() -> None:
    container = with_queue()
    users = sasl.Server({"ada": "secret"})
    async with connected(container, users=users, login=("ada", "secret"), connection_name="desk"):
        (peer,) = container.connected
        assert peer.identity is not None
        assert peer.identity.name == "ada"


async def test_login_that_fails_is_a_security_error(autojump_clock: trio.testing.MockClock) -> None:
    _ = autojump_clock
    with pytest.raises(BaseExceptionGroup) as caught:
        async with connected(users=sasl.Server({"ada": "secret"}), login=("ada", "wrong")):
            pass
    assert caught.group_contains(SecurityError)


async def test_virtual_host_that_there_is_not_is_530() -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        async with connected(vhost="other"):
            pass
    (found,) = caught.value.exceptions
    assert isinstance(found, amqp_10_3.ConnectionClosedError)
    assert found.code == 530


async def test_redirect_reports_where_to_go_unless_the_client_insists() -> None:
    def redirect(_host: str, insists: bool) -> tuple[str, str] | None:
        return None if insists else ("there:1234", "here there")

    with pytest.raises(BaseExceptionGroup) as caught:
        async with connected(dialect={"redirect": redirect}):
            pass
    (found,) = caught.value.exceptions
    assert isinstance(found, amqp_10_3.RedirectedError)
    assert (found.host, found.known_hosts, found.code) == ("there:1234", "here there", None)
    async with connected(dialect={"redirect": redirect}, insist=True):
        pass


async def test_another_protocol_is_told() -> None:
    ours, theirs = memory_stream_pair()
    await ours.send_all(b"AMQP\0\0\x09\1")
    with pytest.raises(RemoteProtocolError):
        async with amqp_10_3.open_connection(theirs, allow_plaintext_password=True):
            pass


async def test_cut_in_the_middle_of_a_message_ends_what_waits() -> None:
    ours, theirs = memory_stream_pair()
    container = with_queue()
    with trio.fail_after(SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Amqp103(container).serve, accepted(ours))
            async with (
                amqp_10_3.open_connection(theirs, allow_plaintext_password=True) as connection,
                connection.open_channel() as channel,
                channel.queue("q").consume() as consumer,
            ):

                async def wait() -> None:
                    with pytest.raises(amqp_10_3.ConnectionClosedError) as caught:
                        await consumer.receive()
                    assert caught.value.code is None

                async with trio.open_nursery() as waiting:
                    waiting.start_soon(wait)
                    await settle_down()
                    method = spec.BasicDeliver(consumer_tag=consumer.tag, delivery_tag=1)
                    await ours.send_all(
                        V10_3.frames.frame(1, 1, method.plan.write(method, V10_3.letters))[:12]
                    )
                    await ours.aclose()
                with pytest.raises(amqp_10_3.ConnectionClosedError):
                    await channel.publish("", "q", b"one")
                with pytest.raises(amqp_10_3.ConnectionClosedError):
                    async with connection.open_channel():
                        pass
            nursery.cancel_scope.cancel()


async def test_end_of_the_container_reports_320() -> None:
    container = with_queue()
    async with connected(container) as connection:
        (peer,) = container.connected
        peer.close("amqp:connection:forced", "enough")
        with pytest.raises(amqp_10_3.ConnectionClosedError) as caught:
            await connection.wait_closed()
        assert caught.value.code == 320
        assert caught.value.may_retry


async def test_use_after_close_is_told() -> None:
    async with connected() as connection:
        async with connection.open_channel() as channel:
            pass
        with pytest.raises(trio.ClosedResourceError):
            await channel.publish("", "q", b"one")
        with pytest.raises(trio.ClosedResourceError):
            await channel.next_alert()
    with pytest.raises(trio.ClosedResourceError):
        async with connection.open_channel():
            pass
    await connection.wait_closed()


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


# -- dialling -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["", "/", "/%2F"])
async def test_client_dials_a_url(path: str) -> None:
    container = with_queue()
    with trio.fail_after(SECONDS):
        async with trio.open_nursery() as nursery:
            serve = partial(container.serve, "amqp://127.0.0.1:0", dialects="all")
            (listener,) = await nursery.start(serve)
            async with (
                amqp_10_3.open_connection(f"amqp103://127.0.0.1:{listener.port}{path}") as connection,
                connection.open_channel() as channel,
            ):
                await channel.publish("", "q", b"one")
                assert await channel.queue("q").get() is not None
            nursery.cancel_scope.cancel()


async def test_client_says_a_password_over_tls() -> None:
    container = with_queue()
    users = sasl.Server({"ada": "secret"})
    with trio.fail_after(SECONDS):
        async with trio.open_nursery() as nursery:
            serve = partial(
                container.serve,
                "amqps://127.0.0.1:0",
                dialects=["10.3"],
                ssl_context=serving(),
                sasl=users,
            )
            (listener,) = await nursery.start(serve)
            url = f"amqp103s://ada:secret@127.0.0.1:{listener.port}"
            with pytest.raises(SecurityError):
                async with amqp_10_3.open_connection(url):
                    pass
            async with amqp_10_3.open_connection(url, ssl_context=believing()):
                (peer,) = container.connected
                assert peer.identity is not None
            nursery.cancel_scope.cancel()


def test_url_of_another_protocol_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="amqp103://"):
        amqp_10_3.open_connection("amqp091://h")
    with pytest.raises(LocalProtocolError, match="use amqp103s://"):
        amqp_10_3.open_connection("amqp+tls://h")
    with pytest.raises(LocalProtocolError, match="no URL"):
        amqp_10_3.open_connection([])


def test_package_has_the_names_of_the_client() -> None:
    assert set(amqp_10_3.__all__) <= set(dir(amqp_10_3))
    assert all(getattr(amqp_10_3, name) for name in amqp_10_3.__all__)
    with pytest.raises(AttributeError):
        amqp_10_3.nothing  # noqa: B018
