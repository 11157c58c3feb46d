"""Sends the messages of one task, and waits for the outcome of each (3.4).

========================  ===================================================================
``transactions``          messages at the peer after a task has returned, or has failed
========================  ===================================================================
``none``                  all; some of a failed task
``task``                  all; none of a failed task
``ledger``                as ``task``, and at most once for each name of a task
========================  ===================================================================

With a ledger, the record of the task goes into the same transaction as its messages. An attempt first tests whether the ledger would
take the record, in a transaction that is rolled back. Only if not, it searches the ledger for the record, and does nothing if it finds
it. So the number of records does not slow down a task that is not repeated. Two concurrent attempts cannot both commit: a ledger
takes a record once (``ledger_node``).

A row that cannot be a message, is larger than the peer takes, is rejected, or goes to an address of its own that does not exist,
fails the task, or is left out (``onReject``).

``released``, and ``modified`` without undeliverable-here, mean that the message may be accepted later: it is sent
again, after the messages that follow it, until ``sendTimeout`` is over (3.4.4, 3.4.5).

Knows messages and links, not Spark.
"""

from __future__ import annotations

import json
import uuid
from collections import deque
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.core.errors import Condition, LocalProtocolError

from .connection_pool import borrow
from .connections import with_reconnects
from .ledger_node import BATCH, CLAIMED, JOB
from .rejected_rows import RejectedRows
from .source_selection import selector_filter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    import pyarrow as pa

    from .message_encoder import OutgoingBatch
    from .options import SinkOptions

_RETRY_PAUSE: Final = 0.2
_IN_DOUBT: Final = 2.0
"""Seconds for which a ledger is searched for the record of a transaction in doubt."""
_AT_ONCE: Final = 128
"""About the number of messages in one write to the transport."""
_MOST_SENDERS: Final = 100
"""The most open links of a task whose rows go to many addresses."""
_LASTING: Final = 24 * 3_600_000
"""The ttl, in milliseconds, of the record of a task that no later run can repeat."""
_KEY: Final = "spark_task"
"""The application property with the name of the task, for a selector."""


class SinkError(amqp.AmqpError):
    """A message was not accepted, or its outcome is unknown."""


@dataclass(frozen=True)
class TaskName:
    """The name of a task, which is the same for all attempts.

    Attributes:
        job: the id of the query, or of the write of a batch.
        batch: the number of the batch of the query, or the version of the write.
        partition: the number of the partition that the task writes.
        replayed: whether a later run of the program can have a task with the same name.
    """

    job: str
    batch: int
    partition: int
    replayed: bool = True

    def __str__(self) -> str:
        return f"{self.job}-{self.batch}-{self.partition}"


@dataclass
class Report:
    """The outcomes of a task's messages."""

    sent: int = 0
    accepted: int = 0
    rejected: int = 0
    already_there: bool = False
    """Whether an earlier attempt has already committed the task."""


class _Row(NamedTuple):
    """A row to send."""

    address: str
    message: amqp.Message
    rows: pa.RecordBatch | None
    number: int

    def batch(self) -> pa.RecordBatch | None:
        """Return the row as a batch of one; None if it is not known."""
        return None if self.rows is None else self.rows.slice(self.number, 1)


class _Posted(NamedTuple):
    """A row without an outcome."""

    row: _Row
    delivery: amqp.OutgoingDelivery | None
    """None if the message must be sent (again)."""


