"""``amqp10 send``, ``receive`` and ``request`` in AMQP 0-9-1.

Publish with confirms, consume and acknowledge, and send requests. Output and exit codes are those of the commands in AMQP 1.0.
"""

from __future__ import annotations

import sys
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10 import amqp091
from trio_amqp10.amqp091.conversion.translate import to_publication
from trio_amqp10.amqp091.conversion.value_translation import from_standard

from .command_runner import CommandError, Interrupts, OutputClosedError, unhurried, write_out
from .message_text import body_octets, message_json
from .progress import Progress
from .receive import output_closed, while_read
from .request import body_of
from .send import announce_typing, bodies_of, lost, message_of_json

if TYPE_CHECKING:
    from .receive import ReceiveOptions
    from .request import RequestOptions
    from .send import SendOptions
    from .target_arguments import Route

_BATCH: Final = 256
_PREFETCH: Final = 1000
_PERSISTENT: Final = 2


async def send(options: SendOptions, route: Route, interrupts: Interrupts) -> None:
    """Publish the messages, and print how many were confirmed (or written).

    Raises:
        CommandError: a message was refused or returned, or there were too few lines.
    """
    with Progress("sending", options.count, quiet=announce_typing(options)) as progress:
        try:
            with interrupts.here() as scope:
                await _publish_all(options, route, progress)
        except amqp091.PublishError as failure:
            raise CommandError(
                f"message {progress.count + 1}: {failure} ({progress.count} earlier messages were confirmed)"
            ) from None
        except (amqp091.ChannelClosedError, amqp091.ConnectionClosedError) as failure:
            raise lost(failure, f"{progress.count} messages were confirmed") from None
        if scope.cancelled_caught:
            raise CommandError(f"interrupted: {progress.count} messages were confirmed", 130)
    if options.count is not None and progress.count < options.count:
        raise CommandError(f"sent {progress.count} of {options.count}: the input has no more lines")
    await write_out(b"sent %d\n" % progress.count)


async def _publish_all(options: SendOptions, route: Route, progress: Progress) -> None:
    fields = options.fields()
    ttl = fields.get("ttl")
    common = amqp091.BasicProperties(
        headers={name: from_standard(value) for name, value in options.properties.items()} or None,
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
                    properties = common
                    if options.json:
                        made = message_of_json(octets, options, progress.count + len(tickets) + 1)
                        properties, octets, *_ = to_publication(made, plain_text=True)  # noqa: PLW2901
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
    """Print messages of a queue, and acknowledge each message after it is written.

    Ends after ``count`` messages, or when interrupted, or when silent for ``timeout``.

    Raises:
        CommandError: fewer than ``count`` messages arrived.
    """
    async with options.dial.dial_091(options.url) as connection, connection.open_channel() as channel:
        prefetch = options.window if options.count is None else min(options.window, options.count)
        with Progress("receiving", options.count, quiet=sys.stdout.isatty()) as progress:
            printer = _Printer(options, prefetch, progress)
            try:
                if options.until_empty:
                    async with while_read(options, progress, interrupts) as scope:
                        why = await _receive_until_empty(options, channel.queue(route.routing_key), printer)
                else:
                    async with (
                        channel.queue(route.routing_key).consume(prefetch=prefetch) as consumer,
                        while_read(options, progress, interrupts) as scope,
                    ):
                        why = await _receive_all(options, consumer, printer)
                if scope.cancelled_caught:
                    why = "interrupted"
            finally:  # the consumer is cancelled, so the server sends no other messages instead
                printer.settle_all()
    if options.count is not None and progress.count < options.count:
        raise CommandError(
            f"received {progress.count} of {options.count}: {why}", 130 if interrupts.seen else 1
        )


async def _receive_all(options: ReceiveOptions, consumer: amqp091.Consumer, printer: _Printer) -> str:
    """Print messages, and return the reason for the end."""
    taken = 0
    while options.count is None or taken < options.count:
        most = _BATCH if options.count is None else min(_BATCH, options.count - taken)
        deliveries: list[amqp091.Delivery] = []
        with trio.move_on_after(float("inf") if options.timeout is None else options.timeout) as silence:
            deliveries = await consumer.receive_many(most)
        if silence.cancelled_caught:
            return f"no message arrived for {options.timeout:g} s"
        taken += len(deliveries)
        await printer.take(deliveries)
    return "that was all"


async def _receive_until_empty(options: ReceiveOptions, queue: amqp091.Queue, printer: _Printer) -> str:
    """Get messages until the queue has none, and return the reason for the end."""
    taken = 0
    while options.count is None or taken < options.count:
        delivery = await queue.get()
        if delivery is None:
            return "there are no more messages"
        taken += 1
        await printer.take([delivery])
    return "that was all"


class _Printer:
    """Writes messages, then acknowledges them.

    The server sends as many messages as are acknowledged, plus the prefetch. To receive no more than ``count`` messages, the
    last ones are acknowledged together at the end.
    """

    def __init__(self, options: ReceiveOptions, prefetch: int, progress: Progress) -> None:
        self._options = options
        self._written: deque[amqp091.Delivery] = deque()
        self._left = None if options.count is None else options.count - prefetch
        """The remaining acknowledgements before the end; None for no limit."""
        self._progress = progress

    async def take(self, deliveries: list[amqp091.Delivery]) -> None:
        """Write and acknowledge the messages; an interrupt never separates the two."""
        if self._options.guarantee == "at-most-once":
            for delivery in deliveries:
                delivery.ack()
        await unhurried(partial(self._take, deliveries))

    async def _take(self, deliveries: list[amqp091.Delivery]) -> None:
        render = self._options.render
        plain = render is body_octets
        lines = [each.body if plain else render(each.to_message()) for each in deliveries]
        try:
            await write_out(b"\n".join(lines) + b"\n")
        except OutputClosedError:
            raise output_closed(self._options, self._progress.count) from None
        self._progress.advance(len(deliveries))
        self._written += (each for each in deliveries if not each.settled)
        while self._written and self._left != 0:
            self._settle(self._written.popleft())
            if self._left is not None:
                self._left -= 1

    def settle_all(self) -> None:
        """Acknowledge, or reject, all written messages."""
        while self._written:
            self._settle(self._written.popleft())

    def _settle(self, delivery: amqp091.Delivery) -> None:
        if self._options.reject:
            delivery.reject(requeue=False)
        else:
            delivery.ack()


async def request(options: RequestOptions, route: Route, interrupts: Interrupts) -> None:  # noqa: ARG001 - an interrupt cancels the whole command
    """Publish the request and print the reply.

    Raises:
        CommandError: no reply arrived in time.
    """
    body = await body_of(options)
    async with (
        options.dial.dial_091(options.url) as connection,
        connection.open_requester(route.routing_key, route.exchange) as requester,
    ):
        try:
            with trio.fail_after(options.timeout):
                reply = await requester.request(body.encode(errors="surrogateescape"))
        except trio.TooSlowError:
            raise CommandError(
                f"no reply arrived within {options.timeout:g} s: is there a consumer that replies? --timeout waits longer"
            ) from None
    await write_out((message_json(reply.to_message()) if options.json else reply.body) + b"\n")
