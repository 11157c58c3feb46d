"""A connection of the client ends, and what waits and what is used after it is told."""

from __future__ import annotations

import pytest
import trio
from trio.testing import memory_stream_pair

from tests.container.served import accepted
from trio_amqp10 import amqp_10_3
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.engine.profile import V10_3
from trio_amqp10.amqp_10_3.server.protocol import Amqp103

from .linked import SECONDS, connected, settle_down, with_queue


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