@dataclass
class _Sending:
    """The links and unsettled messages of a task, over one connection."""

    connection: amqp.Connection
    options: SinkOptions
    report: Report
    rejected: RejectedRows
    transaction: amqp.Transaction | None
    waiting: deque[_Posted]
    stack: AsyncExitStack
    reached: set[str] = field(default_factory=set[str])
    """Addresses that a link has reached, over this connection or an earlier one."""
    senders: dict[str, amqp.Sender] = field(default_factory=dict[str, amqp.Sender])
    missing: dict[str, str] = field(default_factory=dict[str, str])
    """Addresses of rows that do not exist, each with the reason."""

    async def sender(self, address: str) -> amqp.Sender:
        found = self.senders.get(address)
        if found is None:
            if len(self.senders) >= _MOST_SENDERS and self.transaction is None:
                oldest = self.senders.pop(next(iter(self.senders)))
                await oldest.flush()
                await oldest.aclose()
            opening = self.connection.open_sender(address)
            found = self.senders[address] = await self.stack.enter_async_context(opening)
            self.reached.add(address)
        return found

    async def post(self, row: _Row) -> amqp.OutgoingDelivery | None:
        """Send a row; return None if it was left out, because no attempt could succeed."""
        if row.address in self.missing:
            await self.leave_out(row.batch(), Condition.NOT_FOUND, self.missing[row.address])
            return None
        try:
            return await self.transmit(row.address, row.message)
        except amqp.MessageSizeError as large:
            await self.leave_out(row.batch(), None, str(large))
        except amqp.LinkRefusedError as refused:
            # An address for all rows that does not exist is a mistake in the options. One that did exist may come back.
            known = self.options.address is not None or row.address in self.reached
            if known or refused.condition != Condition.NOT_FOUND:
                raise
            self.missing[row.address] = f"{row.address!r} does not exist: {refused}"
            await self.leave_out(row.batch(), Condition.NOT_FOUND, self.missing[row.address])
        return None

    async def leave_out(self, row: pa.RecordBatch | None, condition: str | None, reason: str) -> None:
        """Note that a row is not accepted; raise ``SinkError`` if that fails the task.

        Raises ``SpoolError`` if so many rows wait that they are written, and they cannot be.
        """
        self.report.rejected += 1
        if self.options.on_reject == "fail":
            raise SinkError(
                f"{reason} (to go on without such rows, set option 'onReject' to 'drop' or 'deadletter-path')"
            )
        self.rejected.add(row, condition, reason)
        if self.rejected.is_full:
            await trio.to_thread.run_sync(self.rejected.write)

    async def transmit(self, address: str, message: amqp.Message) -> amqp.OutgoingDelivery:
        sender = self.senders.get(address) or await self.sender(address)
        try:
            return sender.send_nowait(message, transaction=self.transaction)
        except trio.WouldBlock:
            pass
        with trio.move_on_after(self.options.send_timeout):
            return await sender.transmit(message, transaction=self.transaction)
        raise SinkError(f"{address!r} granted no credit for {self.options.send_timeout:g} s (sendTimeout)")

    async def resend(self) -> None:
        """Send all messages without an outcome again, after the connection was lost.

        Messages that had arrived already arrive twice.
        """
        for place, (row, _) in enumerate(list(self.waiting)):
            self.waiting[place] = _Posted(row, None)
        place = 0
        while place < len(self.waiting):
            row = self.waiting[place].row
            delivery = await self.post(row)
            if delivery is None:
                del self.waiting[place]
            else:
                self.waiting[place] = _Posted(row, delivery)
                place += 1

    async def settle_oldest(self) -> None:
        """Wait for the oldest message's outcome; count it, and all accepted ones after it."""
        waiting = self.waiting
        posted = waiting[0]
        if not _is_accepted(posted):
            outcome = await self._outcome(posted)
            if not isinstance(outcome, amqp.Accepted):
                waiting.popleft()
                await self._handle_rejection(posted, outcome)
                return
        accepted = 0
        while True:
            waiting.popleft()
            accepted += 1
            if not (waiting and _is_accepted(waiting[0])):
                break
        self.report.accepted += accepted

    async def _outcome(self, posted: _Posted) -> Any:
        row, delivery = posted
        deadline = trio.current_time() + self.options.send_timeout
        pause = _RETRY_PAUSE
        outcome: Any = None
        with trio.move_on_at(deadline):
            while True:
                delivery = delivery or await self.transmit(row.address, row.message)
                self.waiting[0] = _Posted(row, delivery)
                outcome = await delivery.outcome()
                again = isinstance(outcome, amqp.Released) or (
                    isinstance(outcome, amqp.Modified) and not outcome.undeliverable_here
                )
                if not again:
                    return outcome
                delivery = None
                self.waiting[0] = _Posted(row, None)
                await trio.sleep(pause)
                pause *= 2
        raise SinkError(
            f"a message to {row.address!r} was not accepted within {self.options.send_timeout:g} s (sendTimeout): "
            f"{'the peer released it each time' if outcome is not None else 'the peer did not answer'}"
        )

    async def _handle_rejection(self, posted: _Posted, outcome: Any) -> None:
        error = getattr(outcome, "error", None)
        why = "undeliverable there" if error is None else f"{error.condition}: {error.description}"
        condition = None if error is None else str(error.condition)
        await self.leave_out(
            posted.row.batch(), condition, f"a message to {posted.row.address!r} was rejected: {why}"
        )


