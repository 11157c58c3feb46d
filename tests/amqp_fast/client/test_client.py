"""The client: what a program does, what it is told, and what holds when it is cancelled."""

from __future__ import annotations

import math
import ssl
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.protocols.served import OneOctetStream, accepted
from tests.peer.authority import believing, serving
from trio_amqp10 import amqp_fast, sasl
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.frames import frame_of
from trio_amqp10.amqp_fast.limits import Limits
from trio_amqp10.amqp_fast.states import HandleState
from trio_amqp10.container import Container
from trio_amqp10.container.protocols.amqp_fast.protocol import AmqpFast
from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError, SecurityError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable


def with_nodes() -> Container:
    container = Container(strict=True)
    container.add_queue("q")
    container.add_topic("t")

    @container.function("upper")
    async def upper(message: amqp.Message) -> Any:
        return bytes(message.body).upper()

    return container


@asynccontextmanager
async def connected(
    container: Container | None = None,
    users: sasl.Server | None = None,
    limits: Limits | None = None,
    wrap: Callable[[trio.abc.Stream], trio.abc.Stream] = lambda stream: stream,
    **options: Any,
) -> AsyncGenerator[amqp_fast.Connection]:
    made = AmqpFast(container or with_nodes(), limits=limits)
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.serve, accepted(ours, users))
        try:
            async with amqp_fast.open_connection(wrap(theirs), virtual_path="/", **options) as connection:
                yield connection
        finally:
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def channelled(container: Container | None = None, **options: Any) -> AsyncGenerator[amqp_fast.Channel]:
    async with connected(container, **options) as connection, connection.open_channel() as channel:
        yield channel


async def test_handle_is_closed_as_soon_as_the_server_answers() -> None:
    async with channelled(close_timeout=math.inf) as channel:
        with trio.fail_after(20):
            async with channel.open_handle("q") as handle:
                await handle.send(b"one")
        assert handle.engine.state is HandleState.CLOSED


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


async def test_transaction_is_committed_or_rolled_back() -> None:
    container = with_nodes()
    async with connected(container) as connection:
        async with connection.open_channel(transacted=True) as channel, channel.open_handle("q") as handle:
            await handle.send(b"one")
            await channel.rollback()
            await handle.send(b"two")
            await channel.commit()
        async with connection.open_channel() as channel, channel.open_handle("q") as handle:
            assert await handle.query() == [range(1, 2)]
            with pytest.raises(LocalProtocolError):
                await channel.commit()


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


async def test_client_logs_in() -> None:
    users = sasl.Server({"ada": "secret"})
    async with connected(users=users, login=("ada", "secret")) as connection:
        assert connection.why is None


@pytest.mark.parametrize("login", [("ada", "wrong"), None])
async def test_login_that_fails_is_a_security_error(
    login: tuple[str, str] | None, autojump_clock: trio.testing.MockClock
) -> None:
    _ = autojump_clock
    with pytest.raises(BaseExceptionGroup) as caught:
        async with connected(users=sasl.Server({"ada": "secret"}), login=login):
            pass
    assert caught.group_contains(SecurityError)


async def test_virtual_path_that_there_is_not_is_told() -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(AmqpFast(with_nodes()).serve, accepted(ours))
        with pytest.raises(amqp_fast.ConnectionClosedError) as caught:
            async with amqp_fast.open_connection(theirs, virtual_path="/other"):
                pass
        assert caught.value.code == 402
        nursery.cancel_scope.cancel()


async def test_another_protocol_is_told() -> None:
    ours, theirs = memory_stream_pair()
    await ours.send_all(b"AMQP\0\1\0\0")
    with pytest.raises(RemoteProtocolError):
        async with amqp_fast.open_connection(theirs):
            pass


async def test_loss_of_the_connection_ends_what_waits() -> None:
    container = with_nodes()
    async with (
        connected(container) as connection,
        connection.open_channel() as channel,
        channel.open_handle("q") as handle,
    ):
        (peer,) = container.connected
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                with pytest.raises(amqp_fast.ConnectionClosedError) as caught:
                    await handle.receive()
                assert caught.value.code == 320

            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            peer.close("amqp:connection:forced", "enough")
        with pytest.raises(amqp_fast.ConnectionClosedError):
            await connection.wait_closed()
        with pytest.raises(amqp_fast.ConnectionClosedError):
            async with connection.open_channel():
                pass


