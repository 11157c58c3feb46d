"""Send the messages of one task, and report the outcome of each (3.4).

========================  ===================================================================
``transactions``          what a task that returns means, and one that fails
========================  ===================================================================
``none``                  all were accepted; of a failed one, some may be there
``task``                  all are there; of a failed one, none is
``ledger``                as ``task``, and a task of that name will never be there twice
========================  ===================================================================

With a ledger the task's record goes into the same transaction. An attempt tries first whether the ledger would take it, in
a transaction that is rolled back; only if not, it looks for the record, and where it finds it, it has nothing to do. So
how many records there are does not matter to a task that is not repeated. Two attempts at a time cannot both commit: a ledger
takes a name once (``ledger_node``).

``released``, and ``modified`` without undeliverable-here, say "not now": such a message is sent
again, after those that came behind it, until ``sendTimeout`` is over (3.4.4, 3.4.5).

Knows messages and links; of Spark, nothing.

"""

from __future__ import annotations

import json
from collections import deque
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

import trio_amqp10 as amqp
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spec.messaging import Source

from .connection_pool import borrow
from .connections import dialling
from .failure_points import passing
from .ledger_node import BATCH, CLAIMED, JOB
from .source_selection import selecting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from .message_encoder import OutgoingBatch
    from .options import SinkOptions

__all__ = ["Report", "SinkError", "TaskName", "send_all"]

_RETRY_PAUSE: Final = 0.2
_IN_DOUBT: Final = 2.0
"""Seconds that a ledger is asked again whether a discharge that nobody answered was done."""
_AT_ONCE: Final = 128
"""Messages that go into one write, about."""
_MOST_SENDERS: Final = 100
"""Links that a task keeps open, where its rows go to many addresses."""
_LASTING: Final = 24 * 3_600_000
"""Milliseconds that the record of a task stays that no later run can repeat."""
_KEY: Final = "spark_task"
"""The application property of a record that names its task: what an attempt selects by."""


class SinkError(amqp.AmqpError):
    """A message was not accepted, or nobody will ever know."""


@dataclass(frozen=True)
class TaskName:
    """What stays the same when a task is tried again.

    Attributes:
        job: the query, or for a batch the write.
        batch: of the query; 0 for a batch.
        partition: that the task writes.
        replayed: whether a later run of the program can come by this name again.
    """

    job: str
    batch: int
    partition: int
    replayed: bool = True

    def __str__(self) -> str:
        return f"{self.job}-{self.batch}-{self.partition}"


@dataclass
class Report:
    """What became of a task's messages."""

    sent: int = 0
    accepted: int = 0
    rejected: int = 0
    already_there: bool = False
    """Whether a former attempt had done it all."""


class _Posted(NamedTuple):
    """A message that has no outcome yet."""

    address: str
    message: amqp.Message
    delivery: amqp.OutgoingDelivery | None
    """None for one that is to be sent (again)."""


@dataclass
class _Sending:
    """Messages on their way, over one connection."""

    connection: amqp.Connection
    options: SinkOptions
    report: Report
    transaction: amqp.Transaction | None
    waiting: deque[_Posted]
    stack: AsyncExitStack
    senders: dict[str, amqp.Sender] = field(default_factory=dict[str, amqp.Sender])

    async def sender(self, address: str) -> amqp.Sender:
        found = self.senders.get(address)
        if found is None:
            if len(self.senders) >= _MOST_SENDERS and self.transaction is None:
                oldest = self.senders.pop(next(iter(self.senders)))
                await oldest.flush()
                await oldest.aclose()
            opening = self.connection.open_sender(address)
            found = self.senders[address] = await self.stack.enter_async_context(opening)
        return found

    async def transmit(self, address: str, message: amqp.Message) -> amqp.OutgoingDelivery:
        sender = self.senders.get(address) or await self.sender(address)
        try:
            return sender.send_nowait(message, transaction=self.transaction)
        except trio.WouldBlock:
            pass
        with trio.move_on_after(self.options.send_timeout):
            return await sender.transmit(message, transaction=self.transaction)
        raise SinkError(f"{address!r} gave no credit for {self.options.send_timeout:g} s (sendTimeout)")

    async def again(self) -> None:
        """Send all that waits: what had no outcome when the last connection was lost may have arrived, nobody knows."""
        for place, (address, message, _) in enumerate(list(self.waiting)):
            self.waiting[place] = _Posted(address, message, None)
        for place, (address, message, _) in enumerate(list(self.waiting)):
            self.waiting[place] = _Posted(address, message, await self.transmit(address, message))

    async def settle_oldest(self) -> None:
        """Wait for the first of those that wait, and judge it and all that are accepted behind it."""
        waiting = self.waiting
        posted = waiting[0]
        if not _is_accepted(posted):
            outcome = await self._outcome(posted)
            if not isinstance(outcome, amqp.Accepted):
                self._refused(posted, outcome)
                waiting.popleft()
                return
        accepted = 0
        while True:
            waiting.popleft()
            accepted += 1
            if not (waiting and _is_accepted(waiting[0])):
                break
        self.report.accepted += accepted

    async def _outcome(self, posted: _Posted) -> Any:
        address, message, delivery = posted
        deadline = trio.current_time() + self.options.send_timeout
        pause = _RETRY_PAUSE
        outcome: Any = None
        with trio.move_on_at(deadline):
            while True:
                delivery = delivery or await self.transmit(address, message)
                self.waiting[0] = _Posted(address, message, delivery)
                outcome = await delivery.outcome()
                again = isinstance(outcome, amqp.Released) or (
                    isinstance(outcome, amqp.Modified) and not outcome.undeliverable_here
                )
                if not again:
                    return outcome
                delivery = None
                self.waiting[0] = _Posted(address, message, None)
                await trio.sleep(pause)
                pause *= 2
        raise SinkError(
            f"a message to {address!r} was not accepted within {self.options.send_timeout:g} s (sendTimeout): "
            f"{'it was released each time' if outcome is not None else 'there was no answer'}"
        )

    def _refused(self, posted: _Posted, outcome: Any) -> None:
        self.report.rejected += 1
        if self.options.on_reject == "fail":
            error = getattr(outcome, "error", None)
            why = "it is undeliverable there" if error is None else f"{error.condition}: {error.description}"
            raise SinkError(
                f"a message to {posted.address!r} was rejected, {why} (option 'onReject' could be 'drop')"
            )


