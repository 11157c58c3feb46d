"""``amqp10 receive`` and ``amqp10 browse``: print messages.

``receive`` removes the messages from the node, ``browse`` leaves them there.
"""

from __future__ import annotations

import math
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

import trio

from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.amqp10.wire.values import Described, Symbol
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.net.tasks_beside import tasks_beside

from .command_runner import (
    CommandError,
    Interrupts,
    OutputClosedError,
    say,
    unhurried,
    until_output_closed,
    write_out,
)
from .dial_options import DialOptions
from .message_text import body_octets, message_json, raw_json
from .progress import Progress

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    import trio_amqp10 as amqp
    from trio_amqp10.amqp10.message import Message
    from trio_amqp10.amqp10.peer.link_options import Guarantee

Undecodable = Literal["release", "reject", "raw"]
"""The treatment of a message that cannot be decoded.

``raw`` prints its octets and accepts it.
"""

_SELECTOR = Symbol("apache.org:selector-filter:string")
"""The JMS filter that ActiveMQ, Qpid and RabbitMQ's streams support."""

_BATCH = 256
_CREDIT = 1000
_MOST_WITHHELD = 1000
"""The most undecodable messages to hold until the end.

They use memory, and the credit of the link.
"""


@dataclass(frozen=True, kw_only=True)
class ReceiveOptions:
    """The options of ``amqp10 receive`` and ``amqp10 browse``."""

    url: str
    address: str
    count: int | None
    timeout: float | None
    json: bool
    guarantee: Guarantee = "at-least-once"
    selector: str | None = None
    credit: int | None = None
    undecodable: Undecodable = "release"
    until_empty: bool = False
    template: Callable[[Message], bytes] | None = None
    reject: bool = False
    dial: DialOptions = field(default_factory=DialOptions)

    @property
    def window(self) -> int:
        """The most messages in flight or waiting to be printed."""
        return _CREDIT if self.credit is None else self.credit

    @property
    def render(self) -> Callable[[Message], bytes]:
        """The function that writes a message."""
        return self.template or (message_json if self.json else body_octets)

    def source(self, *, copy: bool = False) -> Source:
        """Return the source of the link, with ``copy`` for browsing, and with the filter."""
        return Source(
            address=self.address,
            distribution_mode="copy" if copy else None,
            filter=None if self.selector is None else {_SELECTOR: Described(_SELECTOR, self.selector)},
        )


def output_closed(options: ReceiveOptions, count: int) -> CommandError:
    """Return the error of a command whose reader of stdout ended.

    Before that, ``count`` messages were settled. A pipe holds messages that its reader may never read, and these are settled too.
    """
    if options.guarantee == "at-most-once":
        return CommandError(
            f"the output was closed: {count} messages were received and printed, and messages that were on their way are lost; "
            "use --count to receive a number of messages"
        )
    done = "rejected" if options.reject else "accepted"
    if not count:
        return CommandError(f"the output was closed: no message was {done}")
    return CommandError(
        f"the output was closed: {count} messages were {done}, and its reader may not have read the last of them; use --count to "
        "receive a number of messages"
    )


@asynccontextmanager
async def while_read(
    options: ReceiveOptions, progress: Progress, interrupts: Interrupts
) -> AsyncGenerator[trio.CancelScope, None]:
    """Let the block end at an interrupt, or when the reader of stdout has ended.

    Raises:
        CommandError: the reader has ended.
    """
    closed = False

    async def end_when_closed() -> None:
        nonlocal closed
        await until_output_closed()
        closed = True
        scope.cancel()

    with interrupts.here() as scope:
        async with tasks_beside() as nursery:
            nursery.start_soon(end_when_closed)
            yield scope
    if closed:
        raise output_closed(options, progress.count)


class _Printer:
    """Writes messages, then accepts them: an unwritten message stays at the peer."""

    def __init__(self, options: ReceiveOptions, progress: Progress, *, keep: bool = False) -> None:
        self.undecodable = 0
        self.rejected = 0
        self._options = options
        self._choice = options.undecodable
        self._raw: Callable[[bytes, int], bytes] = raw_json if options.json else _octets
        self._withheld: list[amqp.Delivery] = []
        self._render = options.render
        self._progress = progress
        self._keep = keep

    async def take(self, deliveries: list[amqp.Delivery]) -> None:
        """Write and settle the messages; an interrupt never separates the two."""
        await unhurried(partial(self._take, deliveries))

    async def _take(self, deliveries: list[amqp.Delivery]) -> None:
        lines: list[bytes] = []
        good: list[amqp.Delivery] = []
        for delivery in deliveries:
            try:
                lines.append(self._render(delivery.message))
            except RemoteProtocolError as failure:
                if self._choice == "raw":
                    say(f"amqp10: {_named(delivery)} could not be decoded: {failure.description}")
                    lines.append(self._raw(delivery.payload, delivery.message_format))
                    good.append(delivery)
                else:
                    self._turn_away(delivery, failure)
            else:
                good.append(delivery)
        if lines:
            try:
                await write_out(b"\n".join(lines) + b"\n")
            except OutputClosedError:
                if self._keep:
                    raise
                raise output_closed(self._options, self._progress.count) from None
        for delivery in good:
            if not delivery.settled:
                if self._keep:
                    delivery.release()
                elif self._options.reject:
                    delivery.reject(description="rejected by amqp10 receive --reject")
                else:
                    delivery.accept()
        self._progress.advance(len(good))
        if len(self._withheld) >= _MOST_WITHHELD:
            self.give_back()
            raise CommandError(f"{self.undecodable} of the messages could not be decoded")

    def _turn_away(self, delivery: amqp.Delivery, failure: RemoteProtocolError) -> None:
        """Report a message that cannot be decoded, and reject it or hold it until the end."""
        if self._choice == "reject" and not delivery.settled:
            fate = "is rejected"
            delivery.reject(failure.condition, failure.description)
            self.rejected += 1
        else:
            self.undecodable += 1
            fate = "is gone" if delivery.settled else "stays at the peer"
            if not delivery.settled:
                self._withheld.append(delivery)
        say(f"amqp10: {_named(delivery)} could not be decoded, and {fate}: {failure.description}")

    def give_back(self) -> None:
        """Release the held messages; before the end, the peer would send them again."""
        for delivery in self._withheld:
            delivery.release()
        self._withheld.clear()


