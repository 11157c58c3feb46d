"""The other processes of ``bench.spark``: the container, a sender and a receiver without Spark, and a probe.

``python -m bench.spark_sides ROLE ...``; they talk to whoever started them in lines of JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from typing import Any

import trio

import trio_amqp10 as amqp

BODY = 256
PROBES = 100


def message(number: int, wide: bool) -> amqp.Message:
    if not wide:
        return amqp.Message(bytes(BODY))
    return amqp.Message(
        bytes(BODY),
        message_id=f"m-{number}",
        subject="tea",
        application_properties={"n": number, "region": "eu"},
        annotations={"x-opt-key": "v"},
    )


async def peer() -> None:
    """A container; takes orders from stdin, and answers on stdout, in lines of JSON."""
    container = amqp.Container("peer")

    async def fill(queue: str, count: int, wide: bool) -> dict[str, Any]:
        if container.nodes.get(queue) is None:
            container.add_queue(queue)
        for number in range(count):
            await container.send(queue, message(number, wide))
        return {}

    async def emptied(queue: str, count: int) -> dict[str, Any]:
        return await between(lambda: len(held[queue]) < count, lambda: not len(held[queue]))

    async def purge(queue: str) -> dict[str, Any]:
        container.remove_node(queue)
        return {}

    async def filled(queue: str, count: int) -> dict[str, Any]:
        container.add_queue(queue)
        return await between(lambda: len(held[queue]) > 0, lambda: len(held[queue]) >= count)

    async def between(begins: Any, ends: Any) -> dict[str, Any]:
        while not begins():  # noqa: ASYNC110 - nobody tells
            await trio.sleep(0.002)
        began = time.monotonic()
        while not ends():  # noqa: ASYNC110
            await trio.sleep(0.005)
        return {"began": began, "seconds": time.monotonic() - began}

    held: Any = container.nodes
    orders = {"fill": fill, "emptied": emptied, "filled": filled, "purge": purge}
    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        tell(url=listeners[0].url)
        while line := await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
            order = json.loads(line)
            tell(**await orders[order.pop("order")](**order))
        nursery.cancel_scope.cancel()


def tell(**items: Any) -> None:
    print(json.dumps(items), flush=True)


async def receive(url: str, count: int) -> None:
    async with (
        amqp.open_connection(url) as connection,
        connection.open_receiver("bare-in", credit=4000) as receiver,
    ):
        while count:
            for delivery in await receiver.receive_many(256):
                len(delivery.message.body)
                delivery.accept()
                count -= 1


async def send(url: str, count: int, wide: bool) -> None:
    async with amqp.open_connection(url) as connection, connection.open_sender("bare-out") as sender:
        for number in range(count):
            await sender.transmit(message(number, wide))
        await sender.flush()


async def pour(url: str, rate: int, wide: bool) -> None:
    """So many a second, in tenths, until somebody ends this."""
    async with amqp.open_connection(url) as connection, connection.open_sender("steady") as sender:
        number, due = 0, trio.current_time()
        while True:
            for _ in range(rate // 10):
                await sender.transmit(message(number, wide))
                number += 1
            due = max(
                due + 0.1, trio.current_time() - 1
            )  # what was missed is made up for, but for no more than a second
            await trio.sleep_until(due)


async def probe(url: str) -> None:
    """From one queue to another, through Spark: the median of the seconds that takes."""
    delays: list[float] = []

    async def arrivals() -> None:
        async with connection.open_receiver("latency-out") as receiver:
            while len(delays) < PROBES:
                delivery = await receiver.receive()
                delays.append(time.monotonic() - float(delivery.message.body))
                delivery.accept()
        nursery.cancel_scope.cancel()

    async with amqp.open_connection(url) as connection, trio.open_nursery() as nursery:
        nursery.start_soon(arrivals)
        async with connection.open_sender("latency-in") as sender:
            while True:
                await sender.send(str(time.monotonic()).encode())
                await trio.sleep(0.05)
    # The first ones meet a query that has only just begun.
    tell(p50=statistics.median(delays[PROBES // 4 :]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=["peer", "receive", "send", "pour", "probe"])
    parser.add_argument("--url")
    parser.add_argument("--count", type=int)
    parser.add_argument("--wide", action="store_true")
    given = parser.parse_args()
    if given.role == "peer":
        trio.run(peer)
    elif given.role == "receive":
        trio.run(receive, given.url, given.count)
    elif given.role == "send":
        trio.run(send, given.url, given.count, given.wide)
    elif given.role == "pour":
        trio.run(pour, given.url, given.count, given.wide)
    else:
        trio.run(probe, given.url)


if __name__ == "__main__":
    main()