def _is_accepted(posted: _Posted) -> bool:
    """Whether it is accepted by now, in a transaction or without (4.4.2)."""
    state: Any = None if posted.delivery is None else posted.delivery.state
    return isinstance(getattr(state, "outcome", state), amqp.Accepted)


async def send_all(outbound: AsyncIterator[OutgoingBatch], options: SinkOptions, name: TaskName) -> Report:
    """Send all messages of a task, in the way that the options say.

    Args:
        outbound: the messages; read once.
        options: of the sink.
        name: of the task.

    Raises:
        SinkError: one was rejected, released for too long, or nobody answered.
        GaveUpError: the peer could not be reached, or was lost, for too long.
        TransactionError: the transaction did not come to be.

    Cancelled: what was sent may be there, or, in a transaction, is not.
    """
    if options.transactions == "none":
        return await _send_plainly(outbound, options)
    if options.transactions == "task":
        return await _send_in_transaction(outbound, options, None)
    return await _send_with_ledger(outbound, options, name)


# Without a transaction ----------------------------------------------------------------------------


async def _send_plainly(outbound: AsyncIterator[OutgoingBatch], options: SinkOptions) -> Report:
    report = Report()
    waiting: deque[_Posted] = deque()

    async def use(connection: amqp.Connection, progress: Callable[[], None]) -> None:
        async with AsyncExitStack() as stack:
            sending = _Sending(connection, options, report, None, waiting, stack)
            await sending.again()
            await _send_rest(messages, sending, progress)

    messages = _Messages(outbound)
    await dialling(options, use, borrow)
    return report


class _Messages:
    """All messages of a task, one by one; what was taken does not come again."""

    def __init__(self, parcels: AsyncIterator[OutgoingBatch]) -> None:
        self._parcels = parcels
        self._rest: Iterator[tuple[str, amqp.Message]] = iter(())

    async def more(self) -> Iterator[tuple[str, amqp.Message]] | None:
        """What is left of the parcel at hand, or the next one."""
        for first in self._rest:
            self._rest = chain([first], self._rest)
            return self._rest
        async for parcel in self._parcels:
            self._rest = zip(parcel.addresses, parcel.messages, strict=True)
            return self._rest
        return None


async def _send_rest(messages: _Messages, sending: _Sending, progress: Callable[[], None]) -> None:
    waiting, report, most = sending.waiting, sending.report, sending.options.max_in_flight
    while (rest := await messages.more()) is not None:
        for address, message in rest:
            report.sent += 1
            # Before anything can fail: it was taken from the rows, and will not come again.
            waiting.append(_Posted(address, message, None))
            waiting[-1] = _Posted(address, message, await sending.transmit(address, message))
            if not report.sent % _AT_ONCE:
                await trio.lowlevel.checkpoint()  # so that what was sent is written
            while len(waiting) >= most:
                await sending.settle_oldest()
                progress()
    while waiting:
        await sending.settle_oldest()
    passing("sent")


# In a transaction ---------------------------------------------------------------------------------


async def _send_in_transaction(
    outbound: AsyncIterator[OutgoingBatch],
    options: SinkOptions,
    record: Callable[[Report], amqp.Message] | None,
) -> Report:
    """One attempt: a lost connection is a rollback, and the rows cannot be read again, so the task fails."""
    report = Report()
    async with borrow(options) as connection:
        # The links stay until the discharge has settled what went over them.
        async with AsyncExitStack() as stack, connection.open_transaction() as transaction:
            sending = _Sending(connection, options, report, transaction, deque(), stack)
            await _send_rest(_Messages(outbound), sending, lambda: None)
            if record is not None:
                assert options.ledger is not None
                sender = await sending.sender(options.ledger)
                await sender.send(record(report), transaction=transaction)
        passing("discharged")
    return report