def _is_accepted(posted: _Posted) -> bool:
    """Whether the message is accepted, in a transaction (4.4.2) or without."""
    state: Any = None if posted.delivery is None else posted.delivery.state
    return isinstance(getattr(state, "outcome", state), amqp.Accepted)


async def send_all(outbound: AsyncIterator[OutgoingBatch], options: SinkOptions, name: TaskName) -> Report:
    """Send all messages of a task, with the guarantee of option ``transactions``.

    Args:
        outbound: the messages; iterated over once.
        options: of the sink.
        name: the name of the task.

    Raises:
        SinkError: a row was not accepted and ``onReject`` is ``fail``; a message was released for too long, or got no outcome;
            the rows cannot be read.
        SpoolError, OSError: the rows that were left out cannot be written.
        GaveUpError: the peer could not be reached, or was lost, for too long.
        TransactionError: the transaction could not be declared or discharged.

    Cancelled: messages that were sent may be at the peer; in a transaction none is.
    """
    task = str(name) if name.job else uuid.uuid4().hex
    if options.deadletter_path is None:
        rejected = RejectedRows(options, task)
    else:  # its store may be slow to open
        rejected = await trio.to_thread.run_sync(RejectedRows, options, task)
    if options.transactions == "none":
        return await _send_plainly(outbound, options, rejected)
    if options.transactions == "task":
        return await _send_in_transaction(outbound, options, rejected, None)
    return await _send_with_ledger(outbound, options, rejected, name)


# Without a transaction ----------------------------------------------------------------------------


async def _send_plainly(
    outbound: AsyncIterator[OutgoingBatch], options: SinkOptions, rejected: RejectedRows
) -> Report:
    report = Report()
    waiting: deque[_Posted] = deque()
    reached: set[str] = set()

    async def use(connection: amqp.Connection, progress: Callable[[], None]) -> None:
        async with AsyncExitStack() as stack:
            sending = _Sending(connection, options, report, rejected, None, waiting, stack, reached)
            await sending.resend()
            await _send_rest(messages, sending, progress)

    messages = _Messages(outbound)
    await with_reconnects(options, use, borrow)
    await trio.to_thread.run_sync(rejected.close)
    return report


class _Messages:
    """The rows of a task, each of which can be taken once."""

    def __init__(self, batches: AsyncIterator[OutgoingBatch]) -> None:
        self._batches = batches
        self._rest: Iterator[_Row] = iter(())
        self.unfit: list[tuple[pa.RecordBatch | None, str]] = []
        """Rows that cannot be messages, with the reasons, until they are taken."""

    async def more(self) -> Iterator[_Row] | None:
        """Return the rest of the present batch, or the next batch; None at the end.

        Raises:
            SinkError: the rows cannot be read.
        """
        for first in self._rest:
            self._rest = chain([first], self._rest)
            return self._rest
        try:
            batch = await anext(self._batches, None)
        except OSError as wrong:  # as it is, it would count as the loss of a connection
            raise SinkError(f"the rows cannot be read: {wrong}") from wrong
        if batch is not None:
            numbers = batch.numbers or range(len(batch.messages))
            self._rest = map(_Row, batch.addresses, batch.messages, repeat(batch.rows), numbers)
            self.unfit += [
                (None if batch.rows is None else batch.rows.slice(number, 1), reason)
                for number, reason in batch.unfit
            ]
            return self._rest
        return None


async def _send_rest(messages: _Messages, sending: _Sending, progress: Callable[[], None]) -> None:
    waiting, report, most = sending.waiting, sending.report, sending.options.max_in_flight
    while (rest := await messages.more()) is not None:
        while messages.unfit:
            row, reason = messages.unfit.pop()
            await sending.leave_out(row, None, reason)
        for each in rest:
            report.sent += 1
            # Keep the message before anything can fail, because the rows cannot be read again.
            waiting.append(_Posted(each, None))
            delivery = await sending.post(each)
            if delivery is None:
                waiting.pop()
            else:
                waiting[-1] = _Posted(each, delivery)
            if not report.sent % _AT_ONCE:
                await trio.lowlevel.checkpoint()  # let the connection write
            while len(waiting) >= most:
                await sending.settle_oldest()
                progress()
    while waiting:
        await sending.settle_oldest()


# In a transaction ---------------------------------------------------------------------------------


