"""SpoolReceiver: receives from a queue into the spool, in its own thread.

A message is settled only after it is on disk. So deliveries are collected; a batch of
them is written and flushed as one segment, then accepted, and only then is their
credit granted again. Credit bounds the messages that can be redelivered after a crash, because they are on disk and not settled. It is
bounded in messages, and in octets by the size of recent messages (``credit_limit``).

A full disk is no error: deliveries wait unsettled, no credit is granted, and the segment is written again after
rows were consumed, or after a second.

A message is settled once it is in the spool, not when Spark has consumed it: Spark commits a batch only when the next one has
data, so the commit of the last batch may never come.

The thread is a daemon, because Spark's process must be able to end at any time. A failure of the thread is kept,
and ``check`` raises it in the thread that Spark calls.

Knows deliveries and the spool; ``spool_writer`` makes the segments. Does not know Spark.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

import trio_amqp10 as amqp
from trio_amqp10.core.errors import Condition, LocalProtocolError

from .connections import run_together, with_reconnects
from .credit_limit import CreditLimit
from .lane_spool import LaneSpool
from .receiving_figures import ReceivingFigures
from .source_selection import check_filter, check_keeping, not_keeping_error, source_of
from .spool import SpoolError, SpoolFullError
from .spool_terminus_store import SpoolTerminusStore, with_link_names
from .spool_writer import SpoolWriter, Taken

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .options import QueueOptions
    from .spool import Spool
    from .spool_writer import Refused

_log = logging.getLogger("trio_amqp10.spark")

_READ_PAUSE: Final = 0.05
"""Seconds between two reads of the connection.

