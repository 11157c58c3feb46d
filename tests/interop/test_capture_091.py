"""What our client and our server of 0-9-1 write, as tshark reads it: a second opinion on every frame."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from trio_amqp10 import amqp091
from trio_amqp10.container import Container

from .ours import within

if TYPE_CHECKING:
    from collections.abc import Callable

    from .peers import Capture
    from .rabbitmq import Broker

BODIES = (b"", b"tea", b"o" * 10_000)
HEADERS = {
    "n": 1,
    "wide": 2**40,
    "text": "ä",
    "octets": b"\0\xff",
    "none": None,
    "list": [1, "two", {"k": True}],
}
PUBLISH, DELIVER, GET_OK, RETURN, ACK = 40, 60, 71, 50, 80


async def converse(url: str) -> None:
    """All sorts of methods, and contents of no, one and several frames."""
    async with amqp091.open_connection(url, frame_max=4096) as connection, connection.open_publisher() as out:
        exchange = await out.declare_exchange("captured", "topic", auto_delete=True)
        queue = await out.declare_queue(exclusive=True, arguments={"x-max-length": 100})
        await queue.bind(exchange, "a.#", arguments=HEADERS)
        for body in BODIES:
            await out.publish(
                exchange,
                "a.b",
                body,
                mandatory=True,
                headers=HEADERS,
                delivery_mode=2,
                message_id="m",
                priority=3,
            )
        got = await queue.get()
        assert got is not None
        got.nack()
        async with queue.consume() as consumer:
            for body in BODIES:
                delivery = await consumer.receive()
                assert delivery.body == body
                delivery.ack()
        try:
            await out.publish("", "captured-nowhere", b"back", mandatory=True)
        except amqp091.ReturnedError:
            pass
        else:
            raise AssertionError("it was not returned")


def check(seen: Capture) -> None:
    """Nothing malformed, and every method was understood as one."""
    assert seen.read("_ws.malformed") == []
    found = ",".join(seen.read("amqp", "amqp.method.method")).split(",")
    for method in (PUBLISH, DELIVER, GET_OK, RETURN, ACK):
        assert str(method) in found, f"method 60.{method} is not there"


def test_tshark_finds_nothing_malformed_between_our_client_and_our_container(
    capture: Callable[[int], Capture],
) -> None:
    async def run() -> Capture:
        async with trio.open_nursery() as nursery:
            container = Container()
            serve = partial(container.serve, "amqp://127.0.0.1:0", dialects=["0-9-1"])
            (listener,) = await nursery.start(serve)
            seen = await trio.to_thread.run_sync(capture, listener.port)
            await converse(f"amqp://127.0.0.1:{listener.port}")
            await trio.to_thread.run_sync(seen.__exit__, None, None, None)
            nursery.cancel_scope.cancel()
        return seen

    check(within(run))


def test_tshark_finds_nothing_malformed_between_our_client_and_a_broker(
    broker: Broker, capture: Callable[[int], Capture]
) -> None:
    with capture(broker.port) as seen:
        within(converse, f"amqp://guest:guest@127.0.0.1:{broker.port}/%2f")
    check(seen)
