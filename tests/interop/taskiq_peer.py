"""Taskiq on aio-pika against a broker: ``taskiq_peer.py URL SCENARIO``; it fails where an assertion does.

Runs in an environment of its own, without this project.
"""

from __future__ import annotations

import asyncio
import sys
import uuid

from taskiq import InMemoryBroker, SimpleRetryMiddleware
from taskiq.api import run_receiver_task
from taskiq_aio_pika import AioPikaBroker, Exchange, Queue

SECONDS = 20


def taskiq_results_retries_and_delays(url: str) -> None:
    """A delayed task waits in a queue of its own, whose dead letters go to the queue of tasks."""
    asyncio.run(asyncio.wait_for(_work(url), SECONDS))


async def _work(url: str) -> None:
    name = f"taskiq-{uuid.uuid4().hex[:8]}"
    broker = AioPikaBroker(
        url,
        exchange=Exchange(name=name),
        task_queues=[Queue(name=name)],
        delay_queue=Queue(name=f"{name}.delay"),
        dead_letter_queue=Queue(name=f"{name}.dead"),
    )
    broker = broker.with_result_backend(InMemoryBroker().result_backend).with_middlewares(
        SimpleRetryMiddleware(default_retry_count=3)
    )
    tries: list[int] = []

    @broker.task
    async def add(one: int, other: int) -> int:
        return one + other

    @broker.task(retry_on_error=True)
    async def third_time() -> int:
        tries.append(1)
        if len(tries) < 3:
            raise RuntimeError("not yet")
        return len(tries)

    broker.is_worker_process = True  # it opens the connection of a worker too
    await broker.startup()
    worker = asyncio.create_task(run_receiver_task(broker))
    try:
        sent = [await add.kiq(n, n) for n in range(20)]
        found = [(await each.wait_result(timeout=SECONDS)).return_value for each in sent]
        assert found == [2 * n for n in range(20)], found
        assert (await (await third_time.kiq()).wait_result(timeout=SECONDS)).return_value == 3
        later = await add.kicker().with_labels(delay=0.5).kiq(1, 2)
        assert not await later.is_ready()
        assert (await later.wait_result(timeout=SECONDS)).return_value == 3
    finally:
        worker.cancel()
        await asyncio.wait([worker])
        for each in (name, f"{name}.delay", f"{name}.dead"):
            await broker.write_channel.queue_delete(each)
        await broker.write_channel.exchange_delete(name)
        await broker.shutdown()


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1])
