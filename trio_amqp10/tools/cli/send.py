"""``amqp10 send``: send one message, or one for each line of a file or stdin."""

from __future__ import annotations

import os
import sys
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.delivery import raise_unless_accepted
from trio_amqp10.amqp10.peer.errors import DeliveryError

from .command_runner import CommandError, Interrupts, explain, say, was_dialled, write_out
from .dial_options import DialOptions
from .message_from_json import message_from_json
from .progress import Progress

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from trio_amqp10.amqp10.peer.link_options import Guarantee

T = TypeVar("T")

GONE: Final = (amqp.LinkDetachedError, amqp.SessionEndedError, amqp.ConnectionClosedError)
"""The losses of an open link."""
_IN_FLIGHT = 1000
"""The most deliveries without an outcome.

Enough for a distant peer, and few enough to hold in memory.
"""

_SILENCE = 2.0
"""Seconds without progress, after which the command reports that it waits."""

_READ = 65_536
_PASSED_ON = ("subject", "priority", "message_id", "correlation_id", "reply_to", "content_type")


@dataclass(frozen=True, kw_only=True)
class SendOptions:
    """The options of ``amqp10 send``."""

    url: str
    address: str
    body: str | None
    file: str | None
    count: int | None
    guarantee: Guarantee
    binary: bool
    durable: bool
    properties: dict[str, Any] = field(default_factory=dict[str, Any])
    subject: str | None = None
    ttl: float | None = None
    priority: int | None = None
    message_id: str | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    content_type: str | None = None
    json: bool = False
    dial: DialOptions = field(default_factory=DialOptions)

    def fields(self) -> dict[str, Any]:
        """Return the fields to set in each message, by the names of ``Message``."""
        fields = {
            "durable": self.durable or None,
            "application_properties": self.properties or None,
            "ttl": None if self.ttl is None else max(1, round(self.ttl * 1000)),
        }
        fields |= {name: getattr(self, name) for name in _PASSED_ON}
        return {name: value for name, value in fields.items() if value is not None}


async def send(options: SendOptions, interrupts: Interrupts) -> None:
    """Send the messages, and print how many were accepted (or sent, if settled).

    Raises:
        CommandError: a message was not accepted, a line is not UTF-8, or there were too few lines.
    """
    bodies = bodies_of(options)
    with Progress("sending", options.count, quiet=announce_typing(options)) as progress:
        try:
            with interrupts.here() as scope:
                await _send_all(options, bodies, progress)
        except DeliveryError as failure:
            raise CommandError(
                f"message {progress.count + 1}: {failure} ({progress.count} earlier messages were accepted)"
            ) from None
        except GONE as failure:
            raise lost(failure, f"{progress.count} messages were accepted") from None
        if scope.cancelled_caught:
            raise CommandError(f"interrupted: {progress.count} messages were accepted", 130)
    if options.count is not None and progress.count < options.count:
        raise CommandError(f"sent {progress.count} of {options.count}: the input has no more lines")
    await write_out(b"sent %d\n" % progress.count)


def lost(failure: Exception, done: str) -> Exception:
    """Return the error of a command whose link or connection is lost.

    Its text is the reason, and what was ``done`` before.

    It is the failure itself if nothing was sent, because the connection or the link was refused.
    """
    if was_dialled(failure) or isinstance(failure, amqp.LinkRefusedError):
        return failure
    return CommandError(f"{explain(failure)} ({done}; the outcome of others is unknown)")


def bodies_of(options: SendOptions) -> _Lines | _Copies:
    """Return the bodies to send; ``next`` returns a batch of them, empty at the end."""
    if options.body is not None:
        return _Copies(options.body, options.count or 1)
    return _Lines(options.file, keep_returns=options.binary)


def announce_typing(options: SendOptions) -> bool:
    """Return whether the bodies are typed at a terminal; if so, show how to end."""
    typed = options.body is None and options.file is None and sys.stdin.isatty()
    if typed:
        say("amqp10: type one message a line; Ctrl-D at the beginning of a line ends")
    return typed


async def _send_all(options: SendOptions, bodies: _Lines | _Copies, progress: Progress) -> None:
    async with options.dial.dial(options.url) as connection:
        async with connection.open_sender(options.address, guarantee=options.guarantee) as sender:
            flight = _Flight(sender, progress)
            left = options.count
            while left != 0 and (batch := await bodies.next()):
                for octets in batch[:left]:
                    await flight.send(_message(octets, options, progress.count + len(flight.waiting) + 1))
                if left is not None:
                    left -= len(batch[:left])
            await flight.land()
        # A settled message has no outcome, but a detach with an error reports that the peer lost messages.
        if (cause := sender.cause()) is not None:
            raise cause


