"""What the server refuses is told by its code, and ends what it says."""

from __future__ import annotations

import pytest

from trio_amqp10 import amqp_10_3
from trio_amqp10.core.errors import LocalProtocolError

from .linked import connected, settle_down, with_queue


async def test_realm_that_there_is_not_closes_the_channel_with_402() -> None:
    async with connected() as connection:
        with pytest.raises(amqp_10_3.ChannelClosedError) as caught:
            async with connection.open_channel(realm="/data/other"):
                pass
        assert (caught.value.code, caught.value.method) == (402, "access.request")
        async with connection.open_channel():
            pass
        with pytest.raises(LocalProtocolError, match=r"rights=.*all.*: expected only"):
            async with connection.open_channel(rights=["all"]):  # type: ignore[list-item]
                pass


async def test_realm_in_exclusive_use_ends_the_connection_with_403() -> None:
    async with connected() as connection:
        with pytest.raises(amqp_10_3.ConnectionClosedError) as caught:
            async with connection.open_channel(exclusive=True), connection.open_channel():
                pass
        assert caught.value.code == 403


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


async def test_end_of_the_container_reports_320() -> None:
    container = with_queue()
    async with connected(container) as connection:
        (peer,) = container.connected
        peer.close("amqp:connection:forced", "enough")
        with pytest.raises(amqp_10_3.ConnectionClosedError) as caught:
            await connection.wait_closed()
        assert caught.value.code == 320
        assert caught.value.may_retry