Messages that come one by one are read together.
"""
_AT_ONCE: Final = 256
"""The most deliveries that are taken at once."""
_LOOK: Final = 0.5
"""Seconds between two checks of a link that waits for credit."""
_FAST: Final = 10_000
"""The messages a second above which a larger batch is worth waiting for."""
_FAREWELL: Final = 3.0
"""Seconds for writing, settling and detaching after ``stop`` was called."""


class SpoolReceiverError(amqp.AmqpError):
    """Receiving has failed; the cause of this exception is the reason."""


class SpoolReceiver:
    """Receives from one queue into one spool, until stopped or the queue is empty.

    Args:
        options: of the reader.
        spool: the spool of the rows.
        emptying: whether to end when all messages that are in the queue now were received.

    Attributes:
        emptied: whether all these messages are in the spool; only if ``emptying``.
        figures: the figures so far.
    """

    def __init__(self, options: QueueOptions, spool: Spool | LaneSpool, *, emptying: bool = False) -> None:
        self._options = options if options.dedup != "link" else with_link_names(options, spool)
        self._spool = spool
        self._emptying = emptying
        self._kept = SpoolTerminusStore(spool) if options.dedup == "link" else None
        self.figures: Final = ReceivingFigures()
        self._writer = SpoolWriter(self._options, spool, self._kept, self.figures)
        self._credit = CreditLimit(options.credit, options.credit_max_bytes // options.links)
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self._finished = False
        self._stopped = False  # ``stop`` was called, perhaps before the thread had a token
        self.emptied: bool = False
        self._token: trio.lowlevel.TrioToken | None = None
        self._scope = trio.CancelScope()
        self._connected = False
        self._begin_counting()
        self._thread = threading.Thread(target=self._main, name="amqp10 spool receiver", daemon=True)
        self._thread.start()

    # -- for the thread that Spark calls ----------------------------------------------------

    def check(self) -> None:
        """Raise the failure of receiving, if it has failed.

        Raises:
            SpoolReceiverError: receiving has failed; the text has the peer's condition, and the cause is the failure.
        """
        failure = self._failure
        if failure is not None:
            raise SpoolReceiverError(
                f"receiving from {self._options.address!r} has failed: {failure}"
            ) from failure

    @property
    def pressed(self) -> bool:
        """Whether more than 10,000 messages a second arrive at present."""
        recent = time.monotonic() - self._wrote_at < 2 * self._options.spool_flush_interval
        return recent and self._rate > _FAST

    def _begin_counting(self) -> None:
        self._rate = 0.0  # messages a second, by the last segment
        self._wrote_at = time.monotonic()

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds, the queue is empty, or receiving has failed."""
        with self._changed:
            while not (holds() or self._finished):
                self._changed.wait(1.0)

    def released(self) -> None:
        """Note that rows were consumed, so that the spool may have room again."""
        self._from_outside(self._make_way)

    def stop(self, patience: float = _FAREWELL + 1.0) -> None:
        """Write and settle the deliveries that have come, detach, and end.

        Args:
            patience: seconds after which to return in any case. Deliveries that are not settled by then are redelivered.
        """
        self._stopped = True
        self._from_outside(self._scope.cancel)
        self._thread.join(patience)

    def _from_outside(self, call: Callable[[], object]) -> None:
        token = self._token
        if token is not None:
            try:
                token.run_sync_soon(call)
            except trio.RunFinishedError:
                return

    # -- the thread -------------------------------------------------------------------------

    def _main(self) -> None:
        try:
            trio.run(self._run)
        except BaseException as failure:  # ``check`` raises it in the other thread
            _log.exception("receiving from %r has failed", self._options.address)
            self._failure = failure
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    async def _run(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        if self._stopped:
            return
        # The messages in the queue when emptying began, without the received ones; None while that is unknown.
        self._left: int | None = None
        self._empty_by = trio.current_time() + self._options.available_now_timeout
        with self._scope:
            jobs: list[Callable[[], Awaitable[object]]] = [
                self._receive,
                partial(self.figures.report, self._spool),
            ]
            if isinstance(self._spool, LaneSpool):
                jobs.append(partial(self._refresh_repeatedly, self._spool))
            await run_together(*jobs)

    async def _refresh_repeatedly(self, spool: LaneSpool) -> None:
        """Notice when a query consumes rows of the lane, or another receiver takes over."""
        while True:
            await trio.sleep(spool.interval)
            full = spool.full
            try:
                await trio.to_thread.run_sync(spool.refresh)
            except OSError as wrong:
                _log.warning("%s: the consumed rows cannot be read now: %s", spool.where, wrong)
            if full and not spool.full:
                self._make_way()

    async def _receive(self) -> None:
        await with_reconnects(self._options, self._receive_all)
        self.emptied = self._emptying
        self._scope.cancel()

    async def _receive_all(self, connection: amqp.Connection, progress: Callable[[], None]) -> None:
        """Receive over one connection.

        Deliveries that were not written when the connection is lost are forgotten: the peer sends them again.
        """
        self._pending: list[Taken] = []
        self._waiting = 0  # deliveries in ``_pending``
        self._peer = connection.remote.container_id
        connection.pump.read_pause = 0.0 if self._emptying else _READ_PAUSE
        self.figures.connections += 1
        self._written_at = trio.current_time()
        self._begin_counting()
        self._credit.forget_links()
        self._connected = True
        self._busy = 0  # deliveries between being taken and being settled
        self._ripe = trio.Event()
        self._settled = trio.lowlevel.ParkingLot()  # tasks that wait for credit, or for room in the spool
        self._writing = trio.Lock()  # ``_end_link`` may be called while a batch is written
        self._links = self._options.links
        receivers = [partial(self._receive_by, connection, progress, n) for n in range(self._links)]
        await run_together(*receivers, self._write_batches)

    async def _receive_by(
        self, connection: amqp.Connection, progress: Callable[[], None], number: int
    ) -> None:
        options = self._options
        name = options.link_name
        if name is not None and options.links > 1:
            name = f"{name}-{number}"
        opening = connection.open_receiver(
            options.address,
            source=source_of(options),
            credit=0,
            filters="optional",  # check_filter compares them
            name=name,
            own_session=options.links > 1,
            store=self._kept,
            guarantee="at-least-once" if self._kept is None else "exactly-once",
        )
        try:
            async with opening as receiver:
                check_filter(receiver, options)
                if self._kept is not None:
                    check_keeping(receiver, options)
                    await self._kept.begin(receiver, partial(self._done, receiver))
                progress()
                await self._take_from(receiver)
        except amqp.GuaranteeNotSupportedError as weaker:
            raise not_keeping_error(options) from weaker
        except amqp.LinkRefusedError as refusal:
            if self._kept is not None and refusal.condition == Condition.NOT_IMPLEMENTED:
                raise not_keeping_error(options) from refusal
            raise
        self._links -= 1
        self._ripe.set()

    async def _take_from(self, receiver: amqp.Receiver) -> None:
        try:
            await (self._empty if self._emptying else self._follow)(receiver)
        finally:
            await self._end_link(receiver)

    async def _follow(self, receiver: amqp.Receiver) -> None:
        while True:
            self._give_credit(receiver)
            while not (receiver.credit or receiver.buffered):
                await self._until_settled(receiver)  # receiving without credit would grant more
                self._give_credit(receiver)
            self._take(await receiver.receive_many(_AT_ONCE), receiver)

    async def _empty(self, receiver: amqp.Receiver) -> None:
        """Receive until a drain brings fewer messages than the credit (2.6.7).

        Producers may be as fast as this. So it also ends when as many messages have come as were available by the peer's flow
        when the first credit was used up; or, if the flow does not have that number, after ``availableNowTimeout``.
        """
        while True:
            while self._spool.full:
                await self._until_settled(receiver)
            credit = self._credit.most if self._left is None else min(self._credit.most, self._left)
            if not credit:
                return
            taken = 0
            try:
                if self._left is not None:
                    self._left -= credit
                receiver.grant(credit)
                taken = await self._take_drained(receiver)
                self._ripe.set()
                while self._busy:
                    await self._until_settled(receiver)
            finally:
                if self._left is not None:
                    self._left += credit - taken
            if taken < credit:
                return
            if self._left is None and receiver.available:
                self._left = receiver.available
            elif self._left is None and trio.current_time() >= self._empty_by:
                _log.warning(
                    "%s does not report how many messages wait; this run ends with those that came within %g s (availableNowTimeout)",
                    self._options.where,
                    self._options.available_now_timeout,
                )
                return

    async def _take_drained(self, receiver: amqp.Receiver) -> int:
        """Take the messages that the credit brings; return their number."""
        taken, silent = 0, False
        while not silent:
            drained: list[amqp.Delivery] = []
            with trio.move_on_after(self._options.available_now_idle) as patience:
                drained = await receiver.drain()
            if patience.cancelled_caught:
                # The drain was not answered, but messages have come.
                drained = [receiver.receive_nowait() for _ in range(receiver.buffered)]
            if drained:
                self._take(drained, receiver)
            taken += len(drained)
            silent = not (patience.cancelled_caught and drained)
        return taken

    async def _until_settled(self, receiver: amqp.Receiver) -> None:
        """Wait until deliveries are settled, there is room, or ``_LOOK`` seconds are over.

        The limit is needed because the loss of a link does not end this wait.
        """
        receiver.check_alive()
        with trio.move_on_after(_LOOK):
            await self._settled.park()

    def _take(self, deliveries: list[amqp.Delivery], receiver: amqp.Receiver) -> None:
        if not self._pending:
            self._ripe.set()
        self._pending.append(Taken(deliveries, receiver, time.time_ns() // 1000))
        self._waiting += len(deliveries)
        self.figures.received += len(deliveries)
        self.figures.depth = receiver.available
        self._busy += len(deliveries)
        if self._waiting >= self._batch_rows:
            self._ripe.set()

    @property
    def _batch_rows(self) -> int:
        return max(1, min(self._options.spool_flush_rows, self._credit.most // 2))

    def _give_credit(self, receiver: amqp.Receiver) -> None:
        """Grant the credit that the link may have; none while the spool is full."""
        if self._emptying or receiver.closed or self._spool.full:
            return
        self._credit.grant(receiver)

    # -- writing, then settling -------------------------------------------------------------

    async def _write_batches(self) -> None:
        while self._links or self._pending:
            if not self._pending:
                self._ripe = trio.Event()
                await self._ripe.wait()
                continue
            if self._waiting < self._batch_rows and self._links:
                self._ripe = trio.Event()
                # The interval is between two segments: the first message after a pause does not wait for others.
                with trio.move_on_at(self._written_at + self._options.spool_flush_interval):
                    await self._ripe.wait()
            await self._write_pending()

    async def _write_pending(self) -> None:
        async with self._writing:
            count = self._waiting
            batch, self._pending, self._waiting = self._pending, [], 0
            if batch:
                refused = await self._until_written(batch, self._peer)
                self._written_at = trio.current_time()
                now = time.monotonic()
                self._rate, self._wrote_at = count / (now - self._wrote_at), now
                self._settle(batch, refused)

    async def _until_written(self, batch: list[Taken], peer: str) -> Refused:
        """Write a batch; if the disk is full, wait until it has room.

        Raises:
            SpoolError: the batch cannot be written; or the receiver is emptying the queue, and the spool has no row whose
                consumption would make room.
        """
        deadline = trio.current_time() + self._options.reconnect_timeout
        resting = False
        while True:
            try:
                refused, size = await self._writer.write(batch, peer)
            except SpoolFullError as full:
                if not resting:
                    _log.warning("%s; receiving pauses until there is room", full)
                    resting = True
                    self.figures.resting += 1
                if not self._emptying or self._spool.low < self._spool.end:
                    deadline = trio.current_time() + self._options.reconnect_timeout
                elif trio.current_time() > deadline:
                    raise SpoolError(
                        f"{full}; and no row of the spool waits for its consumption, which would make room"
                    ) from full
                with self._changed:
                    self._changed.notify_all()  # nothing more comes for now, so a batch should not wait
                with trio.move_on_after(_LOOK):
                    await self._settled.park()
                continue
            if resting:
                _log.warning("the disk of the spool has room again: receiving continues")
            if size:
                self._credit.weigh(size)
            with self._changed:
                self._changed.notify_all()
            return refused

    def _settle(self, batch: list[Taken], refused: Refused) -> None:
        for receiver, count in self._send_outcomes(batch, refused).items():
            self._done(receiver, count)

    def _send_outcomes(self, batch: list[Taken], refused: Refused) -> dict[amqp.Receiver, int]:
        """Accept or reject each delivery; return how many are settled, by receiver."""
        for delivery, fault in refused:
            _log.warning("a message could not be decoded, and was rejected: %s", fault)
            if not delivery.settled:
                with suppress(LocalProtocolError):
                    delivery.reject(Condition.DECODE_ERROR, fault.description)
        bad = {id(delivery) for delivery, _ in refused}
        counts: dict[amqp.Receiver, int] = {}
        for deliveries, receiver, _ in batch:
            for delivery in deliveries:
                if not (delivery.settled or (bad and id(delivery) in bad)):
                    try:
                        delivery.accept()
                    except LocalProtocolError:  # its link is detached: the peer sends it again
                        continue
            # If the peer keeps the link, the delivery is settled when the peer has settled it, and ``_done`` is called then.
            settled = len(deliveries) if self._kept is None else sum(each.settled for each in deliveries)
            if settled:
                counts[receiver] = counts.get(receiver, 0) + settled
        return counts

    def _done(self, receiver: amqp.Receiver, count: int) -> None:
        """Count settled deliveries of a link, and grant it more credit."""
        self._busy -= count
        self._credit.settled(receiver, count)
        self._give_credit(receiver)
        self._settled.unpark_all()

    def _make_way(self) -> None:
        for receiver in self._credit.links:
            self._give_credit(receiver)
        if self._connected:
            self._settled.unpark_all()

    async def _end_link(self, receiver: amqp.Receiver) -> None:
        """Write and settle the deliveries that have come, if stopped, and end the link.

        The link of a durable subscription is detached, not closed, so that the peer keeps the messages that come meanwhile (2.6.6).
        """
        with trio.CancelScope(shield=True, deadline=trio.current_time() + _FAREWELL):
            if self._scope.cancel_called and not receiver.closed:
                await self._write_pending()
            if self._options.durable:
                await receiver.detach()
            elif self._scope.cancel_called:
                await receiver.aclose()
