"""SpoolWriter: writes deliveries as a segment of the spool.

Messages are stored unchanged, and decoded only if undecodable ones must be rejected (``onDecodeError=reject``). Messages whose ids
are in the spool already are left out (``dedup=message-id``).

Knows deliveries, segments and the spool; neither links nor settlement.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

import pyarrow as pa
import trio

import trio_amqp10 as amqp
from trio_amqp10.core.errors import RemoteProtocolError

from .lane_spool import LaneSpool
from .recent_ids import RecentIds
from .rows import RowMaker, Rows
from .segments import keys, segment
from .spool import SpoolError
from .spool_terminus_store import TAGS

if TYPE_CHECKING:
    from typing import BinaryIO

    from .options import QueueOptions
    from .receiving_figures import ReceivingFigures
    from .spool import Spool
    from .spool_terminus_store import SpoolTerminusStore

Refused = list[tuple[amqp.Delivery, RemoteProtocolError]]
"""Deliveries that must be rejected, and why."""


class Taken(NamedTuple):
    """Deliveries that came together, and wait to be written."""

    deliveries: list[amqp.Delivery]
    receiver: amqp.Receiver
    moment: int
    """When they came, in microseconds since 1970."""


class SpoolWriter:
    """Writes the deliveries of one receiver into one spool.

    Args:
        options: of the reader.
        spool: the spool.
        termini: the unsettled deliveries, if the peer keeps links; otherwise None.
        figures: the figures, for counting duplicates and rejected messages.
    """

    def __init__(
        self,
        options: QueueOptions,
        spool: Spool | LaneSpool,
        termini: SpoolTerminusStore | None,
        figures: ReceivingFigures,
    ) -> None:
        self._figures = figures
        self._options = options
        self._spool = spool
        self._termini = termini
        self._seen: RecentIds | None = None
        if options.dedup == "message-id":
            self._seen = RecentIds(options.dedup_window)
            for path in spool.segments:
                with suppress(FileNotFoundError):  # of a lane: consumed and deleted by the query
                    self._seen.add(keys(path, self._seen.key))
        whole = replace(options, columns=None, maps=True)  # decode all sections, whatever the columns are
        self._decoder = RowMaker(whole) if options.on_decode_error == "reject" else None

    async def write(self, batch: list[Taken], peer: str) -> tuple[Refused, int]:
        """Write deliveries as one segment, without duplicates and rejected ones.

        The segment is made in this thread, and written in another: making it there would not be faster,
        because both threads share one interpreter.

        Args:
            batch: the deliveries.
            peer: the container-id of the peer.

        Returns: the deliveries to reject, and the octets of the largest message that was written.

        Raises:
            SpoolFullError: the disk is full; nothing has changed.
            SpoolError: the segment cannot be written.

        Cancelled: nothing is written; once the writing has begun, it cannot be cancelled.
        """
        came, moments, refused = self._gathered(batch)
        ids: list[str | None] = []
        if self._seen is not None:  # leave out redelivered messages that were written, but not settled
            ids = [None if each.message_format else self._seen.key(each.payload) for each in came]
            places = self._seen.fresh(ids)
            if len(places) < len(came):
                came = [came[place] for place in places]
                moments = [moments[place] for place in places]
                ids = [ids[place] for place in places]
        if not came:
            self._count(batch, came, refused)
            return refused, 0
        extra = None if self._termini is None else {TAGS: self._termini.tags(came)}
        table = segment(came, moments, address=str(self._options.address), peer=peer, extra=extra)

        def fill(file: BinaryIO) -> None:
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_batch(table)

        write = self._spool.write
        if isinstance(self._spool, LaneSpool) and ids:
            write = partial(self._spool.write, ids=ids)
        try:
            await trio.to_thread.run_sync(write, len(came), fill)
        except OSError as wrong:  # an OSError would be taken for a lost connection
            raise SpoolError(f"the spool {self._spool.where} cannot be written: {wrong}") from wrong
        if self._seen is not None:
            self._seen.add(ids)
        if self._termini is not None:
            self._termini.written()
        self._count(batch, came, refused)
        return refused, max(len(each.payload) for each in came)

    def _count(self, batch: list[Taken], came: list[amqp.Delivery], refused: Refused) -> None:
        """Count the rejected messages, and the other unwritten ones as duplicates."""
        taken = sum(len(each.deliveries) for each in batch)
        self._figures.rejected += len(refused)
        self._figures.duplicates += taken - len(came) - len(refused)

    def _gathered(self, batch: list[Taken]) -> tuple[list[amqp.Delivery], list[int], Refused]:
        """Return the deliveries, when each came, and those that must be rejected."""
        came: list[amqp.Delivery] = []
        moments: list[int] = []
        refused: Refused = []
        for deliveries, _, moment in batch:
            fine = deliveries
            if self._decoder is not None:
                rows = Rows()
                self._decoder.gather(rows, deliveries, moment)
                refused += rows.refused
                fine = cast("list[amqp.Delivery]", rows.came)
            came += fine
            moments += [moment] * len(fine)
        return came, moments, refused
