"""Archive: the termini that a container's store has, so that exactly-once outlives the process (2.6.5, 3.5.5).

There is a row for each terminus that is to survive, with whose it is and when it expires; and one for each
delivery that must not be forgotten, by its tag:

================  ==================================================================================
a peer sends      the tag of a message that was accepted. It is written in the commit that has the
                  message, and goes when the sender has settled: a sender that comes back between
                  the two is told, and does not send again.
================  ==================================================================================

A sender that hears an outcome will not ask again, whatever is on disk here; so nothing waits to be told. A
message that was refused is not here, and if it is sent again, it is as new: that is not written at all.

Knows termini and rows; knows no link.
"""

from __future__ import annotations

import itertools
import json
from math import inf
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.engine.delivery import ACCEPTED, IncomingDelivery
from trio_amqp10.engine.terminus import ReceiverTerminus
from trio_amqp10.errors import Condition
from trio_amqp10.peer.memory import Retention
from trio_amqp10.spec.messaging import Accepted, TerminusDurability

from .kept import Kept, Key
from .stores.base import StoreFullError, Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from .ledger import Ledger
    from .stores.base import StoreError

__all__ = ["TERMINI", "UNSETTLED", "Archive"]

TERMINI: Final = Table(
    "termini",
    ("id", "container", "name", "role", "user", "durable", "policy", "timeout", "deadline"),
    str,
)
UNSETTLED: Final = Table("unsettled", ("id", "terminus", "place", "tag", "record"), str)

MOST: Final = 10_000
"""Rows of deliveries on one link: a peer that never settles is not to fill the disk."""


