"""A file with a client's link termini, so that another process can resume them.

An unsettled message of a sender is stored with its payload, because it may have to be sent again. A receiver
stores outcomes only: a delivery without an outcome is sent again, to the next receiver that asks.

Exactly-once depends on the order: an outcome is on the disk before the peer learns that this end knows it,
and may forget it. All other changes are written soon after.

Knows termini and rows; knows no connection.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus, SenderTerminus, Sent
from trio_amqp10.amqp10.spec import TYPES
from trio_amqp10.amqp10.spec.messaging import Accepted, Modified, Received, Rejected, Released
from trio_amqp10.amqp10.spec.transactions import Declared, TransactionalState
from trio_amqp10.amqp10.wire.decode import Budget, decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import Described
from trio_amqp10.broker.stores.base import StoreError, StoreTable, reading
from trio_amqp10.broker.stores.column_kinds import COUNT, OCTETS, TEXT, optional, whole
from trio_amqp10.broker.stores.group_commit import Journal
from trio_amqp10.broker.stores.sqlite_store import SqliteStore

from .delivery import OutgoingDelivery
from .terminus_store import TerminusStore

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from trio_amqp10.amqp10.engine.delivery import OutgoingDelivery as EngineOutgoing
    from trio_amqp10.amqp10.engine.unsettled_state import Terminus

    from .terminus_store import LinkKey


_LINKS: Final = StoreTable("links", ("link", "known"), str, (TEXT, COUNT))
_DELIVERIES: Final = StoreTable(
    "link_deliveries",
    ("id", "link", "place", "tag", "payload", "format", "state"),
    str,
    (TEXT, TEXT, COUNT, OCTETS, OCTETS, whole(0, 2**32 - 1), optional(OCTETS)),
)


_STATES: Final = (Received, Accepted, Rejected, Released, Modified, Declared, TransactionalState, Described)
"""The types of a delivery state.

A state of an unknown type is a described value.
"""


class SqliteTerminusStore(TerminusStore):
    """Stores link termini in a file, so that links can resume after a restart.

    ``with`` closes it. A sender's ``transmit`` returns when the message is in the file. Several ``trio.run``
    may use it one after the other, but not at the same time.

    Args:
        path: the path of the file, created if it does not exist; see ``SqliteStore``.

    Raises:
        StoreError: as ``SqliteStore``.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._store = SqliteStore(path)
        try:
            with reading(self._store):
                self._read()
        except StoreError:
            self._store.close()
            raise

    def _read(self) -> None:
        self._journal = Journal(self._store)
        self._places = itertools.count(1)
        self._termini: dict[str, Terminus] = {}
        self._known = {str(link) for link, _known in self._journal.rows(_LINKS)}
        self._rows: dict[str, list[Any]] = {}
        for row in sorted(self._journal.rows(_DELIVERIES), key=lambda row: cast("int", row[2])):
            self._rows.setdefault(str(row[1]), []).append(row)
            self._places = itertools.count(cast("int", row[2]) + 1)

    async def open(self, key: LinkKey, make: Callable[[], Terminus]) -> Terminus:
        """Return the terminus of ``key``, as ``TerminusStore.open``.

        Cancelled: nothing has changed.
        """
        await trio.lowlevel.checkpoint()
        self._journal.resume_writing()
        link = _name(key)
        terminus = self._termini.get(link)
        if terminus is None:
            terminus = make()
            terminus.unsettled_store = _UnsettledDeliveries(self._journal, link, self._places)
            terminus.known = link in self._known
            rows = self._rows.pop(link, [])
            if isinstance(terminus, SenderTerminus):
                self._load_sent(terminus, rows, link)
            elif isinstance(terminus, ReceiverTerminus):
                self._load_outcomes(terminus, rows)
            self._termini[link] = terminus
            self._known.add(link)
            self._journal.note(_LINKS, link, (link, 1))
        return terminus

    def _load_sent(self, terminus: SenderTerminus, rows: list[Any], link: str) -> None:
        unsettled_store = cast("_UnsettledDeliveries", terminus.unsettled_store)
        for row in rows:
            key, _link, _place, tag, payload, message_format, state = row
            with self._journal.reading(_DELIVERIES, key):
                # The delivery gets its link when a link gets the terminus.
                delivery = OutgoingDelivery(cast("Any", None), 0, tag, settled=False)
                delivery.state = _decoded(state)
                terminus.unsettled[tag] = Sent(delivery, payload, message_format)
                unsettled_store.adopt(tag, row)
        # Generated tags have four octets: continue after the highest, also of rows that cannot be read.
        aside = [_tag_in(key, link) for key in self._journal.rows_set_aside.get(_DELIVERIES, ())]
        for tag in (*terminus.unsettled, *aside):
            if len(tag) == 4:
                terminus.next_tag = max(terminus.next_tag, int.from_bytes(tag, "big") + 1)

    def _load_outcomes(self, terminus: ReceiverTerminus, rows: list[Any]) -> None:
        unsettled_store = cast("_UnsettledDeliveries", terminus.unsettled_store)
        for row in rows:
            tag, state = row[3], row[6]
            with self._journal.reading(_DELIVERIES, row[0]):
                terminus.restore(tag, _decoded(state))
                unsettled_store.adopt(tag, row)

    async def discard(self, key: LinkKey) -> None:
        """Forget a link, as ``TerminusStore.discard``.

        Cancelled: the link is forgotten anyway.
        """
        link = _name(key)
        terminus = self._termini.pop(link, None)
        self._known.discard(link)
        self._journal.drop(_LINKS, link)
        if terminus is not None and isinstance(terminus.unsettled_store, _UnsettledDeliveries):
            terminus.unsettled_store.close()
        for row in self._rows.pop(link, []):
            self._journal.drop(_DELIVERIES, row[0])
        await trio.lowlevel.checkpoint()

    async def flushed(self) -> None:
        """Wait until all changes are in the file, as ``TerminusStore.flushed``.

        A failure to write is logged.

        Cancelled: it is written anyway.
        """
        await self._journal.until_safe()

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()