async def test_channel_that_the_server_closes_raises_for_its_handles() -> None:
    container = with_nodes()
    async with connected(container, limits=Limits(txn_limit=1)) as connection:
        async with connection.open_channel(transacted=True) as channel, channel.open_handle("q") as handle:
            await handle.send(b"one")
            with pytest.raises(amqp_fast.ChannelClosedError) as caught:
                await handle.send(b"two")
            assert caught.value.code == 506
        async with connection.open_channel():
            pass


async def test_use_after_close_is_told() -> None:
    async with connected() as connection:
        async with connection.open_channel() as channel, channel.open_handle("q") as handle:
            pass
        with pytest.raises(trio.ClosedResourceError):
            await handle.send(b"one")
        with pytest.raises(trio.ClosedResourceError):
            channel.ack(1)
    with pytest.raises(trio.ClosedResourceError):
        connection.ping()
    await connection.wait_closed()


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


async def test_call_that_is_cancelled_leaves_the_handle_usable() -> None:
    async with channelled() as channel, channel.open_handle("q") as handle:
        for call in (
            partial(handle.send, b"x"),
            handle.consume,
            handle.receive,
            handle.query,
            partial(handle.browse, 1),
            handle.pause,
            handle.resume,
        ):
            with trio.CancelScope() as scope:
                scope.cancel()
                await call()
            assert scope.cancelled_caught
        assert not handle._answers
        await handle.send(b"one")
        await handle.resume()
        await handle.consume()
        assert (await handle.receive()).body == b"one"


async def test_transport_is_not_read_while_too_much_waits() -> None:
    async with channelled() as channel, channel.open_handle("q") as handle:
        await handle.consume(unreliable=True)
        for _ in range(6):
            await handle.send(b"x" * 1_000_000)
        await wait_all_tasks_blocked()
        assert channel.connection.engine.braked
        for _ in range(6):
            await handle.receive()
        assert not channel.connection.engine.braked


@pytest.mark.parametrize("path", ["", "/"])
async def test_client_dials_a_url(path: str) -> None:
    container = with_nodes()
    async with trio.open_nursery() as nursery:
        serve = partial(container.serve, "amqp://127.0.0.1:0", dialects=["amqp-fast"])
        (listener,) = await nursery.start(serve)
        url = f"amqp-fast://127.0.0.1:{listener.port}{path}"
        async with (
            amqp_fast.open_connection(url, client_name="ada") as connection,
            connection.open_channel() as channel,
            channel.open_handle("q") as handle,
        ):
            await handle.send(b"one")
        nursery.cancel_scope.cancel()


async def test_client_says_a_password_over_tls() -> None:
    container = with_nodes()
    users = sasl.Server({"ada": "secret"})
    async with trio.open_nursery() as nursery:
        serve = partial(
            container.serve,
            "amqps://127.0.0.1:0",
            dialects=["amqp-fast"],
            ssl_context=serving(),
            sasl=users,
        )
        (listener,) = await nursery.start(serve)
        url = f"amqp-fasts://ada:secret@127.0.0.1:{listener.port}"
        with pytest.raises(SecurityError):
            async with amqp_fast.open_connection(url):
                pass
        async with (
            amqp_fast.open_connection(url, ssl_context=believing()) as connection,
            connection.open_channel() as channel,
            channel.open_handle("q") as handle,
        ):
            await handle.send(b"one")
            (peer,) = container.connected
            assert peer.identity == sasl.Identity("ada", "PLAIN")
        nursery.cancel_scope.cancel()


def test_context_without_tls_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="has no TLS"):
        amqp_fast.open_connection("amqp-fast://h", ssl_context=ssl.create_default_context())


@pytest.mark.parametrize("url", ["amqp://h", "h", "amqp-fast://h:x"])
def test_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(LocalProtocolError):
        amqp_fast.open_connection(url)


def test_port_is_that_of_the_document() -> None:
    from trio_amqp10.amqp_fast.client.dial import _parsed

    for url in ("amqp-fast://h", "amqp-fast://h/p", "amqp-fast://u:p@h", "amqp-fasts://[::1]/p"):
        assert _parsed(url).port == 3018
    assert _parsed("amqp-fast://h:7/p").port == 7


def test_package_has_the_names_of_the_client() -> None:
    assert set(amqp_fast.__all__) <= set(dir(amqp_fast))
    with pytest.raises(AttributeError):
        amqp_fast.nothing  # noqa: B018
