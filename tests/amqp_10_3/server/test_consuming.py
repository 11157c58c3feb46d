"""What clients of 10.3 receive: consumers, tags, and alerts of queues that are deleted."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.container import Container

from .script import bodies, opened


@pytest.mark.parametrize(
    ("consume", "code"), [(spec.BasicConsume, 403), (spec.FileConsume, 405), (spec.StreamConsume, 405)]
)
async def test_exclusive_consumer_that_cannot_be_is_refused(consume: Any, code: int) -> None:
    container = Container()
    async with opened(container) as one, opened(container) as two:
        await one.declare()
        await one.consume()
        assert await two.refused(consume(queue="q", exclusive=True)) == ("channel", code)
        await one.ask(spec.BasicCancel(consumer_tag="c"))
        await one.consume(exclusive=True)
        assert await two.refused(consume(queue="q")) == ("channel", code)


async def test_tag_that_is_used_ends_the_connection_with_530() -> None:
    async with opened() as client:
        await client.declare()
        await client.consume()
        assert await client.refused(spec.StreamConsume(queue="q", consumer_tag="c")) == ("connection", 530)


async def test_consumer_without_a_tag_gets_one_and_no_local_hears_others_alone() -> None:
    container = Container()
    async with opened(container, name="one") as one, opened(container, name="two") as two:
        await one.declare()
        heard = await one.ask(spec.BasicConsume(queue="q", no_local=True))
        assert heard["consumer_tag"].startswith(b"amq.ctag-")
        await one.publish("", "q", b"mine")
        assert await one.quiet()
        await two.publish("", "q", b"yours")
        assert await bodies(one, 1) == [b"yours"]


async def test_consumer_whose_queue_is_deleted_is_told_by_an_alert() -> None:
    container = Container()
    async with opened(container) as one, opened(container) as two:
        await one.declare()
        await one.consume()
        await two.ask(spec.QueueDelete(queue="q"))
        alert = await one.heard("channel.alert")
        assert (alert["reply_code"], alert["details"]) == (404, [(b"consumer_tag", ("S", b"c"))])
