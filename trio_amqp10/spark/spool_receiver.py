"""SpoolReceiver: receives from a queue into the spool, in its own thread.

What must hold: a message is settled only after it is on disk. So deliveries gather; a batch of
them is written and flushed as one segment, then accepted, and only then is the credit that they
took given anew. Credit bounds what can come twice after a crash: what is on disk and not settled. It is
bounded in messages, and in octets by the size of the messages that came lately.

A disk that is full is no error: what has come waits, unsettled, nothing is granted, and the segment is tried again when
rows were consumed, or after a second.

Spark never says when it has consumed the last batch (it commits a batch when the next one has
data), so nothing here waits for that: a message is Spark's once it is in the spool.

The thread is a daemon, for Spark's process must end when it is told to. What fails in it is kept,
and raised by ``check`` in the thread that Spark calls in.

Knows deliveries and the spool; what a segment has of them is up to ``spool_writer``; of Spark, nothing.

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
from trio_amqp10.errors import Condition, LocalProtocolError

from .connections import dialling, in_one
from .credit_limit import CreditLimit
from .failure_points import passing
from .lane_spool import LaneSpool
from .receiving_figures import ReceivingFigures
from .source_selection import check_filter, check_keeping, keeps_nothing, source_of
from .spool import SpoolError, SpoolFullError
from .spool_terminus_store import SpoolTerminusStore, named
from .spool_writer import SpoolWriter, Taken

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .options import QueueOptions
    from .spool import Spool
    from .spool_writer import Refused

__all__ = ["SpoolReceiver", "SpoolReceiverError"]

_log = logging.getLogger("trio_amqp10.spark")

_AT_ONCE: Final = 256
"""Deliveries taken between two looks at anything else."""
_LOOK: Final = 0.5
"""Seconds between two looks at whether a link that waits for credit still lives."""
_FAST: Final = 10_000
"""Messages a second that make a batch of Spark's worth waiting for."""
_FAREWELL: Final = 3.0
"""Seconds to write, settle and detach when told to stop."""


class SpoolReceiverError(amqp.AmqpError):
    """Receiving has failed, for the reason that is its cause."""


