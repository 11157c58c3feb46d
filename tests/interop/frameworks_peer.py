"""Frameworks for tasks and messages against a broker: ``frameworks_peer.py URL SCENARIO``; it fails where an assertion does.

Runs in the environment of the frameworks, without this project.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import uuid

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.results import Results
from dramatiq.results.backends import StubBackend
from faststream.rabbit import ExchangeType, RabbitBroker, RabbitExchange, RabbitQueue

SECONDS = 20


def fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def dramatiq_results_retries_and_delays(url: str) -> None:
    """Retries and delays take a queue of delayed messages; what fails too often takes a queue of dead letters."""
    broker = RabbitmqBroker(url=url, confirm_delivery=True, middleware=[])
    for middleware in (
        dramatiq.middleware.AgeLimit(),
        dramatiq.middleware.Retries(min_backoff=50, max_backoff=100),
    ):
        broker.add_middleware(middleware)
    broker.add_middleware(Results(backend=StubBackend()))
    dramatiq.set_broker(broker)
    queue, tries, failed = fresh("dramatiq"), [], threading.Event()

    @dramatiq.actor(queue_name=queue, store_results=True)
    def add(one: int, other: int) -> int:
        return one + other

    @dramatiq.actor(queue_name=queue, store_results=True, max_retries=3)
    def third_time() -> int:
        tries.append(1)
        if len(tries) < 3:
            raise RuntimeError("not yet")
        return len(tries)

    @dramatiq.actor(queue_name=queue, max_retries=0)
    def fails() -> None:
        failed.set()
        raise RuntimeError("always")

    worker = dramatiq.Worker(broker, worker_timeout=100, worker_threads=2)
    worker.start()
    try:
        results = [add.send(n, n) for n in range(20)]
        found = [each.get_result(block=True, timeout=SECONDS * 1000) for each in results]
        assert found == [2 * n for n in range(20)]
        assert third_time.send().get_result(block=True, timeout=SECONDS * 1000) == 3
        delayed = add.send_with_options(args=(1, 2), delay=500)
        assert delayed.get_result(block=True, timeout=SECONDS * 1000) == 3
        fails.send()
        assert failed.wait(SECONDS)
        broker.join(queue, timeout=SECONDS * 1000)
        dead = 0
        for _ in range(100):
            dead = broker.channel.queue_declare(f"{queue}.XQ", passive=True).method.message_count
            if dead:
                break
            threading.Event().wait(0.05)
        assert dead == 1
    finally:
        worker.stop()
        for each in (queue, f"{queue}.DQ", f"{queue}.XQ"):
            broker.channel.queue_delete(each)
        broker.close()


def faststream_subscribes_publishes_and_asks(url: str) -> None:
    asyncio.run(asyncio.wait_for(_faststream(url), SECONDS))


async def _faststream(url: str) -> None:
    broker = RabbitBroker(url, logger=None)
    exchange = RabbitExchange(fresh("news"), type=ExchangeType.TOPIC, auto_delete=True)
    seen: asyncio.Queue[str] = asyncio.Queue()
    source, target, answers = fresh("in"), fresh("out"), fresh("answers")

    @broker.subscriber(RabbitQueue(source, auto_delete=True, routing_key="eu.*"), exchange)
    @broker.publisher(target)
    async def shout(text: str) -> str:
        return text.upper()

    @broker.subscriber(RabbitQueue(target, auto_delete=True))
    async def hear(text: str) -> None:
        await seen.put(text)

    @broker.subscriber(RabbitQueue(answers, auto_delete=True))
    async def answer(number: int) -> int:
        return number + 1

    async with broker:
        await broker.start()
        await broker.publish("tea", routing_key="eu.tea", exchange=exchange)
        await broker.publish("tea", routing_key="us.tea", exchange=exchange)
        assert await seen.get() == "TEA"
        reply = await broker.request(41, answers)
        assert await reply.decode() == 42
        assert seen.empty()


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1])
