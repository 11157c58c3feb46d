"""The sender or the receiver of a measurement, as a process of its own.

The first line of stdin describes the side: an argument would show the password of a URL in the list of processes.
The process prints lines of JSON on stdout for its parent: ``{"url": ...}`` or ``{"ready": true}`` when the other side may begin,
``{"received": n}`` on the way, and a result at the end. A sender waits for a line on stdin between the two parts, because messages
of the first part that are still in the queue would delay those of the second. Only the public API is measured: ``transmit`` and
``flush``, ``async for`` and ``accept``; in AMQP 0-9-1 ``transmit`` and ``ack``, or ``publish`` without an answer.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091

from .command_runner import CommandError, explain, say

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_PACE = 0.002
"""Seconds between the probes when they are not acknowledged."""

_DRAIN_TIMEOUT = 5.0
"""Seconds to wait for a peer to report that a queue has no message."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """The task of one side.

    Attributes:
        role: ``send`` or ``receive``.
        url: the URL to dial; None to listen on a free port of this machine.
        address: the node.
        count: messages at full speed.
        probes: messages that follow, one at a time, each with the time when it was sent.
        size: octets of a body.
        dialect: ``1.0`` or ``0-9-1``.
    """

    role: str
    url: str | None
    address: str
    count: int
    probes: int
    size: int
    presettled: bool
    credit: int
    dialect: str = "1.0"

    def to_json(self) -> str:
        """Return the argument for ``main``."""
        return json.dumps(asdict(self))

    @property
    def guarantee(self) -> Any:
        """The argument of ``open_sender`` and ``open_receiver``."""
        return "at-most-once" if self.presettled else "at-least-once"


def _report(**items: Any) -> None:
    sys.stdout.write(json.dumps(items) + "\n")
    sys.stdout.flush()


class _Span:
    """Wall and processor time between two calls."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def end(self, count: int) -> dict[str, float]:
        wall = time.perf_counter() - self._wall
        cpu = time.process_time() - self._cpu
        return {"messages_per_second": count / wall, "cpu_us": cpu / count * 1e6}


async def _wait_for_parent() -> None:
    """Wait for a line of the parent: the receiver has all messages."""
    await trio.to_thread.run_sync(sys.stdin.buffer.read, 1, abandon_on_cancel=True)


async def send(side: Side, drained: Callable[[], Awaitable[None]] = _wait_for_parent) -> dict[str, float]:
    """Dial and send; time the messages until each has its outcome, or is written.

    Args:
        side: the task.
        drained: waits until the receiver has all messages but the probes.
    """
    assert side.url is not None
    if side.dialect == "0-9-1":
        return await _publish(side, side.url, drained)
    body = bytes(side.size)
    async with (
        amqp.open_connection(side.url) as connection,
        connection.open_sender(side.address, guarantee=side.guarantee) as sender,
    ):
        await sender.wait_sendable()
        span = _Span()
        for _ in range(side.count):
            await sender.transmit(body)
        await sender.flush()
        result = span.end(side.count)
        await drained()
        for _ in range(side.probes):
            await sender.send(_probe(side))
            if side.presettled:
                await trio.sleep(_PACE)
    return result


async def _publish(side: Side, url: str, drained: Callable[[], Awaitable[None]]) -> dict[str, float]:
    """Publish in AMQP 0-9-1; time the messages until each is confirmed, or read.

    Without confirms, the reply to a later method shows that the server has read all messages.
    """
    body = bytes(side.size)
    async with amqp091.open_connection(url) as connection:
        if side.presettled:
            async with connection.open_channel() as channel:
                span = _Span()
                for _ in range(side.count):
                    await channel.publish("", side.address, body)
                await channel.declare_queue(side.address, passive=True)
                result = span.end(side.count)
                await drained()
                for _ in range(side.probes):
                    await channel.publish("", side.address, _probe(side))
                    await trio.sleep(_PACE)
            return result
        async with connection.open_publisher(window=side.credit) as publisher:
            span = _Span()
            for _ in range(side.count):
                await publisher.transmit("", side.address, body)
            await publisher.wait_confirmed()
            result = span.end(side.count)
            await drained()
            for _ in range(side.probes):
                await publisher.publish("", side.address, _probe(side))
    return result


def _probe(side: Side) -> bytes:
    """Return a body with the time when it was sent."""
    return time.monotonic_ns().to_bytes(8, "big") + bytes(side.size - 8)


