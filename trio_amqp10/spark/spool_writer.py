"""SpoolWriter: deliveries to a segment on the disk.

Messages are stored as they came, and not decoded, unless those that cannot be are to be rejected. What is in the spool
already is left out, if its ids tell.

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
from trio_amqp10.errors import RemoteProtocolError

from .failure_points import passing
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

__all__ = ["Refused", "SpoolWriter", "Taken"]

Refused = list[tuple[amqp.Delivery, RemoteProtocolError]]
"""Deliveries that are to be rejected, and why."""


class Taken(NamedTuple):
    """Deliveries that came together, waiting to be written."""

    deliveries: list[amqp.Delivery]
    receiver: amqp.Receiver
    moment: int
    """Microseconds since 1970."""


class SpoolWriter:
    """Writes what came into one spool.

    Args:
        options: of the reader.
        spool: where segments go.
        termini: what the peer is to hear of deliveries, if it keeps links; None if not.
        figures: where duplicates and rejected messages count.
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
                with suppress(FileNotFoundError):  # of a lane, consumed and deleted by somebody else
                    self._seen.add(keys(path, self._seen.key))
        whole = replace(options, columns=None, maps=True)  # what cannot be decoded is no matter of columns
        self._decoder = RowMaker(whole) if options.on_decode_error == "reject" else None

    async def write(self, batch: list[Taken], peer: str) -> tuple[Refused, int]:
        """All of these on the disk, as one segment, but for what is to be rejected, and what is there already.

        Only the disk is waited for in a thread: to make segments there too would have two threads take turns at one
        interpreter, and neither be done sooner.

        Args:
            batch: what came.
            peer: the container-id of where it came from.

        Returns: what is to be rejected, and the octets of the largest message that was written.

        Raises:
            SpoolFullError: the disk is full; nothing has changed.
            SpoolError: it cannot be written.

        Cancelled: nothing is written; once the disk is waited for, it cannot be.
        """
        came, moments, refused = self._gathered(batch)
        ids: list[str | None] = []
        if self._seen is not None:  # without those that were settled in a former life, had there been time
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
        except OSError as wrong:  # not to be taken for a lost connection
            raise SpoolError(f"the spool {self._spool.where} cannot be written: {wrong}") from wrong
        if self._seen is not None:
            self._seen.add(ids)
        if self._termini is not None:
            self._termini.written()
        self._count(batch, came, refused)
        passing("synced")
        return refused, max(len(each.payload) for each in came)

    def _count(self, batch: list[Taken], came: list[amqp.Delivery], refused: Refused) -> None:
        """What was not written was rejected, or there already."""
        taken = sum(len(each.deliveries) for each in batch)
        self._figures.rejected += len(refused)
        self._figures.duplicates += taken - len(came) - len(refused)

    def _gathered(self, batch: list[Taken]) -> tuple[list[amqp.Delivery], list[int], Refused]:
        """Deliveries, when each came, and those that are to be rejected."""
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
