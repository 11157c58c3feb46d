"""A connection of the client: login, loss, and use after its close."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

from trio_amqp10 import amqp_fast, sasl
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.wire.frames import frame_of
from trio_amqp10.core.errors import RemoteProtocolError, SecurityError

from .linked import channelled, connected, with_nodes


async def test_client_logs_in() -> None:
    users = sasl.Server({"ada": "secret"})
    async with connected(users=users, login=("ada", "secret")) as connection:
        assert connection.why is None


_CHALLENGE = frame_of(spec.ConnectionChallenge(mechanisms="NONE"))
_TUNE = frame_of(spec.ConnectionTune(options={"FRAME_MAX": 65535}))
_OPENED_AND_CLOSED = frame_of(spec.ConnectionReply(confirm_tag=1)) + frame_of(
    spec.ConnectionClose(reply_code=320)
)


@pytest.mark.parametrize(
    ("octets", "ends", "error"),
    [
        (_CHALLENGE, True, SecurityError),
        (_CHALLENGE + _TUNE, True, amqp_fast.ConnectionClosedError),
        (_CHALLENGE + _TUNE + _OPENED_AND_CLOSED, False, amqp_fast.ConnectionClosedError),
        (_CHALLENGE, False, amqp_fast.ConnectionClosedError),
        (_CHALLENGE + b"\xff" * 64, False, RemoteProtocolError),
    ],
    ids=[
        "ends in place of its tune",
        "ends after its tune",
        "closes when it is open",
        "is silent",
        "breaks the protocol",
    ],
)
async def test_only_a_server_that_ends_in_place_of_its_tune_has_refused_the_login(
    octets: bytes, ends: bool, error: type[Exception], autojump_clock: MockClock
) -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:

        async def serve() -> None:
            await theirs.send_all(octets)
            await wait_all_tasks_blocked()
            if ends:
                await theirs.aclose()

        nursery.start_soon(serve)
        with pytest.raises(error):
            async with amqp_fast.open_connection(ours):
                raise AssertionError("it was opened")


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