async def receive(side: Side) -> dict[str, float]:
    """Receive and accept; time the messages from the first to the last.

    Raises:
        CommandError: the queue holds a message before the measurement, or a message of another sender arrives; it stays there.
    """
    if side.url is None:
        return await _receive_listening(side)
    if side.dialect == "0-9-1":
        return await _consume(side, side.url)
    async with amqp.open_connection(side.url) as connection:
        async with connection.open_receiver(side.address, credit=1) as receiver:
            found: list[amqp.Delivery] = []
            with trio.move_on_after(_DRAIN_TIMEOUT):
                found = await receiver.drain()
            for delivery in found:
                delivery.release()
                raise _not_empty(side)
        async with connection.open_receiver(
            side.address, credit=side.credit, guarantee=side.guarantee
        ) as receiver:
            _report(ready=True)
            return await _measure(side, receiver)


def _not_empty(side: Side) -> CommandError:
    return CommandError(
        f"{side.address!r} holds messages, which the measurement would remove: give a queue that is empty"
    )


def _check_body(side: Side, body: Any, *, settled: bool) -> None:
    """Check that a message is of this measurement."""
    if not isinstance(body, bytes) or len(body) != side.size:
        fate = "was removed, because messages are settled when they are sent" if settled else "stays there"
        raise CommandError(
            f"a message of another sender arrived at {side.address!r}, and {fate}: give a queue that no other program uses"
        )


async def _receive_listening(side: Side) -> dict[str, float]:
    results: list[dict[str, float]] = []

    async def handle(connection: amqp.Connection) -> None:
        async for link in connection.incoming_links():
            assert isinstance(link, amqp.IncomingReceiver)
            async with link.accept(credit=side.credit) as receiver:
                results.append(await _measure(side, receiver))
                await connection.wait_closed()
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        listeners: list[amqp.Listener] = await nursery.start(amqp.serve, handle, "amqp://127.0.0.1:0")
        _report(url=listeners[0].url)
    return results[0]


async def _measure(side: Side, receiver: amqp.Receiver) -> dict[str, float]:
    seen, count = 0, side.count
    report_at = every = max(1, count // 50)
    span = _Span()
    async for delivery in receiver:
        if not seen:
            span = _Span()
        # A real receiver reads the body, so decoding it must be measured.
        _check_body(side, delivery.message.body, settled=delivery.settled)
        if not delivery.settled:
            delivery.accept()
        seen += 1
        if seen == count:
            break
        if seen == report_at:
            _report(received=seen)
            report_at += every
    result = span.end(count)
    _report(drained=True)

    async def next_body() -> bytes:
        delivery = await receiver.receive()
        body: bytes = delivery.message.body
        _check_body(side, body, settled=delivery.settled)
        if not delivery.settled:
            delivery.accept()
        return body

    result.update(await _measure_latency(side, next_body))
    return result


async def _consume(side: Side, url: str) -> dict[str, float]:
    """Receive and acknowledge in AMQP 0-9-1."""
    async with amqp091.open_connection(url) as connection, connection.open_channel() as channel:
        found = await channel.queue(side.address).get()
        if found is not None:
            found.reject(requeue=True)
            raise _not_empty(side)
        return await _measure_consumer(side, channel)


async def _measure_consumer(side: Side, channel: amqp091.Channel) -> dict[str, float]:
    async with channel.queue(side.address).consume(prefetch=side.credit, no_ack=side.presettled) as consumer:
        _report(ready=True)
        seen, count = 0, side.count
        report_at = every = max(1, count // 50)
        span = _Span()
        async for delivery in consumer:
            if not seen:
                span = _Span()
            _check_body(side, delivery.body, settled=delivery.settled)
            if not delivery.settled:
                delivery.ack()
            seen += 1
            if seen == count:
                break
            if seen == report_at:
                _report(received=seen)
                report_at += every
        result = span.end(count)
        _report(drained=True)

        async def next_body() -> bytes:
            delivery = await consumer.receive()
            _check_body(side, delivery.body, settled=delivery.settled)
            if not delivery.settled:
                delivery.ack()
            return delivery.body

        result.update(await _measure_latency(side, next_body))
    return result


async def _measure_latency(side: Side, next_body: Callable[[], Awaitable[bytes]]) -> dict[str, float]:
    delays: list[int] = []
    while len(delays) < side.probes:
        body = await next_body()
        delays.append(time.monotonic_ns() - int.from_bytes(body[:8], "big"))
    if not delays:
        return {}
    delays.sort()
    return {
        "latency_p50_us": delays[len(delays) // 2] / 1000,
        "latency_p99_us": delays[len(delays) * 99 // 100] / 1000,
    }


def main() -> None:
    """Run the side that the first line of stdin describes, and print the result."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # a terminal interrupts the parent too, which ends this process
    side = Side(**json.loads(sys.stdin.buffer.readline()))
    try:
        result = trio.run(send if side.role == "send" else receive, side)
    except CommandError as failure:
        say(f"amqp10: {failure}")
        sys.exit(1)
    except Exception as failure:
        text = explain(failure)
        if text is None:
            raise
        say(f"{side.role}: {text}")
        sys.exit(1)
    _report(result=result)


if __name__ == "__main__":
    main()