async def _send_with_ledger(
    outbound: AsyncIterator[OutgoingBatch], options: SinkOptions, name: TaskName
) -> Report:
    if not await _would_take(options, name):
        found = await _look_up(options, name)
        if found is not None:
            return found
    try:
        return await _send_in_transaction(outbound, options, partial(_record, name))
    except (
        amqp.DeliveryRejectedError,
        amqp.TransactionInDoubtError,
        amqp.TransactionRolledBackError,
    ) as doubt:
        return await _other_attempt(options, name, doubt)


def _record(name: TaskName, report: Report) -> amqp.Message:
    body = json.dumps({"sent": report.sent, "accepted": report.accepted, "rejected": report.rejected})
    said: dict[str, Any] = {_KEY: str(name)}
    if name.replayed:
        said |= {JOB: name.job, BATCH: name.batch}
    return amqp.Message(
        body,
        message_id=str(name),
        durable=True,
        ttl=None if name.replayed else _LASTING,
        application_properties=said,
    )


async def _would_take(options: SinkOptions, name: TaskName) -> bool:
    """Whether the ledger would take the record of this task; nothing is left there.

    It is offered twice: what takes both is no ledger, and would let a task happen twice.

    Raises:
        DeliveryRejectedError: never, for the batch is over.
        LocalProtocolError: the node takes a record twice.
    """
    taken = 0

    async def use(connection: amqp.Connection, progress: Callable[[], None]) -> bool:
        nonlocal taken
        assert options.ledger is not None
        async with (
            connection.open_sender(options.ledger) as sender,
            connection.open_transaction() as transaction,
        ):
            progress()
            with trio.move_on_after(options.send_timeout) as patience:
                try:
                    for taken in range(2):  # noqa: B007 - how many were taken when it ends
                        await sender.send(_record(name, Report()), transaction=transaction)
                except amqp.DeliveryRejectedError as refusal:
                    if _condition_of(refusal) != CLAIMED:
                        raise
                    return taken == 1
                finally:
                    await transaction.rollback()
            if patience.cancelled_caught:
                raise SinkError(
                    f"the ledger {options.ledger!r} did not answer within {options.send_timeout:g} s"
                )
        raise LocalProtocolError(
            f"{options.ledger!r} cannot be a ledger: it takes a record twice (trio_amqp10.spark.Ledger does not)"
        )

    return await dialling(options, use, borrow)


def _condition_of(refusal: amqp.AmqpError) -> Any:
    outcome: Any = getattr(refusal, "outcome", None)
    return getattr(getattr(outcome, "error", None), "condition", None)


async def _other_attempt(options: SinkOptions, name: TaskName, doubt: amqp.AmqpError) -> Report:
    """Another attempt claims the name, or this one does not know how it ended: the ledger knows, or soon will."""
    condition = _condition_of(doubt)
    if isinstance(doubt, amqp.DeliveryRejectedError) and condition != CLAIMED:
        raise doubt
    # Whoever claims it will commit or not. A discharge that was under way is done soon, or never.
    patience = options.send_timeout if condition == CLAIMED else _IN_DOUBT
    with trio.move_on_after(patience):
        while True:
            found = await _look_up(options, name)
            if found is not None:
                return found
            await trio.sleep(_RETRY_PAUSE)
    raise doubt


async def _look_up(options: SinkOptions, name: TaskName) -> Report | None:
    """The record of this task, if it is in the ledger."""

    async def use(connection: amqp.Connection, progress: Callable[[], None]) -> Report | None:
        source = Source(
            address=options.ledger,
            distribution_mode="copy",
            filter=selecting(f"{_KEY} = '{str(name).replace(chr(39), chr(39) * 2)}'"),
        )
        async with connection.open_receiver(
            options.ledger, source=source, credit=0, filters="optional"
        ) as receiver:
            granted: Any = receiver.remote.source
            if granted is None or granted.distribution_mode != "copy" or not granted.filter:
                raise LocalProtocolError(
                    f"{options.ledger!r} cannot be a ledger: the peer does not browse by a selector there"
                )
            receiver.grant(1)
            deliveries: list[amqp.Delivery] = []
            with trio.move_on_after(options.send_timeout) as patience:
                deliveries = await receiver.drain()
            if patience.cancelled_caught:
                raise SinkError(
                    f"the ledger {options.ledger!r} did not answer within {options.send_timeout:g} s"
                )
            progress()
            for delivery in deliveries:
                with suppress(LocalProtocolError):  # sent settled, as copies may be
                    delivery.release()
                return Report(**json.loads(delivery.message.body), already_there=True)
            return None

    return await dialling(options, use, borrow)
