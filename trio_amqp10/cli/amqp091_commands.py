"""``amqp10 send``, ``receive`` and ``request`` in AMQP 0-9-1: publish with confirm, consume and acknowledge, ask.

The output and the exit codes are those of the commands in AMQP 1.0.
"""

from __future__ import annotations

import sys
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10 import amqp091

from .command_runner import CommandError, Interrupts, unhurried, write_out
from .message_text import message_json
from .progress import Progress
from .send import bodies_of

if TYPE_CHECKING:
    from .amqp091_target import Route
    from .receive import ReceiveOptions
    from .request import RequestOptions
    from .send import SendOptions

__all__ = ["receive", "request", "send"]

_BATCH: Final = 256
_PREFETCH: Final = 1000
_PERSISTENT: Final = 2


async def send(options: SendOptions, route: Route, interrupts: Interrupts) -> None:
    """Publish what the options say, and print how many were confirmed (or written, if at most once is asked for).

    Raises:
        CommandError: a message was refused or came back, or there were too few lines.
    """
    with Progress("sending", options.count) as progress:
        try:
            with interrupts.here() as scope:
                await _publish_all(options, route, progress)
        except amqp091.PublishError as failure:
            raise CommandError(
                f"message {progress.count + 1}: {failure} ({progress.count} before it were confirmed)"
            ) from None
        if scope.cancelled_caught:
            raise CommandError(f"interrupted: {progress.count} were confirmed", 130)
    if options.count is not None and progress.count < options.count:
        raise CommandError(f"sent {progress.count} of {options.count}: there were no more lines")
    await write_out(b"sent %d\n" % progress.count)


async def _publish_all(options: SendOptions, route: Route, progress: Progress) -> None:
    fields = options.fields()
    ttl = fields.get("ttl")
    properties = amqp091.BasicProperties(
        headers=dict(options.properties) or None,
        delivery_mode=_PERSISTENT if options.durable else None,
        expiration=None if ttl is None else str(ttl),
        priority=options.priority,
        message_id=options.message_id,
        correlation_id=options.correlation_id,
        reply_to=options.reply_to,
        content_type=options.content_type,
    )
    bodies, left = bodies_of(options), options.count
    async with options.dial.dial_091(options.url) as connection:
        confirms = options.guarantee != "at-most-once"
        async with connection.open_publisher() if confirms else connection.open_channel() as channel:
            tickets: deque[amqp091.Ticket] = deque()
            while left != 0 and (batch := await bodies.next()):
                for octets in batch[:left]:
                    if isinstance(channel, amqp091.Publisher):
                        tickets.append(
                            await channel.transmit(
                                route.exchange,
                                route.routing_key,
                                octets,
                                properties=properties,
                                mandatory=True,
                            )
                        )
                        if len(tickets) > _PREFETCH:
                            await _confirm_oldest(tickets, progress)
                    else:
                        await channel.publish(
                            route.exchange, route.routing_key, octets, properties=properties
                        )
                        progress.advance()
                if left is not None:
                    left -= len(batch[:left])
            while tickets:
                await _confirm_oldest(tickets, progress)


async def _confirm_oldest(tickets: deque[amqp091.Ticket], progress: Progress) -> None:
    await tickets[0].outcome()
    tickets.popleft()
    progress.advance()


async def receive(options: ReceiveOptions, route: Route, interrupts: Interrupts) -> None:
    """Print messages of a queue, and acknowledge what is written: so many, or until interrupted or silent.

    Raises:
        CommandError: fewer came than were asked for.
    """
    async with options.dial.dial_091(options.url) as connection, connection.open_channel() as channel:
        prefetch = options.window if options.count is None else min(options.window, options.count)
        with Progress("receiving", options.count, quiet=sys.stdout.isatty()) as progress:
            printer = _Printer(options, prefetch, progress)
            try:
                async with channel.queue(route.routing_key).consume(prefetch=prefetch) as consumer:
                    with interrupts.here() as scope:
                        why = await _receive_all(options, consumer, printer)
                    if scope.cancelled_caught:
                        why = "interrupted"
            finally:  # once the consumer is cancelled: the server sends nothing more in their place
                printer.ack_all()
    if options.count is not None and progress.count < options.count:
        raise CommandError(
            f"received {progress.count} of {options.count}: {why}", 130 if interrupts.seen else 1
        )


async def _receive_all(options: ReceiveOptions, consumer: amqp091.Consumer, printer: _Printer) -> str:
    """Returns why it ended."""
    taken = 0
    while options.count is None or taken < options.count:
        most = _BATCH if options.count is None else min(_BATCH, options.count - taken)
        deliveries: list[amqp091.Delivery] = []
        with trio.move_on_after(float("inf") if options.timeout is None else options.timeout) as silence:
            deliveries = await consumer.receive_many(most)
        if silence.cancelled_caught:
            return f"nothing came for {options.timeout:g} s"
        taken += len(deliveries)
        await printer.take(deliveries)
    return "that was all"


class _Printer:
    """Writes messages, and acknowledges what is written.

    The server sends as many messages as are acknowledged and the prefetch more. To be sent no more than are wanted,
    the last ones are acknowledged together at the end.
    """

    def __init__(self, options: ReceiveOptions, prefetch: int, progress: Progress) -> None:
        self._options = options
        self._written: deque[amqp091.Delivery] = deque()
        self._left = None if options.count is None else options.count - prefetch
        """Acknowledgements before the end, or None for any number."""
        self._progress = progress

    async def take(self, deliveries: list[amqp091.Delivery]) -> None:
        """Write and acknowledge; an interrupt that comes meanwhile leaves nothing written and unacknowledged."""
        if self._options.guarantee == "at-most-once":
            for delivery in deliveries:
                delivery.ack()
        await unhurried(partial(self._take, deliveries))

    async def _take(self, deliveries: list[amqp091.Delivery]) -> None:
        as_json = self._options.json
        lines = [message_json(each.to_message()) if as_json else each.body for each in deliveries]
        await write_out(b"\n".join(lines) + b"\n")
        self._progress.advance(len(deliveries))
        self._written += (each for each in deliveries if not each.settled)
        while self._written and self._left != 0:
            self._written.popleft().ack()
            if self._left is not None:
                self._left -= 1

    def ack_all(self) -> None:
        """Acknowledge what is written."""
        while self._written:
            self._written.popleft().ack()


async def request(options: RequestOptions, route: Route, interrupts: Interrupts) -> None:  # noqa: ARG001 - it is cancelled whole
    """Publish the request and print the reply.

    Raises:
        CommandError: none came in time.
    """
    async with (
        options.dial.dial_091(options.url) as connection,
        connection.open_requester(route.routing_key, route.exchange) as requester,
    ):
        try:
            with trio.fail_after(options.timeout):
                reply = await requester.request(options.body.encode(errors="surrogateescape"))
        except trio.TooSlowError:
            raise CommandError(f"no reply came within {options.timeout:g} s") from None
    await write_out((message_json(reply.to_message()) if options.json else reply.body) + b"\n")
