"""``amqp10 receive`` and ``amqp10 browse``: take messages, or look at them."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

import trio

from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.spec.messaging import Source
from trio_amqp10.wire.values import Described, Symbol

from .command_runner import CommandError, Interrupts, say, unhurried, write_out
from .dial_options import DialOptions
from .message_text import body_octets, message_json, raw_json
from .progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable

    import trio_amqp10 as amqp
    from trio_amqp10.message import Message
    from trio_amqp10.peer.link_options import Guarantee

__all__ = ["ReceiveOptions", "Undecodable", "browse", "receive"]

Undecodable = Literal["release", "reject", "raw"]
"""What happens to a message that cannot be decoded: it goes back, is rejected, or its octets are printed as they are."""

_SELECTOR = Symbol("apache.org:selector-filter:string")
"""The filter of that name, as ActiveMQ, Qpid and RabbitMQ's streams register it."""

_BATCH = 256
_CREDIT = 1000
_MOST_WITHHELD = 1000
"""Messages that cannot be decoded, held until the end: they are in memory, and the peer may wait for them."""


@dataclass(frozen=True, kw_only=True)
class ReceiveOptions:
    """What the command line said."""

    url: str
    address: str
    count: int | None
    timeout: float | None
    json: bool
    guarantee: Guarantee = "at-least-once"
    selector: str | None = None
    credit: int | None = None
    undecodable: Undecodable = "release"
    dial: DialOptions = field(default_factory=DialOptions)

    @property
    def window(self) -> int:
        """How many messages may be on their way or here."""
        return _CREDIT if self.credit is None else self.credit

    def source(self, *, copy: bool = False) -> Source:
        """What messages are taken from, or copied, and which."""
        return Source(
            address=self.address,
            distribution_mode="copy" if copy else None,
            filter=None if self.selector is None else {_SELECTOR: Described(_SELECTOR, self.selector)},
        )


class _Printer:
    """Writes messages, and accepts those that are written: what could not be written is never consumed."""

    def __init__(self, options: ReceiveOptions, progress: Progress, *, keep: bool = False) -> None:
        self.undecodable = 0
        self.rejected = 0
        self._choice = options.undecodable
        self._raw: Callable[[bytes, int], bytes] = raw_json if options.json else _octets
        self._withheld: list[amqp.Delivery] = []
        self._render: Callable[[Message], bytes] = message_json if options.json else body_octets
        self._progress = progress
        self._keep = keep

    async def take(self, deliveries: list[amqp.Delivery]) -> None:
        """Write and settle; an interrupt that comes meanwhile leaves nothing written and not settled."""
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
            await write_out(b"\n".join(lines) + b"\n")
        for delivery in good:
            if not delivery.settled:
                if self._keep:
                    delivery.release()
                else:
                    delivery.accept()
        self._progress.advance(len(good))
        if len(self._withheld) >= _MOST_WITHHELD:
            self.give_back()
            raise CommandError(f"{self.undecodable} of the messages could not be decoded")

    def _turn_away(self, delivery: amqp.Delivery, failure: RemoteProtocolError) -> None:
        """Report a message that cannot be decoded, and reject it or keep it back."""
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
        """Release what could not be printed: at the end, for it would come again at once."""
        for delivery in self._withheld:
            delivery.release()
        self._withheld.clear()


def _octets(payload: bytes, message_format: int) -> bytes:  # noqa: ARG001 - as ``raw_json``
    return payload


def _named(delivery: amqp.Delivery) -> str:
    """A message, by what is known of one that cannot be read."""
    return f"the message of delivery-tag {delivery.tag.hex()} and message-format {delivery.message_format:#x}"


async def receive(options: ReceiveOptions, interrupts: Interrupts) -> None:
    """Print and accept messages: so many, or until interrupted, or until nothing came for a while.

    Raises:
        CommandError: fewer came than were asked for, or some could not be decoded.
    """
    async with options.dial.dial(options.url) as connection:
        credit = (
            0
            if options.count is not None
            else options.credit
            if options.guarantee == "at-most-once"
            else options.window
        )
        async with connection.open_receiver(
            options.address, source=options.source(), guarantee=options.guarantee, credit=credit
        ) as receiver:
            with Progress("receiving", options.count, quiet=_stdout_is_shown()) as progress:
                printer = _Printer(options, progress)
                with interrupts.here() as scope:
                    why = await _receive_all(options, receiver, printer)
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
    """Returns why it ended."""
    granted = 0
    taken = 0
    while options.count is None or taken < options.count:
        if options.count is not None:
            # Never more than is wanted: what is granted may come, and would be ours to give back.
            wanted, outstanding = min(options.window, options.count - taken), granted - taken
            if outstanding < wanted and outstanding <= options.window // 2:
                receiver.grant(wanted - outstanding)
                granted += wanted - outstanding
        deliveries: list[amqp.Delivery] = []
        with trio.move_on_after(float("inf") if options.timeout is None else options.timeout) as silence:
            deliveries = await receiver.receive_many(_BATCH)
        if silence.cancelled_caught:
            return f"nothing came for {options.timeout:g} s"
        rejected = printer.rejected
        await printer.take(deliveries)
        rejected = (
            printer.rejected - rejected
        )  # they are out of the way, and others are received in their place
        taken += len(deliveries) - rejected
        granted -= rejected
    return "the rest could not be decoded"


async def browse(options: ReceiveOptions, interrupts: Interrupts) -> None:
    """Print the messages that are at a node now, or the first so many, and leave them there.

    Raises:
        CommandError: the node only gives messages away, or fewer are there than were asked for.
    """
    async with options.dial.dial(options.url) as connection:
        source = options.source(copy=True)
        async with connection.open_receiver(options.address, source=source, credit=0) as receiver:
            granted: Source | None = receiver.remote.source
            if granted is None or granted.distribution_mode != "copy":
                raise CommandError(
                    f"{options.address!r} cannot be browsed: the peer would move its messages, not copy them"
                )
            with Progress("browsing", options.count, quiet=_stdout_is_shown()) as progress:
                printer = _Printer(options, progress, keep=True)
                with interrupts.here() as scope:
                    await _browse_all(options, receiver, printer)
                printer.give_back()
    if options.count is not None and progress.count < options.count:
        raise CommandError(f"{progress.count} of {options.count}: there are no more messages")
    if scope.cancelled_caught:
        raise CommandError("interrupted", 130)
    if printer.undecodable:
        raise CommandError(f"{printer.undecodable} of the messages could not be decoded")


async def _browse_all(options: ReceiveOptions, receiver: amqp.Receiver, printer: _Printer) -> None:
    seen = 0
    while options.count is None or seen < options.count:
        wanted = _BATCH if options.count is None else min(_BATCH, options.count - seen)
        receiver.grant(wanted)
        deliveries: list[amqp.Delivery] = []
        with trio.move_on_after(float("inf") if options.timeout is None else options.timeout) as silence:
            deliveries = await receiver.drain()
        if silence.cancelled_caught:
            raise CommandError(f"the peer did not answer a drain within {options.timeout:g} s")
        seen += len(deliveries)
        await printer.take(deliveries)
        if len(deliveries) < wanted:
            return


def _stdout_is_shown() -> bool:
    return sys.stdout.isatty()
