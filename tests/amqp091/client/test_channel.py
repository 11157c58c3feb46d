"""Channels of the client: errors, declarations that differ, and what is not settled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10 import amqp091

from .broker import put

if TYPE_CHECKING:
    import trio


async def test_channel_error_names_what_failed_and_ends_that_channel_alone(connected: Any) -> None:
    async with connected() as (_, connection), connection.open_channel() as other:
        async with connection.open_channel() as channel:
            with pytest.raises(amqp091.NotFoundError, match="declare it first") as caught:
                await channel.declare_queue("nope", passive=True)
            assert (caught.value.code, caught.value.method) == (404, "queue.declare")
            assert caught.value.text == "NOT_FOUND - no queue 'nope' in vhost '/'"
            assert caught.value.condition == "amqp:not-found"
            assert caught.value.may_retry
            for call in (channel.declare_queue, channel.recover):
                with pytest.raises(amqp091.NotFoundError):
                    await call()
        await other.declare_queue("there")


async def test_channel_reports_what_is_declared_otherwise(connected: Any) -> None:
    async with connected() as (_, connection):
        async with connection.open_channel() as channel:
            await channel.declare_queue("q", durable=True)
            with pytest.raises(amqp091.PreconditionFailedError, match="inequivalent arg 'durable'"):
                await channel.declare_queue("q")
        async with (
            amqp091.open_connection("amqp091://guest:secret@broker") as second,
            connection.open_channel() as mine,
            second.open_channel() as channel,
        ):
            await mine.declare_queue("own", exclusive=True)
            with pytest.raises(amqp091.ResourceLockedError):
                await channel.declare_queue("own")


async def test_channel_reads_what_it_publishes_one_octet_at_a_time(
    brokered: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with brokered() as broker:
        dial = broker.dial

        async def slow(url: Any) -> trio.abc.Stream:
            stream = await dial(url)
            take = stream.receive_some
            monkeypatch.setattr(stream, "receive_some", lambda _max=None: take(1))
            return stream

        from trio_amqp10.net import dialling_base as module

        monkeypatch.setattr(module, "connect", slow)
        async with (
            amqp091.open_connection("amqp091://guest:secret@broker") as connection,
            connection.open_publisher() as out,
        ):
            queue = await out.declare_queue("q")
            await out.publish("", "q", b"tea", headers={"a": [1, "b"]})
            async with queue.consume() as consumer:
                delivery = await consumer.receive()
                assert (delivery.body, delivery.headers) == (b"tea", {"a": [1, "b"]})
                delivery.ack()


async def test_channel_recovers_what_is_not_settled(connected: Any) -> None:
    async with connected() as (_, connection), connection.open_channel() as channel:
        queue = await channel.declare_queue("q")
        await put(channel, "q", b"1")
        assert await queue.get() is not None
        await channel.recover()
        again = await queue.get()
        assert again is not None
        assert again.redelivered
        assert "redelivered" in repr(again)
