"""``amqp10 send``: one message, or one for each line of stdin."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import trio

import trio_amqp10 as amqp
from trio_amqp10.peer.delivery import raise_unless_accepted
from trio_amqp10.peer.errors import DeliveryError

from .command_runner import CommandError, Interrupts, say, write_out
from .dial_options import DialOptions
from .progress import Progress

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from trio_amqp10.peer.link_options import Guarantee

__all__ = ["SendOptions", "bodies_of", "send"]

T = TypeVar("T")

_IN_FLIGHT = 1000
"""Deliveries whose outcome may be outstanding: enough to keep a distant peer busy, little enough to hold."""

_SILENCE = 2.0
"""Seconds after which the command says what it waits for."""

_READ = 65_536
_PASSED_ON = ("subject", "priority", "message_id", "correlation_id", "reply_to", "content_type")


@dataclass(frozen=True, kw_only=True)
class SendOptions:
    """What the command line said."""

    url: str
    address: str
    body: str | None
    file: str | None
    count: int | None
    guarantee: Guarantee
    binary: bool
    durable: bool
    properties: dict[str, str] = field(default_factory=dict[str, str])
    subject: str | None = None
    ttl: float | None = None
    priority: int | None = None
    message_id: str | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    content_type: str | None = None
    dial: DialOptions = field(default_factory=DialOptions)

    def fields(self) -> dict[str, Any]:
        """The fields of each message that are set, by the names that ``Message`` has for them."""
        said = {
            "durable": self.durable or None,
            "application_properties": self.properties or None,
            "ttl": None if self.ttl is None else max(1, round(self.ttl * 1000)),
        }
        said |= {name: getattr(self, name) for name in _PASSED_ON}
        return {name: value for name, value in said.items() if value is not None}


async def send(options: SendOptions, interrupts: Interrupts) -> None:
    """Send what the options say; prints how many were accepted (or sent, where nobody says so).

    Raises:
        CommandError: a message was not accepted, a line is no text, or there were too few lines.
    """
    bodies = bodies_of(options)
    with Progress("sending", options.count) as progress:
        try:
            with interrupts.here() as scope:
                await _send_all(options, bodies, progress)
        except DeliveryError as failure:
            raise CommandError(
                f"message {progress.count + 1}: {failure} ({progress.count} before it were accepted)"
            ) from None
        if scope.cancelled_caught:
            raise CommandError(f"interrupted: {progress.count} were accepted", 130)
    if options.count is not None and progress.count < options.count:
        raise CommandError(f"sent {progress.count} of {options.count}: there were no more lines")
    await write_out(b"sent %d\n" % progress.count)


def bodies_of(options: SendOptions) -> _Lines | _Copies:
    """What to send, in batches: ``next`` gives some octets each, and nothing at the end."""
    return _Lines(options.file) if options.body is None else _Copies(options.body, options.count or 1)


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
        # What was sent settled has no outcome; a detach with an error says that something was lost.
        if (cause := sender.cause()) is not None:
            raise cause


def _message(octets: bytes, options: SendOptions, number: int) -> amqp.Message | bytes | str:
    body: bytes | str = octets
    if not options.binary:
        try:
            body = octets.decode()
        except UnicodeDecodeError:
            raise CommandError(f"line {number} is not UTF-8: --binary sends lines as they are") from None
    fields = options.fields()
    return amqp.Message(body, **fields) if fields else body


class _Flight:
    """Deliveries on their way, at most so many; settles them in order."""

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
        """Wait for the peer; once, if it takes long, say so: a full queue looks like a program that hangs."""
        if not self._noted:
            with trio.move_on_after(_SILENCE):
                return await wait()
            self._noted = True
            say(
                f"amqp10: waiting: {self._sender.address!r} does not take message {self._progress.count + 1} yet; a full queue "
                "takes none until others are received from it"
            )
        return await wait()


class _Copies:
    """The same body so many times."""

    def __init__(self, body: str, count: int) -> None:
        self._octets = os.fsencode(body)
        self._left = count

    async def next(self) -> list[bytes]:
        """Some more; empty when there are none."""
        await trio.lowlevel.checkpoint()
        batch = [self._octets] * min(self._left, 1000)
        self._left -= len(batch)
        return batch


class _Lines:
    """The lines of a file or of stdin, as they come in; a slow writer holds up nobody else."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._fd = 0 if path is None else -1
        self._rest: list[bytes] = []
        self._over = False

    async def next(self) -> list[bytes]:
        """Some more lines, without their newlines; empty when there are none."""
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
        return lines


def _last_line(parts: Iterable[bytes]) -> Iterable[bytes]:
    """A last line counts also without its newline."""
    line = b"".join(parts)
    return (line,) if line else ()