async def _send_in_transaction(
    outbound: AsyncIterator[OutgoingBatch],
    options: SinkOptions,
    rejected: RejectedRows,
    record: Callable[[Report], amqp.Message] | None,
) -> Report:
    """Send all messages in one transaction.

    A lost connection rolls it back (4.3), and the rows cannot be read again, so the task fails.
    """
    report = Report()
    async with (
        borrow(options) as connection,
        AsyncExitStack() as stack,  # keeps the links until the discharge has settled their deliveries
        connection.open_transaction() as transaction,
    ):
        sending = _Sending(connection, options, report, rejected, transaction, deque(), stack)
        await _send_rest(_Messages(outbound), sending, lambda: None)
        await trio.to_thread.run_sync(rejected.close)
        if record is not None:
            assert options.ledger is not None
            sender = await sending.sender(options.ledger)
            await sender.send(record(report), transaction=transaction)
    return report


async def _send_with_ledger(
    outbound: AsyncIterator[OutgoingBatch], options: SinkOptions, rejected: RejectedRows, name: TaskName
) -> Report:
    if not await _would_take(options, name):
        found = await _look_up(options, name)
        if found is not None:
            return found
    try:
        return await _send_in_transaction(outbound, options, rejected, partial(_record, name))
    except (
        amqp.DeliveryRejectedError,
        amqp.TransactionInDoubtError,
        amqp.TransactionRolledBackError,
    ) as doubt:
        return await _other_attempt(options, name, doubt)


def _record(name: TaskName, report: Report) -> amqp.Message:
    body = json.dumps({"sent": report.sent, "accepted": report.accepted, "rejected": report.rejected})
    properties: dict[str, Any] = {_KEY: str(name)}
    if name.replayed:
        properties |= {JOB: name.job, BATCH: name.batch}
    return amqp.Message(
        body,
        message_id=str(name),
        durable=True,
        ttl=None if name.replayed else _LASTING,
        application_properties=properties,
    )


async def _would_take(options: SinkOptions, name: TaskName) -> bool:
    """Whether the ledger would take the record of this task.

    The record is sent twice in a transaction that is rolled back: a node that takes both is no ledger, and would let a task happen twice.

    Raises:
        DeliveryRejectedError: the batch is over, so the ledger will not take the record at any time.
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
                    for taken in range(2):  # noqa: B007 - the number of accepted records, used below
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

    return await with_reconnects(options, use, borrow)


def _condition_of(refusal: amqp.AmqpError) -> Any:
    outcome: Any = getattr(refusal, "outcome", None)
    return getattr(getattr(outcome, "error", None), "condition", None)


async def _other_attempt(options: SinkOptions, name: TaskName, doubt: amqp.AmqpError) -> Report:
    """Wait for the record of this task, after a refusal or a transaction in doubt.

    Return the report of the attempt that has committed; raise ``doubt`` if none appears.
    """
    condition = _condition_of(doubt)
    if isinstance(doubt, amqp.DeliveryRejectedError) and condition != CLAIMED:
        raise doubt
    # The attempt that has the claim commits or rolls back in its time. A discharge without an answer is done soon, or never.
    patience = options.send_timeout if condition == CLAIMED else _IN_DOUBT
    with trio.move_on_after(patience):
        while True:
            found = await _look_up(options, name)
            if found is not None:
                return found
            await trio.sleep(_RETRY_PAUSE)
    raise doubt


async def _look_up(options: SinkOptions, name: TaskName) -> Report | None:
    """Return the report in the record of this task; None if the ledger has no record."""

    async def use(connection: amqp.Connection, progress: Callable[[], None]) -> Report | None:
        source = Source(
            address=options.ledger,
            distribution_mode="copy",
            filter=selector_filter(f"{_KEY} = '{str(name).replace(chr(39), chr(39) * 2)}'"),
        )
        async with connection.open_receiver(
            options.ledger, source=source, credit=0, filters="optional"
        ) as receiver:
            granted: Any = receiver.remote.source
            if granted is None or granted.distribution_mode != "copy" or not granted.filter:
                raise LocalProtocolError(
                    f"{options.ledger!r} cannot be a ledger: the peer cannot browse it with a selector"
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
                with suppress(LocalProtocolError):  # copies may be sent settled
                    delivery.release()
                return Report(**json.loads(delivery.message.body), already_there=True)
            return None

    return await with_reconnects(options, use, borrow)