class _UnsettledDeliveries:
    """Stores the unsettled deliveries of one link."""

    def __init__(self, journal: Journal, link: str, places: itertools.count[int]) -> None:
        self._journal = journal
        self._link = link
        self._places = places
        self._rows: dict[bytes, tuple[Any, ...]] = {}

    def adopt(self, tag: bytes, row: tuple[Any, ...]) -> None:
        """Note a row that was stored before."""
        self._rows[tag] = row

    def sent(self, delivery: EngineOutgoing, payload: bytes, message_format: int) -> None:
        self._write(delivery.tag, payload, message_format, None)

    def record_outcome(self, tag: bytes, state: Any, then: Callable[[], object]) -> None:
        row = self._rows.get(tag)
        payload, message_format = (b"", 0) if row is None else (row[4], row[5])
        self._write(tag, payload, message_format, encode(state))
        self.after(then)

    def record_acceptance(self, tag: bytes) -> None:
        """Store nothing: the outcome is stored when it is given.

        Only a container, whose node has a file of its own, records acceptances.
        """

    def _write(self, tag: bytes, payload: bytes, message_format: int, state: bytes | None) -> None:
        old = self._rows.get(tag)
        key = f"{self._link} {tag.hex()}"
        place = next(self._places) if old is None else old[2]
        row = self._rows[tag] = (key, self._link, place, tag, payload, message_format, state)
        self._journal.note(_DELIVERIES, key, row, len(payload))

    def drop(self, tag: bytes) -> None:
        row = self._rows.pop(tag, None)
        if row is not None:
            self._journal.drop(_DELIVERIES, row[0])

    def after(self, then: Callable[[], object]) -> None:
        def done(failure: StoreError | None) -> None:
            if failure is None:  # otherwise the peer gets no answer, and must ask again
                then()

        self._journal.after(done)

    def close(self) -> None:
        """Delete all rows: the link is closed."""
        for tag in list(self._rows):
            self.drop(tag)


def _name(key: LinkKey) -> str:
    return json.dumps(key)


def _tag_in(key: Any, link: str) -> bytes:
    """Return the delivery tag at the end of ``key``; empty if it is of another link."""
    prefix, _, tag = str(key).rpartition(" ")
    try:
        return bytes.fromhex(tag) if prefix == link else b""
    except ValueError:
        return b""


def _decoded(state: bytes | None) -> Any:
    if state is None:
        return None
    found = decode(state, 0, Budget(types=TYPES))[0]
    if not isinstance(found, _STATES):
        raise ValueError(f"{found!r:.60} is not a state of a delivery")
    return found
