"""aio-pika against a broker, one scenario at a time: ``aio_pika_peer.py URL SCENARIO``; it fails where an assertion does.

A scenario that takes ``restart`` has the broker restarted by whoever started this: it prints ``restart``, and goes on
after a line of the standard input. Runs in the environment of the clients, without this project.
"""

from __future__ import annotations

import asyncio
import datetime
import sys
import uuid
from typing import TYPE_CHECKING, Any

import aio_pika
import aio_pika.exceptions
import aiormq.exceptions
from aio_pika.patterns import RPC, Master

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Restart = Callable[[], Awaitable[None]]

SECONDS = 20
ABC = aio_pika.abc


def fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


async def refusal(waiting: Awaitable[Any], kind: type[Exception]) -> Exception:
    try:
        await waiting
    except kind as refused:
        return refused
    raise AssertionError(f"{kind.__name__} was expected")


async def robust_topology(url: str) -> None:
    async with await aio_pika.connect_robust(url) as connection:
        channel = await connection.channel()
        await channel.set_qos(10)
        exchange = await channel.declare_exchange(
            fresh("orders"), aio_pika.ExchangeType.TOPIC, auto_delete=True
        )
        queue = await channel.declare_queue("", exclusive=True)
        await queue.bind(exchange, "eu.*")
        message = aio_pika.Message(b"tea", headers={"deep": {"a": [1]}}, expiration=60, priority=1)
        await exchange.publish(message, "eu.tea")
        async with queue.iterator() as messages:
            async for got in messages:
                async with got.process():
                    assert (got.body, got.headers, got.expiration) == (b"tea", {"deep": {"a": [1]}}, 60)
                break


async def message_with_every_property(url: str) -> None:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(exclusive=True)
        sent = aio_pika.Message(
            b"tea",
            headers={
                "text": "x",
                "whole": 7,
                "large": 2**40,
                "part": 0.5,
                "yes": True,
                "none": None,
                "list": [1, ["two", {"three": 3}]],
                "table": {"when": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)},
            },
            content_type="text/plain",
            content_encoding="utf-8",
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            priority=3,
            correlation_id="c",
            reply_to="r",
            expiration=60,
            message_id="m",
            timestamp=datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
            type="t",
            user_id="guest",
            app_id="a",
        )
        await channel.default_exchange.publish(sent, queue.name)
        got = await queue.get(timeout=SECONDS)
        await got.ack()
        assert got.body == b"tea"
        assert got.headers == sent.headers, got.headers
        assert got.properties == sent.properties, (got.properties, sent.properties)


async def mandatory(url: str) -> None:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel(on_return_raises=True)
        await refusal(
            channel.default_exchange.publish(aio_pika.Message(b"x"), fresh("nobody"), mandatory=True),
            aio_pika.exceptions.DeliveryError,
        )


async def full_queue_refuses(url: str) -> None:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        full = {"x-max-length": 1, "x-overflow": "reject-publish"}
        queue = await channel.declare_queue(exclusive=True, arguments=full)
        await channel.default_exchange.publish(aio_pika.Message(b"1"), queue.name)
        await refusal(
            channel.default_exchange.publish(aio_pika.Message(b"2"), queue.name),
            aio_pika.exceptions.DeliveryError,
        )


async def rpc(url: str) -> None:
    async def double(*, text: str) -> str:
        await asyncio.sleep(0)
        return text * 2

    async with await aio_pika.connect_robust(url) as connection:
        channel = await connection.channel()
        calls = await RPC.create(channel)
        name = fresh("double")
        await calls.register(name, double, auto_delete=True)
        assert await calls.call(name, {"text": "ab"}) == "abab"
        await calls.close()


async def master_and_worker(url: str) -> None:
    done: set[int] = set()
    all_done = asyncio.Event()

    async def work(*, number: int) -> None:
        await asyncio.sleep(0)
        done.add(number)
        if len(done) == 20:
            all_done.set()

    async with await aio_pika.connect_robust(url) as connection:
        master = Master(await connection.channel())
        name = fresh("work")
        worker = await master.create_worker(name, work, auto_delete=True)
        for number in range(20):
            await master.create_task(name, {"number": number})
        await asyncio.wait_for(all_done.wait(), SECONDS)
        await worker.close()