class SpoolReceiver:
    """Receives until stopped, or, where it only empties the queue, until that is empty.

    Args:
        options: of the reader.
        spool: where rows go.
        emptying: take what is there, and no more.

    Attributes:
        emptied: whether all that was there is in the spool; only when ``emptying``.
        figures: what has happened so far.
    """

    def __init__(self, options: QueueOptions, spool: Spool | LaneSpool, *, emptying: bool = False) -> None:
        self._options = options if options.dedup != "link" else named(options, spool)
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

    # -- for the thread that Spark calls in -------------------------------------------------

    def check(self) -> None:
        """Raise what receiving has failed with.

        Raises:
            SpoolReceiverError: with the peer's condition in its text, and the failure as its cause.
        """
        failure = self._failure
        if failure is not None:
            raise SpoolReceiverError(
                f"receiving from {self._options.address!r} has failed: {failure}"
            ) from failure

    @property
    def pressed(self) -> bool:
        """Whether more than 10,000 messages a second come at present."""
        recent = time.monotonic() - self._wrote_at < 2 * self._options.spool_flush_interval
        return recent and self._rate > _FAST

    def _begin_counting(self) -> None:
        self._rate = 0.0  # messages a second, by the last segment
        self._wrote_at = time.monotonic()

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until this holds, all is taken that there is to take, or receiving has failed."""
        with self._changed:
            while not (holds() or self._finished):
                self._changed.wait(1.0)

    def released(self) -> None:
        """There may be room in the spool again."""
        self._from_outside(self._make_way)

    def stop(self, patience: float = _FAREWELL + 1.0) -> None:
        """Write and settle what has come, detach, and end; nothing is lost if there is no time for it."""
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
        except BaseException as failure:  # kept for ``check``: nobody else would hear of it
            _log.exception("receiving from %r has failed", self._options.address)
            self._failure = failure
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    async def _run(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        if self._stopped:
            return
        self._left: int | None = (
            None  # of the messages that waited when emptying began; None while that is not known
        )
        self._empty_by = trio.current_time() + self._options.available_now_timeout
        with self._scope:
            jobs: list[Callable[[], Awaitable[object]]] = [
                self._receive,
                partial(self.figures.report, self._spool),
            ]
            if isinstance(self._spool, LaneSpool):
                jobs.append(partial(self._keep_informed, self._spool))
            await in_one(*jobs)

    async def _keep_informed(self, spool: LaneSpool) -> None:
        """Somebody else consumes rows of a lane, and may begin to fill it."""
        while True:
            await trio.sleep(spool.interval)
            full = spool.full
            try:
                await trio.to_thread.run_sync(spool.refresh)
            except OSError as wrong:
                _log.warning("%s: what was consumed is not known now: %s", spool.where, wrong)
            if full and not spool.full:
                self._make_way()

    async def _receive(self) -> None:
        await dialling(self._options, self._receive_all)
        self.emptied = self._emptying
        self._scope.cancel()

    async def _receive_all(self, connection: amqp.Connection, progress: Callable[[], None]) -> None:
        """Everything over one connection. What was taken and not written is forgotten with it: it will come again."""
        self._pending: list[Taken] = []
        self._waiting = 0  # deliveries in there
        self._peer = connection.remote.container_id
        self.figures.connections += 1
        self._written_at = trio.current_time()
        self._begin_counting()
        self._credit.forget_links()
        self._connected = True
        self._busy = 0  # deliveries between being taken and being settled
        self._ripe = trio.Event()
        self._settled = trio.lowlevel.ParkingLot()  # for those who wait for credit, or room
        self._writing = trio.Lock()  # a farewell may come while a batch is written
        self._links = self._options.links
        receivers = [partial(self._receive_by, connection, progress, n) for n in range(self._links)]
        await in_one(*receivers, self._write_batches)

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
            filters="optional",  # check_filter looks
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
            raise keeps_nothing(options) from weaker
        except amqp.LinkRefusedError as refusal:
            if self._kept is not None and refusal.condition == Condition.NOT_IMPLEMENTED:
                raise keeps_nothing(options) from refusal
            raise
        self._links -= 1
        self._ripe.set()

    async def _take_from(self, receiver: amqp.Receiver) -> None:
        try:
            await (self._empty if self._emptying else self._follow)(receiver)
        finally:
            await self._say_farewell(receiver)

    async def _follow(self, receiver: amqp.Receiver) -> None:
        while True:
            self._give_credit(receiver)
            while not (receiver.credit or receiver.buffered):
                await self._until_settled(receiver)  # to receive without credit would be to ask for more
                self._give_credit(receiver)
            self._take(await receiver.receive_many(_AT_ONCE), receiver)

    async def _empty(self, receiver: amqp.Receiver) -> None:
        """Take what is there: until a drain brings less than was asked for, or nothing comes for a while (2.6.7).

        Producers may keep up with this. So it ends too when as many have come as the peer said were waiting, in its flow,
        when the first credit was used up; or, if it does not say, when the time is over.
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
                    "%s does not say how many messages wait; what came within %g s (availableNowTimeout) is this run's",
                    self._options.where,
                    self._options.available_now_timeout,
                )
                return

    async def _take_drained(self, receiver: amqp.Receiver) -> int:
        """Take what the credit brings; how many that were."""
        taken, silent = 0, False
        while not silent:
            drained: list[amqp.Delivery] = []
            with trio.move_on_after(self._options.available_now_idle) as patience:
                drained = await receiver.drain()
            if patience.cancelled_caught:
                # It was not answered, and has brought this all the same.
                drained = [receiver.receive_nowait() for _ in range(receiver.buffered)]
            if drained:
                self._take(drained, receiver)
            taken += len(drained)
            silent = not (patience.cancelled_caught and drained)
        return taken

    async def _until_settled(self, receiver: amqp.Receiver) -> None:
        """Wait until something was settled, or there may be room. A link that is lost meanwhile wakes nobody here."""
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
        """As many more may come as there is credit for; none while the spool is full."""
        if self._emptying or receiver.closed or self._spool.full:
            return
        self._credit.grant(receiver)

    # -- to disk, and only then to the peer -------------------------------------------------

    async def _write_batches(self) -> None:
        while self._links or self._pending:
            if not self._pending:
                self._ripe = trio.Event()
                await self._ripe.wait()
                continue
            if self._waiting < self._batch_rows and self._links:
                self._ripe = trio.Event()
                # The interval is between two segments: who comes after a pause need not wait for others.
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
        """Write it; where the disk is full, once it has room.

        Raises:
            SpoolError: it cannot be written; or the queue is only to be emptied, and there is nothing whose consumption
                would make room.
        """
        deadline = trio.current_time() + self._options.reconnect_timeout
        resting = False
        while True:
            try:
                refused, size = await self._writer.write(batch, peer)
            except SpoolFullError as full:
                if not resting:
                    _log.warning("%s; receiving rests until there is room", full)
                    resting = True
                    self.figures.resting += 1
                if not self._emptying or self._spool.low < self._spool.end:
                    deadline = trio.current_time() + self._options.reconnect_timeout
                elif trio.current_time() > deadline:
                    raise SpoolError(
                        f"{full}; and it holds no row whose consumption would make room"
                    ) from full
                with self._changed:
                    self._changed.notify_all()  # what is there is all that there will be for now
                with trio.move_on_after(_LOOK):
                    await self._settled.park()
                continue
            if resting:
                _log.warning("the disk of the spool has room again: receiving goes on")
            if size:
                self._credit.weigh(size)
            with self._changed:
                self._changed.notify_all()
            return refused

    def _settle(self, batch: list[Taken], refused: Refused) -> None:
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
                    except LocalProtocolError:  # its link is gone: it will come again
                        continue
            # Where the peer keeps the link, it has the last word, and ``_done`` hears of it then.
            settled = len(deliveries) if self._kept is None else sum(each.settled for each in deliveries)
            if settled:
                counts[receiver] = counts.get(receiver, 0) + settled
        passing("settled")
        for receiver, count in counts.items():
            self._done(receiver, count)

    def _done(self, receiver: amqp.Receiver, count: int) -> None:
        """So many are settled, and do not come again."""
        self._busy -= count
        self._credit.settled(receiver, count)
        self._give_credit(receiver)
        self._settled.unpark_all()

    def _make_way(self) -> None:
        for receiver in self._credit.links:
            self._give_credit(receiver)
        if self._connected:
            self._settled.unpark_all()

    async def _say_farewell(self, receiver: amqp.Receiver) -> None:
        """What has come is worth writing when told to stop, and settling it spares others the work.

        A subscription is left, and not closed: messages go on to come for whoever comes back (2.6.6).
        """
        with trio.CancelScope(shield=True, deadline=trio.current_time() + _FAREWELL):
            if self._scope.cancel_called and not receiver.closed:
                await self._write_pending()
            if self._options.durable:
                await receiver.detach()
            elif self._scope.cancel_called:
                await receiver.aclose()
