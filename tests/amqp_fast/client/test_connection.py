"""A connection of the client: login, loss, and use after its close."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trio_amqp10 import amqp_fast, sasl

from .linked import channelled, connected, with_nodes


async def test_client_logs_in() -> None:
    users = sasl.Server({"ada": "secret"})
    async with connected(users=users, login=("ada", "secret")) as connection:
        assert connection.why is None


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
