"""What comes back after a loss: channels, handles, subscriptions; what was sent and not confirmed."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.served import Redialled, redialled
from trio_amqp10 import amqp_fast
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.amqp_fast.server.protocol import AmqpFast
from trio_amqp10.container import Container
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.backoff import Backoff
from trio_amqp10.sasl import Server

from .linked import with_nodes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

URL = "amqp-fast://server"


@pytest.fixture
def container() -> Container:
    return with_nodes()


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch, container: Container) -> AsyncIterator[Redialled]:
    """Every dial reaches the container."""
    async with redialled(AmqpFast(container), monkeypatch) as made:
        yield made


@asynccontextmanager
async def connected(**options: Any) -> AsyncGenerator[amqp_fast.Connection]:
    async with amqp_fast.open_connection(
        URL, **{"reconnect": True, "client_name": "shop", **options}
    ) as connection:
        yield connection


async def restored(changes: Any) -> None:
    """Wait until the connection is back."""
    assert [(await anext(changes)).kind for _ in range(2)] == ["lost", "restored"]


async def test_handle_goes_on_after_a_loss(server: Redialled, autojump_clock: MockClock) -> None:
    async with (
        connected() as connection,
        connection.open_channel() as channel,
        channel.open_handle("q") as handle,
    ):
        await handle.consume(prefetch=2)
        for body in (b"1", b"2", b"3"):
            await handle.send(body)
        old = await handle.receive()
        changes = connection.changes()
        await server.sever()
        await restored(changes)
        for settle in (old.ack, old.unget):
            with pytest.raises(amqp_fast.DeliveryLostError, match="sends it again"):
                settle()
        found = []
        for _ in range(3):
            delivery = await handle.receive()
            found.append((delivery.body, delivery.redelivered))
            delivery.ack()
        assert found == [(b"1", True), (b"2", True), (b"3", False)]


async def test_calls_wait_while_the_connection_is_down(server: Redialled, autojump_clock: MockClock) -> None:
    async with connected() as connection, connection.open_channel() as channel:
        server.accepts = False
        await server.sever()
        await wait_all_tasks_blocked()
        connection.ping()
        with pytest.raises(amqp_fast.DeliveryLostError):
            channel.ack(1)
        done: list[Any] = []

        async def call() -> None:
            async with connection.open_channel() as other, other.open_handle("q") as handle:
                await handle.send(b"one")
                done.append(await handle.query())
                done.append((await handle.browse(1)).body)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.sleep(100)
            assert not done
            server.accepts = True
        assert done == [[range(1, 2)], b"one"]


async def test_subscriptions_and_pauses_come_back(
    server: Redialled, container: Container, autojump_clock: MockClock
) -> None:
    async with (
        connected() as connection,
        connection.open_channel() as channel,
        channel.open_handle("t", service="topic") as lasting,
        channel.open_handle("t", service="topic") as gone,
        channel.open_handle("q") as paused,
        channel.open_handle("q") as out,
    ):
        await lasting.consume(identifier="mine", selector=b"colour=green")
        await gone.consume(identifier="other")
        await gone.cancel("other")
        await paused.consume()
        await paused.pause()
        changes = connection.changes()
        await server.sever()
        await restored(changes)
        await out.send(b"waits")
        await lasting.send(b"red", headers={"colour": "red"})
        await lasting.send(b"green", headers={"colour": "green"})
        assert (await lasting.receive()).body == b"green"
        await wait_all_tasks_blocked()
        with trio.move_on_after(1) as scope:
            await paused.receive()
        assert scope.cancelled_caught
        await paused.resume()
        assert (await paused.receive()).body == b"waits"
        with trio.move_on_after(1) as scope:
            await gone.receive()
        assert scope.cancelled_caught


async def test_temporary_destination_is_made_again(server: Redialled, autojump_clock: MockClock) -> None:
    async with (
        connected() as connection,
        connection.open_channel() as channel,
        channel.open_handle(temporary=True) as named_there,
        channel.open_handle("mine", temporary=True) as named_here,
    ):
        await named_there.consume()
        first = named_there.name
        assert named_there.renamed is None
        changes = connection.changes()
        await server.sever()
        await restored(changes)
        assert (named_there.name != first, named_there.renamed) == (True, first)
        assert (named_here.name, named_here.renamed) == ("mine", None)
        async with channel.open_handle(named_there.name) as out:
            await out.send(b"back")
        assert (await named_there.receive()).body == b"back"


async def test_replies_and_unreliable_messages_stay_receivable(
    server: Redialled, autojump_clock: MockClock
) -> None:
    async with (
        connected() as connection,
        connection.open_channel() as channel,
        channel.open_handle("upper", service="peer") as function,
        channel.open_handle("q") as handle,
    ):
        await handle.consume(unreliable=True)
        await handle.send(b"once")
        await function.send(b"tea")
        await wait_all_tasks_blocked()
        changes = connection.changes()
        await server.sever()
        await restored(changes)
        assert (await handle.receive()).body == b"once"
        assert (await function.receive()).body == b"TEA"
        await function.send(b"milk")
        assert (await function.receive()).body == b"MILK"


async def test_transacted_channel_stays_closed(
    server: Redialled, container: Container, autojump_clock: MockClock
) -> None:
    async with connected() as connection:
        async with connection.open_channel(transacted=True) as channel, channel.open_handle("q") as handle:
            await handle.send(b"never")
            changes = connection.changes()
            await server.sever()
            await restored(changes)
            with pytest.raises(amqp_fast.ConnectionClosedError):
                await channel.commit()
        async with connection.open_channel() as channel, channel.open_handle("q") as handle:
            assert await handle.query() == []


async def test_handle_that_is_refused_now_is_closed_alone(
    server: Redialled, container: Container, autojump_clock: MockClock
) -> None:
    container.add_queue("other")
    async with (
        connected() as connection,
        connection.open_channel() as channel,
        channel.open_handle("other") as gone,
        channel.open_handle("q") as handle,
    ):
        await gone.consume()
        container.remove_node("other")
        changes = connection.changes()
        await server.sever()
        await restored(changes)
        with pytest.raises(amqp_fast.HandleClosedError, match="404"):
            await gone.receive()
        await handle.send(b"one")


async def test_client_waits_until_the_server_has_noticed_the_loss(
    server: Redialled, container: Container, autojump_clock: MockClock
) -> None:
    async with connected() as connection, connection.open_channel() as channel:
        changes = connection.changes(attempts=True)
        server.streams[-1].hold_the_other_end()
        await server.sever()
        await trio.sleep(10)
        assert [(await anext(changes)).kind for _ in range(2)] == ["lost", "failed"]
        assert not connection.is_up
        await server.streams[0].let_go()
        async with channel.open_handle("q") as handle:
            await handle.send(b"one")


async def test_login_that_ends_without_a_word_is_tried_again_once_it_has_succeeded(
    server: Redialled, autojump_clock: MockClock
) -> None:
    async with connected() as connection:
        changes = connection.changes()
        server.cuts = [(None, place) for place in range(0, 60, 4)]
        await server.sever()
        await restored(changes)
        assert len(server.streams) > 4


async def test_loss_while_it_comes_back_is_tried_again(server: Redialled, autojump_clock: MockClock) -> None:
    async with (
        connected() as connection,
        connection.open_channel() as channel,
        channel.open_handle(temporary=True) as temporary,
        channel.open_handle("q") as handle,
    ):
        await handle.consume()
        first, changes = temporary.name, connection.changes()
        server.cuts = [(None, place) for place in range(120, 300, 9)]
        await server.sever()
        await restored(changes)
        assert len(server.streams) > 3
        await handle.send(b"one")
        assert (await handle.receive()).body == b"one"
        assert temporary.name != first


async def test_loss_while_something_is_opened_opens_it_on_the_next_transport(
    server: Redialled, autojump_clock: MockClock
) -> None:
    async with connected() as connection:
        for place in range(0, 60, 7):
            stream = server.streams[-1]
            stream.limit_reading(place)
            async with (
                connection.open_channel() as channel,
                channel.open_handle("q") as handle,
                channel.open_handle(temporary=True) as temporary,
            ):
                await handle.send(b"one")
                assert temporary.name


async def test_connection_gives_up_when_the_backoff_does(
    server: Redialled, autojump_clock: MockClock
) -> None:
    async with connected(reconnect=Backoff(attempts=3)) as connection:
        async with connection.open_channel() as channel:
            server.accepts = False
            changes = connection.changes()
            await server.sever()
            with pytest.raises(amqp_fast.ConnectionClosedError, match="3 attempts"):
                await connection.wait_closed()
            with pytest.raises(amqp_fast.ConnectionClosedError):
                async with channel.open_handle("q"):
                    pass
        assert [each.kind async for each in changes] == ["lost", "stopped"]
        assert [each async for each in connection.changes()] == []


async def test_first_dial_is_made_again(server: Redialled, autojump_clock: MockClock) -> None:
    server.accepts = False
    dialling = amqp_fast.open_connection(URL, reconnect=True)
    changes = dialling.changes()
    async with trio.open_nursery() as nursery:

        async def use() -> None:
            async with dialling as connection:
                assert connection.is_up

        nursery.start_soon(use)
        await trio.sleep(5)
        server.cuts = [(None, 2)]
        server.accepts = True
    assert [each.kind async for each in changes] == ["failed", "restored", "stopped"]


async def test_wrong_password_is_final(
    server: Redialled, container: Container, autojump_clock: MockClock
) -> None:
    server.sasl = Server(users={"u": "p"})
    with pytest.raises(amqp.SecurityError):
        async with connected(login=("u", "wrong")):
            pass
    assert len(server.streams) == 1


async def test_connection_that_is_down_can_be_left(server: Redialled, autojump_clock: MockClock) -> None:
    async with (
        connected() as connection,
        connection.open_channel() as channel,
        channel.open_handle("q") as handle,
    ):
        await handle.consume()
        server.accepts = False
        await server.sever()
        await trio.sleep(50)


async def test_nothing_comes_back_without_being_asked_for(
    server: Redialled, autojump_clock: MockClock
) -> None:
    async with connected(reconnect=False) as connection:
        await server.sever()
        with pytest.raises(amqp_fast.ConnectionClosedError):
            await connection.wait_closed()
        assert [each async for each in connection.changes()] == []
    assert [each async for each in amqp_fast.open_connection(URL).changes()] == []


def test_stream_cannot_be_dialled_again() -> None:
    ours, _ = trio.testing.memory_stream_pair()
    with pytest.raises(LocalProtocolError, match="reconnect needs a URL"):
        amqp_fast.open_connection(ours, reconnect=True)


@pytest.mark.parametrize("reading", [False, True], ids=["cut while writing", "cut while reading"])
@pytest.mark.parametrize("step", range(3))
async def test_cut_in_the_middle_of_confirmed_sends_loses_nothing(
    server: Redialled, autojump_clock: MockClock, reading: bool, step: int
) -> None:
    places = [150 + 13 * step + 31 * n for n in range(12)]
    server.cuts = [(None, place) if reading else (place, None) for place in places]
    bodies = [b"%d" % number for number in range(40)]
    async with (
        connected() as connection,
        connection.open_channel() as channel,
        channel.open_handle("q") as handle,
    ):
        for body in bodies:
            await handle.send(body)
    assert len(server.streams) > 2
    server.cuts.clear()
    found: list[bytes] = []
    async with (
        connected() as connection,
        connection.open_channel() as channel,
        channel.open_handle("q") as handle,
    ):
        for numbers in await handle.query():
            found += [(await handle.browse(number)).body for number in numbers]
    assert set(found) == set(bodies)
    assert [body for place, body in enumerate(found) if body not in found[:place]] == bodies
    assert len(found) - len(bodies) < len(server.streams)  # each loss repeats one at most


@pytest.mark.parametrize("cut", [20_000, 70_000])
async def test_large_message_goes_on_where_it_broke_off(
    server: Redialled, autojump_clock: MockClock, cut: int
) -> None:
    server.dialect = AmqpFast(Container("c"), limits=Limits(frame_max=4096))
    server.dialect.container.add_queue("q")
    body = bytes(range(256)) * 400
    async with (
        connected() as connection,
        connection.open_channel(restartable=True) as channel,
        channel.open_handle("q") as handle,
    ):
        server.streams[-1].limit_writing(cut)
        await handle.send(body)
        assert len(server.streams) == 2
        assert server.streams[-1].written < len(body) - cut + 3 * 4096
        await handle.consume()
        assert (await handle.receive()).body == body


async def test_large_message_comes_on_where_it_broke_off(
    server: Redialled, autojump_clock: MockClock
) -> None:
    server.dialect = AmqpFast(Container("c"), limits=Limits(frame_max=4096))
    server.dialect.container.add_queue("q")
    body = bytes(range(256)) * 400
    async with (
        connected() as connection,
        connection.open_channel(restartable=True) as channel,
        channel.open_handle("q") as handle,
    ):
        await handle.send(body)
        server.streams[-1].limit_reading(60_000)
        await handle.consume()
        delivery = await handle.receive()
        assert (delivery.body, delivery.redelivered) == (body, True)
        assert server.streams[-1].read < len(body) - 60_000 + 3 * 4096
        delivery.ack()


async def test_server_that_is_silent_in_its_handshake_of_tls_is_given_up(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    theirs: list[trio.abc.Stream] = []

    async def silent(_url: Any) -> trio.abc.Stream:
        await trio.lowlevel.checkpoint()
        ours, other = memory_stream_pair()
        theirs.append(other)
        return ours

    monkeypatch.setattr("trio_amqp10.net.dialling_base.connect", silent)
    limits = Limits(handshake_timeout=3)
    with pytest.raises(amqp_fast.ConnectionClosedError, match="no answer within 3 s"):
        async with amqp_fast.open_connection("amqp-fasts://server", limits=limits):
            raise AssertionError
    assert trio.current_time() == 3


async def test_message_that_came_in_the_read_of_the_loss_is_dropped_and_comes_again(
    server: Redialled, container: Container, autojump_clock: MockClock
) -> None:
    async with (
        connected() as connection,
        connection.open_channel() as channel,
        channel.open_handle("q") as handle,
    ):
        await handle.consume()
        server.streams[-1].read_frames("AMQP/Fast", spoiled=0)
        async with amqp_fast.open_connection(URL) as other, other.open_channel() as its:
            async with its.open_handle("q") as sender:
                await sender.send(b"once")
            delivery = await handle.receive()
            assert delivery.redelivered
            delivery.ack()
            await wait_all_tasks_blocked()
            queue: Any = container.nodes["q"]
            assert not len(queue)
            assert not handle.buffered
