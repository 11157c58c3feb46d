"""``amqp10 move`` and ``redrive``: send messages of a queue elsewhere, or back.

A container moves them itself, a thousand at a time, so each message is at exactly one of the two, whatever is interrupted. With
another peer, this program receives and sends: in transactions of the peer, if it has them, otherwise so that an interrupt may
leave a message at both.

Knows replies of management, links and transactions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.wire.values import Described, Symbol
from trio_amqp10.container.management.errors import OperationRefusedError

from .command_runner import CommandError, Interrupts, say, write_out
from .dial_management import dial_management
from .dial_options import DialOptions
from .open_management import NoManagementError, open_management, refusal_text
from .progress import Progress

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from trio_amqp10.amqp10.peer.delivery import Delivery
    from trio_amqp10.container.management.remote_management import RemoteManagement

T = TypeVar("T")

_STEP: Final = 1000
"""Messages that one request moves."""
_BATCH: Final = 100
"""Messages that are received together from another peer."""
_PATIENCE: Final = 10.0
"""Seconds to wait for another peer to send what it has."""
_SELECTOR: Final = Symbol("apache.org:selector-filter:string")


@dataclass(frozen=True, kw_only=True)
class MoveOptions:
    """The options of ``amqp10 move``."""

    url: str
    source: str
    target: str
    count: int | None = None
    selector: str | None = None
    dial: DialOptions = field(default_factory=DialOptions)


@dataclass(frozen=True, kw_only=True)
class RedriveOptions:
    """The options of ``amqp10 redrive``."""

    url: str
    queue: str
    count: int | None = None
    died_in: str | None = None
    dial: DialOptions = field(default_factory=DialOptions)


async def move(options: MoveOptions, interrupts: Interrupts) -> None:
    """Move messages, and print how many.

    Raises:
        CommandError: not all were moved; the others are still in the source.
    """
    try:
        async with open_management(options.url, options.dial, patience=None) as management:
            await _move_there(management, options, interrupts)
            return
    except NoManagementError:
        pass
    async with dial_management(options.url, options.dial) as connection:
        await _move_here(connection, options, interrupts)


async def _move_there(management: RemoteManagement, options: MoveOptions, interrupts: Interrupts) -> None:
    ready = (await management.queue(options.source)).ready
    wanted = ready if options.count is None else min(options.count, ready)
    moved = 0
    with Progress("moving", None if options.selector else wanted) as progress, interrupts.here() as scope:
        while True:  # also if the queue is empty, so that the container checks the target and the filter
            step = min(_STEP, max(1, wanted - moved))
            try:
                done = await _uninterrupted(
                    management.move(options.source, options.target, step, filter=options.selector)
                )
            except OperationRefusedError as refused:
                before = f"; {moved} messages were moved before, in earlier steps" if moved else ""
                raise CommandError(f"{refusal_text(refused)}{before}") from None
            progress.advance(done)
            moved += done
            if done < step or moved >= wanted:
                break
            await trio.lowlevel.checkpoint()
    await _report(moved, options.source, interrupted=scope.cancelled_caught)


async def _uninterrupted(reply: Awaitable[T]) -> T:
    """Wait for a reply; an interrupt waits for it too."""
    found: list[T] = []
    with trio.CancelScope(shield=True):
        found.append(await reply)
    return found[0]


async def _report(moved: int, source: str, *, interrupted: bool) -> None:
    await write_out(f"moved {moved}\n".encode())
    if interrupted:
        raise CommandError(f"interrupted; the other messages are still in {source}", 130)


async def _move_here(connection: amqp.Connection, options: MoveOptions, interrupts: Interrupts) -> None:
    chosen = None if options.selector is None else {_SELECTOR: Described(_SELECTOR, options.selector)}
    source = amqp.Source(address=options.source, filter=chosen)
    moved, transacts = 0, True
    with Progress("moving", options.count) as progress, interrupts.here() as scope:
        async with (
            connection.open_receiver(options.source, source=source, credit=0) as receiver,
            connection.open_sender(options.target) as sender,
        ):
            while options.count is None or moved < options.count:
                receiver.grant(_BATCH if options.count is None else min(_BATCH, options.count - moved))
                found: list[Delivery] = []
                with trio.move_on_after(_PATIENCE) as silence:
                    found = await receiver.drain()
                if silence.cancelled_caught:
                    raise CommandError(f"{options.source!r} did not answer a drain within {_PATIENCE:g} s")
                if not found:
                    break
                if transacts:
                    transacts = await _in_transaction(connection, sender, found)
                if not transacts:
                    for delivery in found:
                        await sender.send(delivery.message)
                        delivery.accept()
                progress.advance(len(found))
                moved += len(found)
    await _report(moved, options.source, interrupted=scope.cancelled_caught)


async def _in_transaction(connection: amqp.Connection, sender: amqp.Sender, found: list[Delivery]) -> bool:
    """Move these messages in a transaction; return False if the peer has none."""
    try:
        async with connection.open_transaction() as transaction:
            for delivery in found:
                await sender.send(delivery.message, transaction=transaction)
                delivery.accept(transaction=transaction)
    except (amqp.LinkRefusedError, amqp.SessionEndedError) as refused:
        say(
            f"amqp10: the peer has neither $management nor transactions ({refused}), so an interrupt may leave "
            "a message at both"
        )
        return False
    return True


async def redrive(options: RedriveOptions, interrupts: Interrupts) -> None:
    """Send dead letters back, and print how many went to each queue.

    Raises:
        CommandError: some could not go back; they are still in the queue.
    """
    moved: dict[str, int] = {}
    async with open_management(options.url, options.dial, patience=None) as management:
        ready = (await management.queue(options.queue)).ready
        wanted = ready if options.count is None else min(options.count, ready)
        left = ready
        with (
            Progress("redriving", None if options.died_in else wanted) as progress,
            interrupts.here() as scope,
        ):
            while True:  # also if the queue is empty, so that the container checks where they died
                step = min(_STEP, max(1, wanted - sum(moved.values())))
                done = await _uninterrupted(management.redrive(options.queue, step, died_in=options.died_in))
                for address, count in done.moved.items():
                    moved[address] = moved.get(address, 0) + count
                progress.advance(sum(done.moved.values()))
                left = done.left
                if sum(done.moved.values()) < step or sum(moved.values()) >= wanted:
                    break
                await trio.lowlevel.checkpoint()
    lines = [f"moved {count} to {address}\n" for address, count in moved.items()] or ["moved 0\n"]
    await write_out("".join(lines).encode())
    if scope.cancelled_caught:
        raise CommandError(f"interrupted; the other messages are still in {options.queue}", 130)
    if left and options.count is None and options.died_in is None:
        raise CommandError(
            f"{left} messages stay in {options.queue}: they have no history of deaths, or their queue does not exist"
        )