class Archive:
    """The rows of all termini of a container that are to survive it.

    Args:
        ledger: of the container, through whose journal they go, with the messages that they are about.

    Raises:
        StoreError: what the store has cannot be read.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._clock = ledger.clock
        self.journal = ledger.journal
        self._termini: list[Any] = list(self.journal.rows(TERMINI))
        self._unsettled: list[Any] = sorted(self.journal.rows(UNSETTLED), key=_place_of)
        self._places = itertools.count(1 + max(map(_place_of, self._unsettled), default=0))

    def next_place(self) -> int:
        """A number for one more delivery; they grow with time."""
        return next(self._places)

    # -- what is to survive -----------------------------------------------------------------

    def keep(self, kept: Kept) -> None:
        """A link has this terminus now: write what was agreed, or nothing any more."""
        level, terminus = kept.retention.durable, kept.terminus
        if level == TerminusDurability.NONE:
            self.forget(kept)
            return
        kept.stored = True
        self.write(kept)
        if level == TerminusDurability.CONFIGURATION:
            _close_keeper(kept)
        elif terminus.keeper is None and isinstance(terminus, ReceiverTerminus):
            terminus.keeper = keeper = InletKeeper(self, kept)
            for tag, delivery in terminus.unsettled.items():
                keeper.conclude(tag, delivery.state, _nothing)

    def write(self, kept: Kept) -> None:
        """Write down a terminus that is to survive, as it is now."""
        if kept.stored:
            deadline = None if kept.deadline == inf else self._clock.to_wall(kept.deadline)
            key, agreed = kept.key, kept.retention
            row = (
                _id_of(key),
                *key,
                kept.user,
                agreed.durable,
                agreed.expiry_policy,
                agreed.timeout,
                deadline,
            )
            self.journal.note(TERMINI, row[0], row)

    def forget(self, kept: Kept) -> None:
        """It need not survive any more, or is over."""
        _close_keeper(kept)
        if kept.stored:
            kept.stored = False
            self.journal.drop(TERMINI, _id_of(kept.key))

    # -- after a restart --------------------------------------------------------------------

    def restore(self) -> list[Kept]:
        """What was there when the last process ended; once, and under trio."""
        found: dict[str, Kept] = {}
        for name, container, link, role, user, durable, policy, timeout, deadline in self._termini:
            kept = found[name] = Kept(Key(container, link, bool(role)), user)
            kept.retention = Retention(TerminusDurability(durable), policy, timeout)
            kept.stored = True
            kept.terminus.known = True
            if deadline is not None:
                kept.deadline = self._clock.from_wall(deadline)
            if durable == TerminusDurability.UNSETTLED_STATE and isinstance(kept.terminus, ReceiverTerminus):
                kept.terminus.keeper = InletKeeper(self, kept)
        for row in self._unsettled:
            there = found.get(row[1])
            keeper = None if there is None else there.terminus.keeper
            if isinstance(keeper, InletKeeper):
                keeper.restore(row)
            else:
                self.journal.drop(UNSETTLED, row[0])
        self._termini.clear()
        self._unsettled.clear()
        return list(found.values())


class _Keeper:
    """Writes down what becomes of the deliveries of one link.

    Args:
        archive: that it writes to.
        kept: the terminus of the link.
    """

    __slots__ = ("_archive", "_kept", "_name", "_tags")

    def __init__(self, archive: Archive, kept: Kept) -> None:
        self._archive = archive
        self._kept = kept
        self._name = _id_of(kept.key)
        self._tags: set[bytes] = set()

    def _note(self, tag: bytes, place: int, record: int | None) -> None:
        key = self._key(tag)
        self._tags.add(tag)
        self._archive.journal.note(UNSETTLED, key, (key, self._name, place, tag, record), len(key))

    def _key(self, tag: bytes) -> str:
        return f"{self._name} {tag.hex()}"

    def sent(self, delivery: Any, payload: bytes, message_format: int) -> None:
        """As ``Keeper.sent``."""

    def foretell(self, tag: bytes) -> None:
        """As ``Keeper.foretell``."""

    def drop(self, tag: bytes) -> None:
        """As ``Keeper.drop``."""
        if tag in self._tags:
            self._tags.discard(tag)
            self._archive.journal.drop(UNSETTLED, self._key(tag))

    def after(self, then: Callable[[], object]) -> None:
        """As ``Keeper.after``; where the store fails, the link is detached, so that its peer asks again."""

        def done(failure: StoreError | None) -> None:
            if failure is None:
                then()
            elif self._kept.holder is not None:
                self._kept.holder.suspend(*why(failure))

        self._archive.journal.after(done)

    def close(self) -> None:
        """The link is over."""
        for tag in list(self._tags):
            self.drop(tag)


class InletKeeper(_Keeper):
    """For a link on which a peer sends: the tags of what was accepted."""

    __slots__ = ()

    def foretell(self, tag: bytes) -> None:
        """As ``Keeper.foretell``: it goes into the commit that has the message."""
        if tag not in self._tags:
            self._note(tag, self._archive.next_place(), None)
            if len(self._tags) > MOST and self._kept.holder is not None:
                self._kept.holder.close(
                    Condition.RESOURCE_LIMIT_EXCEEDED.value,
                    f"more than {MOST} accepted deliveries that their sender has not settled",
                )

    def conclude(self, tag: bytes, state: Any, then: Callable[[], object]) -> None:
        """As ``Keeper.conclude``; nothing waits for it, see above."""
        if isinstance(state, Accepted):
            self.foretell(tag)
        else:
            self.drop(tag)
        then()

    def restore(self, row: Any) -> None:
        """This was written before."""
        tag = row[3]
        delivery = IncomingDelivery(cast("Any", None), 0, tag, 0, False, b"")
        delivery.state = ACCEPTED
        assert isinstance(self._kept.terminus, ReceiverTerminus)
        self._kept.terminus.unsettled[tag] = delivery
        self._tags.add(tag)


def why(failure: StoreError) -> tuple[str, str]:
    """What a peer is told of a store that failed."""
    if isinstance(failure, StoreFullError):
        return Condition.RESOURCE_LIMIT_EXCEEDED.value, "the store is full"
    return Condition.INTERNAL_ERROR.value, "the store failed"


def _close_keeper(kept: Kept) -> None:
    if isinstance(kept.terminus.keeper, _Keeper):
        kept.terminus.keeper.close()
        kept.terminus.keeper = None


def _nothing() -> None:
    """Nobody waits."""


def _id_of(key: Key) -> str:
    return json.dumps([key.container_id, key.name, int(key.role)])


def _place_of(row: Any) -> int:
    return cast("int", row[2])
