"""The client's connection: opening, login, blocking, losses, closing."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from trio_amqp10 import amqp091, amqp_10_3
from trio_amqp10.amqp091.limits import Limits
from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.sasl import AuthenticationError, NoAcceptableMechanismError

from .broker import Peer
from .conftest import URL


async def test_connection_opens_and_closes(connected: Any) -> None:
    async with connected(connection_name="here") as (broker, connection):
        assert connection.server_properties["product"] == "Small"
        assert connection.capabilities["publisher_confirms"] is True
        assert connection.heartbeat == 60
        [peer] = broker.peers
        assert peer.answer.client_properties["connection_name"] == "here"
        assert peer.answer.client_properties["capabilities"]["connection.blocked"] is True
        assert peer.answer.mechanism == "PLAIN"
        statistics = connection.statistics()
        assert (statistics["state"], statistics["transports"]) == ("OPEN", 1)
        assert "OPEN" in repr(connection)
    assert not broker.peers


async def test_connection_asks_for_the_limits_of_call_and_url(brokered: Any) -> None:
    async with brokered() as broker:
        url = f"{URL}?heartbeat=7&channel_max=9&connection_timeout=1000"
        async with amqp091.open_connection(url, channel_max=3, frame_max=8192) as connection:
            assert connection.heartbeat == 7
            assert connection.engine.channel_max == 3
            assert connection.engine.frame_max == 8192
        assert broker.dials == 1


@pytest.mark.parametrize("says_why", [True, False])
async def test_connection_reports_a_refused_login(brokered: Any, says_why: bool) -> None:
    async with brokered() as broker:
        broker.says_why = says_why
        with pytest.raises(AuthenticationError, match="refused" if says_why else "probably refuses"):
            await amqp091.open_connection("amqp091://guest:wrong@broker").__aenter__()


async def test_connection_takes_a_loss_during_the_login_for_a_loss(brokered: Any) -> None:
    async with brokered() as broker:
        peers = []

        def lose(stream: Any) -> Any:
            peer = Peer(broker, stream)
            peer.log_in = lambda _event, _now: peer.pump.cancel()  # type: ignore[method-assign]
            peer.pump.start(broker.nursery)
            peers.append(peer)
            return peer

        broker.serve = lose
        with pytest.raises(amqp091.ConnectionClosedError, match="lost"):
            await amqp091.open_connection(URL).__aenter__()


async def test_connection_logs_in_with_amqplain(brokered: Any) -> None:
    async with brokered() as broker, amqp091.open_connection(f"{URL}?auth_mechanism=amqplain"):
        assert broker.peers[0].answer.mechanism == "AMQPLAIN"
        assert broker.peers[0].answer.response == b"\x05LOGINS\0\0\0\x05guest\x08PASSWORDS\0\0\0\x06secret"


async def test_connection_refuses_a_server_without_a_mechanism_of_ours(brokered: Any) -> None:
    async with brokered() as broker:
        broker.mechanisms = b"GSSAPI"
        with pytest.raises(NoAcceptableMechanismError):
            await amqp091.open_connection(URL).__aenter__()


async def test_connection_reports_a_virtual_host_that_is_not_there(brokered: Any) -> None:
    async with brokered():
        with pytest.raises(amqp091.ConnectionClosedError, match="530 NOT_ALLOWED - vhost nope") as caught:
            await amqp091.open_connection(f"{URL}/nope").__aenter__()
        assert caught.value.code == 530
        assert caught.value.method == "connection.open"
        assert caught.value.condition == "amqp:not-allowed"
        assert not caught.value.may_retry


async def test_connection_reports_a_peer_of_another_protocol() -> None:
    ours, theirs = memory_stream_pair()
    await theirs.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(RemoteProtocolError):
        await amqp091.open_connection(ours, login=("a", "b")).__aenter__()


async def test_connection_reports_a_server_of_another_version() -> None:
    ours, theirs = memory_stream_pair()
    await theirs.send_all(b"AMQP\x00\x01\x00\x00")
    with pytest.raises(RemoteProtocolError, match="another version"):
        await amqp091.open_connection(ours, login=("a", "b")).__aenter__()


async def test_connection_gives_up_a_server_that_says_nothing(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    began = trio.current_time()
    with pytest.raises(amqp091.ConnectionClosedError, match="too long"):
        await amqp091.open_connection(ours, limits=Limits(handshake_timeout=7)).__aenter__()
    assert 7 <= trio.current_time() - began < 10
    await theirs.aclose()


async def test_connection_is_given_up_when_heartbeats_are_missing(
    connected: Any, autojump_clock: MockClock
) -> None:
    async with connected(heartbeat=10) as (broker, connection):
        async with connection.open_channel() as channel:
            queue = await channel.declare_queue("q")
            broker.peers[0].mute = True
            broker.peers[0].engine.handle_timer = lambda _now: None
            broker.peers[0].engine.next_deadline = lambda: None
            began = trio.current_time()
            with pytest.raises(amqp091.ConnectionClosedError, match="two heartbeats"):
                await queue.get()
            assert 19 <= trio.current_time() - began <= 31
        with pytest.raises(amqp091.ConnectionClosedError):
            await connection.wait_closed()


async def test_connection_lives_on_through_hours_of_silence(
    connected: Any, autojump_clock: MockClock
) -> None:
    async with connected(heartbeat=10) as (_, connection), connection.open_channel() as channel:
        await trio.sleep(1800)
        await channel.declare_queue("q")


async def test_connection_makes_publishes_wait_while_it_is_blocked(
    connected: Any, autojump_clock: MockClock
) -> None:
    async with connected() as (broker, connection), connection.open_publisher() as out:
        await out.declare_queue("q")
        broker.peers[0].block("low on memory")
        await trio.testing.wait_all_tasks_blocked()
        assert connection.blocked == "low on memory"
        assert connection.statistics()["blocked"] is True
        with trio.move_on_after(5) as scope:
            await out.publish("", "q", b"1")
        assert scope.cancelled_caught
        async with trio.open_nursery() as nursery:
            nursery.start_soon(out.publish, "", "q", b"2")
            nursery.start_soon(connection.wait_unblocked)
            await trio.sleep(5)
            assert not broker.received
            broker.peers[0].unblock()
        assert broker.received == [b"2"]
        assert connection.blocked is None


async def test_connection_takes_a_new_secret(connected: Any) -> None:
    async with connected() as (broker, connection):
        await connection.update_secret(b"token", "it expires")
        assert broker.peers[0].secrets == [b"token"]


async def test_connection_ends_when_a_secret_is_refused(connected: Any) -> None:
    async with connected() as (broker, connection):
        broker.peers[0].keeps_secrets = False
        async with trio.open_nursery() as nursery:

            async def refuse() -> None:
                while not broker.peers[0].secrets:
                    await trio.lowlevel.checkpoint()
                broker.peers[0].close(530, "NOT_ALLOWED - bad token")

            nursery.start_soon(refuse)
            with pytest.raises(amqp091.ConnectionClosedError, match="bad token"):
                await connection.update_secret(b"token")


async def test_connection_closed_by_the_server_says_why_and_what_to_do(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_channel() as channel:
        broker.peers[0].close(320, "CONNECTION_FORCED - Closed via management plugin")
        with pytest.raises(amqp091.ConnectionClosedError, match="reconnect=True") as caught:
            await channel.declare_queue("q")
        assert caught.value.code == 320
        assert caught.value.text == "CONNECTION_FORCED - Closed via management plugin"
        assert caught.value.condition == "amqp:connection:forced"
        assert caught.value.may_retry
        assert isinstance(caught.value, trio.BrokenResourceError)


async def test_connection_is_lost_when_the_server_breaks_a_rule(connected: Any) -> None:
    async with connected() as (broker, connection), connection.open_channel() as channel:
        broker.peers[0].engine.enqueue(b"\x01\0\x07\0\0\0\x04\0\x32\0\x0b\xce")
        broker.peers[0].pump.wake_writer()
        with pytest.raises(amqp091.ConnectionClosedError, match="broke a rule"):
            await channel.declare_queue("q")


async def test_connection_lets_errors_of_the_block_leave_as_themselves(brokered: Any) -> None:
    async with brokered():
        with pytest.raises(ZeroDivisionError):
            async with amqp091.open_connection(URL) as connection, connection.open_channel():
                raise ZeroDivisionError


async def test_connection_cannot_be_used_after_its_close(connected: Any) -> None:
    async with connected() as (_, connection):
        channel = await connection.open_channel().__aenter__()
        queue = await channel.declare_queue("q")
        await connection.aclose()
        await connection.aclose()
        await connection.wait_closed()
        for call in (
            lambda: queue.get(),
            lambda: channel.publish("", "q", b""),
            lambda: connection.open_channel().__aenter__(),
            lambda: connection.update_secret(b""),
            lambda: connection.wait_unblocked(),
        ):
            with pytest.raises(trio.ClosedResourceError):
                await call()
        await channel.aclose()


async def test_connection_is_closed_when_entering_is_cancelled(
    brokered: Any, autojump_clock: MockClock
) -> None:
    async with brokered() as broker:
        broker.password = ""
        with trio.move_on_after(0) as scope:
            async with amqp091.open_connection(URL):
                raise AssertionError
        assert scope.cancelled_caught
        await trio.sleep(10)
        assert not broker.peers


async def test_connection_tries_its_places_in_turn(brokered: Any) -> None:
    async with brokered() as broker:
        answers = iter([False, True])

        async def dial(url: Any) -> trio.abc.Stream:
            broker.accepts = next(answers)
            stream: trio.abc.Stream = await broker.dial(url)
            return stream

        from trio_amqp10.amqp091.client import dialling as module

        module.connect = dial  # type: ignore[assignment]  # the fixture puts it back
        async with amqp091.open_connection([URL, URL]):
            assert broker.dials == 2


async def test_connection_reports_that_nobody_answers(brokered: Any) -> None:
    async with brokered() as broker:
        broker.accepts = False
        with pytest.raises(OSError, match="down"):
            await amqp091.open_connection(URL).__aenter__()


@pytest.mark.parametrize(
    "call",
    [
        lambda: amqp091.open_connection([]),
        lambda: amqp091.open_connection(memory_stream_pair()[0], reconnect=True),
        lambda: amqp091.open_connection(URL, frame_max=100),
        lambda: amqp091.open_connection(URL, cafile="x"),
    ],
)
def test_connection_refuses_options_that_cannot_be(call: Any) -> None:
    with pytest.raises(LocalProtocolError):
        call()


async def test_connection_refuses_more_channels_than_were_agreed(connected: Any) -> None:
    async with connected(channel_max=1) as (_, connection), connection.open_channel():
        with pytest.raises(LocalProtocolError, match="no free channel number up to 1"):
            await connection.open_channel().__aenter__()


@pytest.mark.parametrize("vhost", ["a\0b", "x" * 256, "a\ud800"])
@pytest.mark.parametrize(
    ("client", "scheme"), [(amqp091, "amqp091"), (amqp_10_3, "amqp103")], ids=["0-9-1", "10.3"]
)
def test_virtual_host_that_cannot_be_written_is_refused_before_anything_is_dialled(
    client: Any, scheme: str, vhost: str
) -> None:
    with pytest.raises(LocalProtocolError, match="virtual host"):
        client.open_connection(f"{scheme}://server", vhost=vhost, reconnect=True)
    quoted = quote(vhost, errors="surrogatepass", safe="")
    if "\ud800" not in vhost:
        with pytest.raises(LocalProtocolError, match="virtual host"):
            client.open_connection(f"{scheme}://server/{quoted}", reconnect=True)
