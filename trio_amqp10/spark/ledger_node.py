"""Ledger: a queue that takes each record once, by its message-id.

A writer that may be started again sends a record, named after its work, in the same transaction as
the work. A second transaction that sends this record is refused, even while the first
is not decided, so at most one of several attempts commits. An attempt that is rolled back
gives up its claim (4.4).

Each record of a transaction goes to its own node, a claim, which lives until the discharge: so the ledger
notices a rollback.

A record may name its job and the batch of this job. The ledger keeps the records of the last two batches of a job,
deletes those of earlier batches, and rejects new ones for them. Other records stay until they expire, or are
received from the queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.broker.nodes.node import Inlet, Node, RefusedError
from trio_amqp10.broker.nodes.queue import Queue
from trio_amqp10.core.errors import Condition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.broker.nodes.clock import Clock
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.entry import Entry
    from trio_amqp10.broker.nodes.node import Arrival, Peer

CLAIMED: Final = Condition.PRECONDITION_FAILED.value
"""The condition for rejecting a record whose message-id is held or claimed."""
JOB: Final = "spark_job"
"""The application property of a record with the name of its job; a string."""
BATCH: Final = "spark_batch"
"""The application property with the batch of the job; a whole number that grows."""
_BATCHES: Final = 2
"""The batches of a job whose records stay.

The last one may be repeated, and the one before it until the last one has begun.
"""


class Ledger(Queue):
    """A queue of records with unique ids: ``container.add_node(Ledger("done"))``.

    A record without a message-id, or with one that is held or claimed already, is rejected with
    ``amqp:precondition-failed``; a record of a batch whose records are deleted, with ``amqp:illegal-state``.

    The ledger is kept in memory, and does not survive the container.

    Args:
        address: the address of the node.
        clock: the clock by which records with a ttl expire.
    """

    def __init__(self, address: str, *, clock: Clock | None = None) -> None:
        super().__init__(address, clock=clock)
        self._held: set[object] = set()
        self._claims: set[object] = set()
        self._batches: dict[str, dict[int, set[Entry]]] = {}

    def on_arrivals(self, inlet: Inlet) -> None:
        """Take records that came outside of a transaction: each counts at once."""
        while (arrival := inlet.take()) is not None:
            try:
                claim = self.destination(arrival.content)
            except RefusedError as refusal:
                if not arrival.settled:
                    arrival.reject(refusal.condition, refusal.description)
                continue
            claim.on_arrivals(_Single(inlet, arrival))

    def destination(self, content: Content) -> Node:
        """Claim the message-id of a record; return the node that takes it."""
        name = content.as_message().message_id
        if name is None:
            raise RefusedError(CLAIMED, f"{self.address!r} is a ledger: a record needs a message-id")
        self.sweep()
        key = (name.__class__, name)
        if key in self._held or key in self._claims:
            raise RefusedError(
                CLAIMED, f"{self.address!r} has a record {name!r} already, or an open transaction has sent it"
            )
        batch = _batch_of(content)
        if batch is not None:
            known = self._batches.get(batch[0], {})
            if len(known) == _BATCHES and batch[1] < min(known):
                raise RefusedError(
                    Condition.ILLEGAL_STATE.value,
                    f"{self.address!r}: batch {batch[1]} of {batch[0]!r} is over, because two later batches have records",
                )
        self._claims.add(key)
        return _Claim(self, key)

    def keep(self, key: object, inlet: Inlet) -> None:
        """Turn a claim into a held record."""
        self._claims.discard(key)
        self._held.add(key)
        super().on_arrivals(inlet)

    def release_claim(self, key: object) -> None:
        """Forget a claim whose transaction was rolled back, or whose record was kept."""
        self._claims.discard(key)

    def _offer(self, entry: Entry) -> None:
        """Offer a record, and delete those of earlier batches of its job."""
        super()._offer(entry)
        batch = _batch_of(entry.content)
        if batch is None:
            return
        job, number = batch
        known = self._batches.setdefault(job, {})
        known.setdefault(number, set()).add(entry)
        for former in sorted(known)[:-_BATCHES]:
            for each in known.pop(former):
                if each.available:  # otherwise a receiver has it
                    self._available.remove(each)
                    self.held.forget(each)

    def on_gone(self, entry: Entry) -> None:
        name = entry.content.as_message().message_id
        self._held.discard((name.__class__, name))
        batch = _batch_of(entry.content)
        if batch is not None:
            self._batches.get(batch[0], {}).get(batch[1], set()).discard(entry)
        super().on_gone(entry)


def _batch_of(content: Content) -> tuple[str, int] | None:
    """Return the job and the batch that a record names; None if it names none."""
    properties: Any = content.as_message().application_properties
    job, batch = properties.get(JOB), properties.get(BATCH)
    return (job, int(batch)) if isinstance(job, str) and isinstance(batch, int) else None


class _Single:
    """An inlet with a single arrival."""

    __slots__ = ("_arrival", "_inlet")

    def __init__(self, inlet: Inlet, arrival: Arrival) -> None:
        self._inlet = inlet
        self._arrival: Arrival | None = arrival

    @property
    def peer(self) -> Peer:
        return self._inlet.peer

    @property
    def pair(self) -> object:
        return self._inlet.pair

    @property
    def is_committed(self) -> bool:
        return self._inlet.is_committed

    def take(self) -> Arrival | None:
        arrival, self._arrival = self._arrival, None
        return arrival

    def close(
        self,
        condition: str | None = None,
        description: str | None = None,
        info: Mapping[Any, Any] | None = None,
    ) -> None:
        self._inlet.close(condition, description, info)


class _Claim(Node):
    """The place of one record in a ledger, until its transaction is discharged."""

    accepts_senders = True

    def __init__(self, ledger: Ledger, key: object) -> None:
        super().__init__(ledger.address)
        self._ledger = ledger
        self._key = key

    def check_inlet(self, peer: Peer) -> None:
        self._ledger.check_inlet(peer)

    def on_arrivals(self, inlet: Inlet) -> None:
        self._ledger.keep(self._key, inlet)

    def remove_inlet(self, inlet: Inlet) -> None:
        super().remove_inlet(inlet)
        self._ledger.release_claim(self._key)