async def transactions(url: str) -> None:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel(publisher_confirms=False)
        queue = await channel.declare_queue(exclusive=True)
        publish = channel.default_exchange.publish
        async with channel.transaction() as transaction:
            await publish(aio_pika.Message(b"1"), queue.name)
            await transaction.rollback()
        async with channel.transaction():
            await publish(aio_pika.Message(b"2"), queue.name)
        got = await queue.get(no_ack=True, timeout=SECONDS)
        assert got.body == b"2"
        assert await queue.get(fail=False) is None


async def late_reject_with_requeue(url: str) -> None:
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(exclusive=True)
        await channel.default_exchange.publish(aio_pika.Message(b"1"), queue.name)
        first = await queue.get(timeout=SECONDS)
        assert not first.redelivered
        await asyncio.sleep(0.2)
        await first.reject(requeue=True)
        second = await queue.get(timeout=SECONDS)
        assert second.redelivered
        await second.ack()


async def get_in_time(url: str) -> None:
    async with await aio_pika.connect(url) as connection:
        queue = await (await connection.channel()).declare_queue(exclusive=True)
        await refusal(queue.get(timeout=SECONDS), aio_pika.exceptions.QueueEmpty)

        async def wait_for_one() -> None:
            async with queue.iterator(timeout=0.3) as messages:
                async for _ in messages:
                    pass

        await refusal(wait_for_one(), asyncio.TimeoutError)


async def exclusive_consumer(url: str) -> None:
    async with await aio_pika.connect(url) as one, await aio_pika.connect(url) as two:
        queue = await (await one.channel()).declare_queue(fresh("own"), auto_delete=True)
        await queue.consume(lambda _: None, exclusive=True)
        other = await (await two.channel()).get_queue(queue.name, ensure=False)
        await refusal(other.consume(lambda _: None), aiormq.exceptions.ChannelAccessRefused)


async def locked_queue(url: str) -> None:
    async with await aio_pika.connect(url) as one, await aio_pika.connect(url) as two:
        queue = await (await one.channel()).declare_queue(fresh("own"), exclusive=True)
        await refusal(
            (await two.channel()).declare_queue(queue.name, passive=True),
            aiormq.exceptions.ChannelLockedResource,
        )


async def robust_through_a_restart(url: str, restart: Restart) -> None:
    """Exchange, queue, binding, consumer and prefetch are there again."""
    got: asyncio.Queue[bytes] = asyncio.Queue()

    async def take(message: ABC.AbstractIncomingMessage) -> None:
        async with message.process():
            pass
        got.put_nowait(message.body)

    async with await aio_pika.connect_robust(url, reconnect_interval=0.2) as connection:
        channel = await connection.channel()
        await channel.set_qos(5)
        exchange = await channel.declare_exchange(fresh("x"), aio_pika.ExchangeType.TOPIC)
        kept = await channel.declare_queue(fresh("kept"), durable=True)
        for queue in (kept, await channel.declare_queue(exclusive=True)):
            await queue.bind(exchange, "a.#")
            await queue.consume(take)
        back = asyncio.Event()
        connection.reconnect_callbacks.add(lambda *_: back.set())
        await exchange.publish(aio_pika.Message(b"1"), "a.b")
        assert [await asyncio.wait_for(got.get(), SECONDS) for _ in range(2)] == [b"1"] * 2
        await restart()
        await asyncio.wait_for(back.wait(), SECONDS)
        await exchange.publish(aio_pika.Message(b"2"), "a.c")
        after: list[bytes] = []
        while after.count(b"2") < 2:
            after.append(await asyncio.wait_for(got.get(), SECONDS))
        # Nothing answers an ack, so a broker that is killed may not have stored the one of the durable queue.
        assert sorted(after) in ([b"2"] * 2, [b"1", b"2", b"2"])
        await kept.delete(if_unused=False)


async def _restart() -> None:
    print("restart", flush=True)
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    scenario = globals()[sys.argv[2]]
    more = (_restart,) if "restart" in scenario.__annotations__ else ()
    asyncio.run(asyncio.wait_for(scenario(sys.argv[1], *more), 50))
