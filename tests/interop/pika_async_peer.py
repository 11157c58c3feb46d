"""pika's asynchronous connections, select and asyncio, against a broker: ``pika_async_peer.py URL ADAPTER.SCENARIO``.

A scenario that takes ``restart`` has the broker restarted by whoever started this: it prints ``restart``, and goes on
after a line of the standard input. Runs in the environment of the clients, without this project.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from typing import TYPE_CHECKING, Any

import pika
from pika.adapters.asyncio_connection import AsyncioConnection

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    Steps = Generator[Any, Any, None]
    Restart = Callable[[], None]

SECONDS = 20
ADAPTERS = {"select": pika.SelectConnection, "asyncio": AsyncioConnection}


class Run:
    """One connection after another, in whose loop a generator runs; it waits for what it yields to call it back."""

    def __init__(self, url: str, adapter: str) -> None:
        self.url = url
        self.adapter = adapter
        self.steps: Steps
        self.begun = False
        self.connection: Any = None
        self.channel: Any = None
        self.failure: BaseException | None = None

    def run(self, scenario: Callable[[Run], Steps]) -> None:
        self.steps = scenario(self)
        self.dial()
        self.connection.ioloop.call_later(SECONDS, self.time_out)
        if self.adapter == "select":
            self.connection.ioloop.start()
        else:
            self.connection.ioloop.run_forever()
        if self.failure is not None:
            raise self.failure

    def dial(self, *_: Any) -> None:
        options = {} if self.connection is None else {"custom_ioloop": self.connection.ioloop}
        self.connection = ADAPTERS[self.adapter](
            pika.URLParameters(self.url),
            on_open_callback=self.on_open,
            on_open_error_callback=self.dial_later,
            on_close_callback=self.dial_later,
            **options,
        )

    def dial_later(self, *_: Any) -> None:
        self.connection.ioloop.call_later(0.2, self.dial)

    def on_open(self, _: Any) -> None:
        self.connection.channel(on_open_callback=self.on_channel)

    def on_channel(self, channel: Any) -> None:
        self.channel = channel
        self.go_on(channel)

    def go_on(self, *values: Any) -> None:
        """What a step waited for has come: begin the next."""
        try:
            begun, self.begun = self.begun, True
            begin = self.steps.send(values[-1] if begun else None)
            begin()
        except StopIteration:
            self.stop()
        except BaseException as failure:
            self.failure = failure
            self.stop()

    def time_out(self) -> None:
        self.failure = self.failure or TimeoutError("the scenario took too long")
        self.stop()

    def stop(self) -> None:
        self.connection.ioloop.stop()


def fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def confirms_of_many(run: Run) -> Steps:
    """Each publish is confirmed once, alone or with those before it."""
    channel = run.channel
    confirmed: set[int] = set()

    def on_confirm(frame: Any) -> None:
        method = frame.method
        assert method.NAME == "Basic.Ack"
        first = max(confirmed, default=0) + 1 if method.multiple else method.delivery_tag
        confirmed.update(range(first, method.delivery_tag + 1))
        if len(confirmed) == 1000:
            run.go_on(None)

    declared = yield lambda: channel.queue_declare("", exclusive=True, callback=run.go_on)
    yield lambda: channel.confirm_delivery(on_confirm, callback=run.go_on)

    def publish() -> None:
        for number in range(1000):
            channel.basic_publish("", declared.method.queue, b"%d" % number)

    yield publish
    again = yield lambda: channel.queue_declare(declared.method.queue, passive=True, callback=run.go_on)
    assert confirmed == set(range(1, 1001))
    assert again.method.message_count == 1000


def cancelled_by_the_server(run: Run) -> Steps:
    channel = run.channel
    declared = yield lambda: channel.queue_declare("", exclusive=True, callback=run.go_on)
    queue = declared.method.queue
    yield lambda: channel.basic_consume(queue, lambda *_: None, callback=run.go_on)
    channel.add_on_cancel_callback(run.go_on)
    cancelled = yield lambda: channel.queue_delete(queue)
    assert cancelled.method.consumer_tag


def consumer_comes_back_after_a_restart(run: Run, restart: Restart) -> Steps:
    """As in pika's own asynchronous example: all is set up anew on each connection."""
    queue = fresh("kept")
    for number in (1, 2):
        channel = run.channel
        declare = run.channel.queue_declare
        yield lambda declare=declare: declare(queue, durable=True, callback=run.go_on)
        yield lambda channel=channel: channel.basic_qos(prefetch_count=1, callback=run.go_on)

        def consume(channel: Any = channel, number: int = number) -> None:
            channel.basic_consume(queue, run.go_on)
            channel.basic_publish("", queue, b"%d" % number)

        body = yield consume
        if body == b"1" and number == 2:  # nothing answers an ack, which a kill may have come before
            body = yield lambda channel=channel: channel.basic_ack(1)
        assert body == b"%d" % number
        if number == 1:
            channel.basic_ack(1)
            yield restart  # the new connection goes on with its channel
    yield lambda: run.channel.queue_delete(queue, callback=run.go_on)


def _restart() -> None:
    print("restart", flush=True)
    sys.stdin.readline()


def main() -> None:
    adapter, _, name = sys.argv[2].partition(".")
    scenario = globals()[name]
    if adapter == "asyncio":
        asyncio.set_event_loop(asyncio.new_event_loop())
    if "restart" in scenario.__annotations__:
        Run(sys.argv[1], adapter).run(lambda run: scenario(run, _restart))
    else:
        Run(sys.argv[1], adapter).run(scenario)


if __name__ == "__main__":
    main()