def message_of_json(octets: bytes, options: SendOptions, number: int) -> amqp.Message:
    """Return the message of one line of JSON, with the fields that the options set.

    Raises:
        CommandError: the line is not a message.
    """
    try:
        message = message_from_json(octets)
    except ValueError as wrong:
        raise CommandError(f"line {number}: {wrong}") from None
    fields = options.fields()
    properties = fields.pop("application_properties", None)
    for name, value in fields.items():
        setattr(message, name, value)
    if properties:
        message.application_properties = {**message.application_properties, **properties}
    return message


def _message(octets: bytes, options: SendOptions, number: int) -> amqp.Message | bytes | str:
    if options.json:
        return message_of_json(octets, options, number)
    body: bytes | str = octets
    if not options.binary:
        try:
            body = octets.decode()
        except UnicodeDecodeError:
            raise CommandError(f"line {number} is not UTF-8: use --binary to send its octets") from None
    fields = options.fields()
    return amqp.Message(body, **fields) if fields else body


class _Flight:
    """Deliveries in flight, up to a limit; their outcomes are awaited in order."""

    def __init__(self, sender: amqp.Sender, progress: Progress) -> None:
        self.waiting: deque[amqp.OutgoingDelivery] = deque()
        self._sender = sender
        self._progress = progress
        self._noted = False

    async def send(self, message: amqp.Message | bytes | str) -> None:
        transmit = partial(self._sender.transmit, message)
        self.waiting.append(await (transmit() if self._sender.credit else self._patiently(transmit)))
        while self.waiting and (self.waiting[0].settled or len(self.waiting) > _IN_FLIGHT):
            await self._settle_oldest()

    async def land(self) -> None:
        while self.waiting:
            await self._settle_oldest()
        await self._sender.flush()

    async def _settle_oldest(self) -> None:
        delivery = self.waiting[0]
        raise_unless_accepted(
            await (delivery.outcome() if delivery.settled else self._patiently(delivery.outcome)), delivery
        )
        self.waiting.popleft()
        self._progress.advance()

    async def _patiently(self, wait: Callable[[], Awaitable[T]]) -> T:
        """Wait for the peer, and report the first long wait, for example for a full queue."""
        if not self._noted:
            with trio.move_on_after(_SILENCE):
                return await wait()
            self._noted = True
            say(
                f"amqp10: waiting: {self._sender.address!r} does not accept message {self._progress.count + 1} yet; a full queue "
                "accepts a message after others are received from it"
            )
        return await wait()


class _Copies:
    """A fixed number of copies of one body."""

    def __init__(self, body: str, count: int) -> None:
        self._octets = os.fsencode(body)
        self._left = count

    async def next(self) -> list[bytes]:
        """Return the next copies; empty at the end."""
        await trio.lowlevel.checkpoint()
        batch = [self._octets] * min(self._left, 1000)
        self._left -= len(batch)
        return batch


class _Lines:
    """The lines of a file or of stdin, read in a thread as they arrive.

    A line may end with a carriage return too, which ``keep_returns`` leaves in the body.
    """

    def __init__(self, path: str | None, *, keep_returns: bool = False) -> None:
        self._keep_returns = keep_returns
        self._path = path
        self._fd = 0 if path is None else -1
        self._rest: list[bytes] = []
        self._over = False

    async def next(self) -> list[bytes]:
        """Return the next lines, without newlines; empty at the end."""
        while not self._over:
            lines = self._split(await trio.to_thread.run_sync(self._read, abandon_on_cancel=True))
            if lines:
                return lines
        return []

    def _read(self) -> bytes:
        if self._fd < 0:
            assert self._path is not None
            self._fd = os.open(self._path, os.O_RDONLY)
        return os.read(self._fd, _READ)

    def _split(self, octets: bytes) -> list[bytes]:
        if not octets:
            self._over = True
            if self._path is not None:
                os.close(self._fd)
            return list(_last_line(self._rest))
        first, *others = octets.split(b"\n")
        self._rest.append(first)
        if not others:
            return []
        lines = [b"".join(self._rest), *others[:-1]]
        self._rest = [others[-1]]
        return lines if self._keep_returns else [line.removesuffix(b"\r") for line in lines]


def _last_line(parts: Iterable[bytes]) -> Iterable[bytes]:
    """Return the last line if it has octets but no newline."""
    line = b"".join(parts)
    return (line,) if line else ()