def _octets(payload: bytes, message_format: int) -> bytes:  # noqa: ARG001 - the signature of ``raw_json``
    return payload


def _named(delivery: amqp.Delivery) -> str:
    """Return a description of a message whose content cannot be read."""
    return (
        f"the message with delivery-tag {delivery.tag.hex()} and message-format {delivery.message_format:#x}"
    )


async def receive(options: ReceiveOptions, interrupts: Interrupts) -> None:
    """Print and accept messages.

    Ends after ``count`` messages, or when interrupted, or when silent for ``timeout``.

    Raises:
        CommandError: fewer than ``count`` messages arrived, or some could not be decoded.
    """
    async with options.dial.dial(options.url) as connection:
        credit = (
            0
            if options.count is not None or options.until_empty
            else options.credit
            if options.guarantee == "at-most-once"
            else options.window
        )
        async with connection.open_receiver(
            options.address, source=options.source(), guarantee=options.guarantee, credit=credit
        ) as receiver:
            with Progress("receiving", options.count, quiet=_stdout_is_shown()) as progress:
                printer = _Printer(options, progress)
                async with while_read(options, progress, interrupts) as scope:
                    receive_all = _receive_until_empty if options.until_empty else _receive_all
                    why = await receive_all(options, receiver, printer)
                printer.give_back()
                if scope.cancelled_caught:
                    why = "interrupted"
    if options.count is not None and progress.count < options.count:
        raise CommandError(
            f"received {progress.count} of {options.count}: {why}", 130 if interrupts.seen else 1
        )
    if printer.undecodable:
        raise CommandError(f"{printer.undecodable} of the messages could not be decoded")


async def _receive_all(options: ReceiveOptions, receiver: amqp.Receiver, printer: _Printer) -> str:
    """Print messages, and return the reason for the end."""
    granted = 0
    taken = 0
    while options.count is None or taken < options.count:
        if options.count is not None:
            # Never grant more credit than ``count``: the peer may use all of it, and the surplus would have to be released.
            wanted, outstanding = min(options.window, options.count - taken), granted - taken
            if outstanding < wanted and outstanding <= options.window // 2:
                receiver.grant(wanted - outstanding)
                granted += wanted - outstanding
        deliveries: list[amqp.Delivery] = []
        with trio.move_on_after(float("inf") if options.timeout is None else options.timeout) as silence:
            deliveries = await receiver.receive_many(_BATCH)
        if silence.cancelled_caught:
            return f"no message arrived for {options.timeout:g} s"
        rejected = printer.rejected
        await printer.take(deliveries)
        rejected = (
            printer.rejected - rejected
        )  # rejected messages do not count, so others are received instead
        taken += len(deliveries) - rejected
        granted -= rejected
    return "the rest could not be decoded"


async def _receive_until_empty(options: ReceiveOptions, receiver: amqp.Receiver, printer: _Printer) -> str:
    """Print messages until the peer has no more, and return the reason for the end."""
    taken = 0
    while options.count is None or taken < options.count:
        wanted = min(_BATCH, options.window, math.inf if options.count is None else options.count - taken)
        receiver.grant(int(wanted))
        deliveries: list[amqp.Delivery] = []
        with trio.move_on_after(math.inf if options.timeout is None else options.timeout) as silence:
            deliveries = await receiver.drain()
        if silence.cancelled_caught:
            raise CommandError(
                f"the peer did not answer a drain within {options.timeout:g} s: try a longer --timeout"
            )
        rejected = printer.rejected
        await printer.take(deliveries)
        taken += len(deliveries) - (printer.rejected - rejected)
        if len(deliveries) < wanted:
            return "there are no more messages"
    return "the rest could not be decoded"


async def browse(options: ReceiveOptions, interrupts: Interrupts) -> None:
    """Print the messages in a node, at most ``count``, and leave them there.

    Raises:
        CommandError: the node does not support copying, there are fewer than ``count`` messages, or some could not be decoded.
    """
    async with options.dial.dial(options.url) as connection:
        source = options.source(copy=True)
        async with connection.open_receiver(options.address, source=source, credit=0) as receiver:
            granted: Source | None = receiver.remote.source
            if granted is None or granted.distribution_mode != "copy":
                raise CommandError(
                    f"{options.address!r} cannot be browsed, because the peer would remove its messages; use receive to remove them"
                )
            with Progress("browsing", options.count, quiet=_stdout_is_shown()) as progress:
                printer = _Printer(options, progress, keep=True)
                with interrupts.here() as scope:
                    await _receive_until_empty(options, receiver, printer)
                printer.give_back()
    if options.count is not None and progress.count < options.count:
        raise CommandError(f"printed {progress.count} of {options.count}: there are no more messages")
    if scope.cancelled_caught:
        raise CommandError("interrupted", 130)
    if printer.undecodable:
        raise CommandError(f"{printer.undecodable} of the messages could not be decoded")


def _stdout_is_shown() -> bool:
    return sys.stdout.isatty()
