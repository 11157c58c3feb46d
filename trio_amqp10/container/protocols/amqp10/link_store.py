"""The termini in the store, so that exactly-once outlives the process (2.6.5).

There is a row for each terminus that is to survive, with whose it is and when it expires; one with the source or
target as it was told the peer, for one that recovers the link by its name (2.6.3); and one for each delivery that must not be forgotten, by its tag:

================  ==================================================================================
a peer sends      the tag of a message that was accepted. It is written in the commit that has the
                  message, and goes when the sender has settled: a sender that comes back between
                  the two is told, and does not send again.
a peer receives   the tag, and which message of the store it stands for. It is written before the
                  message goes out (``pending_sends``), and goes in the commit that says what became of the
                  message: only then the receiver hears that we know. After a restart the message is
                  no other link's, until the receiver has come back and said so, or its time is up.
================  ==================================================================================

A sender that hears an outcome will not ask again, whatever is on disk here; so nothing waits to be told. A
message that was refused is not here, and if it is sent again, it is as new: that is not written at all.

Knows termini, rows, and messages that are leased; knows no link.
"""

from __future__ import annotations

import itertools
import json
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.container.nodes.message_store import MESSAGES
from trio_amqp10.container.protocols.amqp10.native_message import to_transfer
from trio_amqp10.container.stores.base import StoreFullError, StoreTable
from trio_amqp10.container.stores.cells import COUNT, OCTETS, TEXT, TIME, either, one_of, optional, whole
from trio_amqp10.engine.delivery import ACCEPTED, IncomingDelivery
from trio_amqp10.engine.unsettled_state import ReceiverTerminus, SenderTerminus, Sent
from trio_amqp10.errors import Condition
from trio_amqp10.peer.delivery import OutgoingDelivery
from trio_amqp10.peer.terminus_store import Retention
from trio_amqp10.spec import TYPES
from trio_amqp10.spec.messaging import Accepted, Source, Target, TerminusDurability
from trio_amqp10.wire.decode import Budget, decode
from trio_amqp10.wire.encode import encode

from .delivery_watch import AbsentWatch, DeliveryWatch
from .retained_terminus import UNKNOWN, Key, RetainedTerminus

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.container.nodes.content import Content
    from trio_amqp10.container.nodes.message_store import MessageStore, Resume
    from trio_amqp10.container.nodes.node import Lease
    from trio_amqp10.container.stores.base import Row, StoreError
    from trio_amqp10.container.stores.group_commit import Journal
    from trio_amqp10.message import Message

__all__ = ["ENDS", "TERMINI", "UNSETTLED", "LinkStore"]

_POLICIES: Final = ("link-detach", "session-end", "connection-close", "never")

TERMINI: Final = StoreTable(
    "termini",
    ("id", "container", "name", "role", "user", "durable", "policy", "timeout", "deadline"),
    str,
    (
        *(TEXT, TEXT, TEXT, whole(0, 1), optional(TEXT)),
        *(whole(0, 2), one_of(*_POLICIES), whole(0, 2**32 - 1), optional(TIME)),
    ),
)
ENDS: Final = StoreTable("ends", ("id", "terminus"), str, (TEXT, OCTETS))
UNSETTLED: Final = StoreTable(
    "unsettled",
    ("id", "terminus", "place", "tag", "record"),
    str,
    (
        *(TEXT, TEXT, COUNT, OCTETS),
        optional(either(COUNT, TEXT)),
    ),
)

_TAG_DIGITS: Final = 16
"""Of a tag that ``OutletStore.record_sending`` made, in a key."""

MOST: Final = 10_000
"""Rows of deliveries on one link: a peer that never settles is not to fill the disk. It gets no credit for more."""


class LinkStore:
    """The rows of all termini of a container that are to survive it.

    Args:
        message_store: of the container, through whose journal they go, with the messages that they are about.

    Raises:
        StoreError: what the store has cannot be read.
    """

    def __init__(self, message_store: MessageStore) -> None:
        self._message_store = message_store
        self._clock = message_store.clock
        self.journal: Final = message_store.journal
        self._termini: list[Any] = list(self.journal.rows(TERMINI))
        self._ends: dict[Any, Any] = dict(cast("Any", self.journal.rows(ENDS)))
        self._unsettled: list[Any] = sorted(self.journal.rows(UNSETTLED), key=_place_of)
        self._records: set[int] = set()
        places = [_place_of(row) for row in self._unsettled]
        # The peer of a row that cannot be read may remember its tag, so no other delivery gets that.
        places += [_place_in(key) for key in self.journal.rows_set_aside.get(UNSETTLED, ())]
        self._places = itertools.count(1 + max(places, default=0))

    def next_place(self) -> int:
        """A number for one more delivery; they grow with time."""
        return next(self._places)

    # -- what is to survive -----------------------------------------------------------------

    def keep(self, retained: RetainedTerminus) -> None:
        """A link has this terminus now: write what was agreed, or nothing any more."""
        level, terminus = retained.retention.durable, retained.terminus
        if level == TerminusDurability.NONE:
            self.forget(retained)
            return
        retained.stored = True
        self.write(retained)
        octets = encode(retained.end)
        self.journal.note(ENDS, _id_of(retained.key), (_id_of(retained.key), octets), len(octets))
        if level == TerminusDurability.CONFIGURATION:
            _close_unsettled_store(retained)
        elif terminus.unsettled_store is None:
            terminus.unsettled_store = unsettled_store = self._new_unsettled_store(retained)
            unsettled_store.begin()
        elif isinstance(terminus.unsettled_store, OutletStore):
            terminus.unsettled_store.claimed()

    def _new_unsettled_store(self, retained: RetainedTerminus) -> InletStore | OutletStore:
        kind = InletStore if isinstance(retained.terminus, ReceiverTerminus) else OutletStore
        return kind(self, retained)

    def write(self, retained: RetainedTerminus) -> None:
        """Write down a terminus that is to survive, as it is now."""
        if retained.stored:
            deadline = None if retained.deadline == inf else self._clock.to_wall(retained.deadline)
            key, agreed = retained.key, retained.retention
            row: Row = (
                _id_of(key),
                key.container_id,
                key.name,
                int(key.role),
                key.user,
                int(agreed.durable),
                str(agreed.expiry_policy),
                agreed.timeout,
                deadline,
            )
            self.journal.note(TERMINI, row[0], row)

    def forget(self, retained: RetainedTerminus) -> None:
        """It need not survive any more, or is over."""
        _close_unsettled_store(retained)
        if retained.stored:
            retained.stored = False
            self.journal.drop(TERMINI, _id_of(retained.key))
            self.journal.drop(ENDS, _id_of(retained.key))

    # -- after a restart --------------------------------------------------------------------

    def restore(self) -> list[RetainedTerminus]:
        """What was there when the last process ended; once, and under trio."""
        found: dict[str, RetainedTerminus] = {}
        for name, container, link, role, user, durable, policy, timeout, deadline in self._termini:
            key = Key(container, link, bool(role), user)
            retained = found[name] = RetainedTerminus(key, UNKNOWN if user is None else key.origin(None))
            retained.retention = Retention(TerminusDurability(durable), policy, timeout)
            retained.stored = True
            retained.terminus.known = True
            if name in self._ends:
                with self.journal.reading(ENDS, name):
                    retained.end = _end_of(self._ends[name])
            if deadline is not None:
                retained.deadline = self._clock.from_wall(deadline)
            if durable == TerminusDurability.UNSETTLED_STATE:
                retained.terminus.unsettled_store = self._new_unsettled_store(retained)
            if name != _id_of(key):  # written when users were not part of the key
                self.journal.drop(TERMINI, name)
                self.write(retained)
        self._records = self._message_store.records if self._unsettled else set()
        aside = self.journal.rows_set_aside
        for row in self._unsettled:
            if row[1] in aside.get(TERMINI, ()) or row[4] in aside.get(MESSAGES, ()):
                continue  # it stays, as what it belongs to does
            there = found.get(row[1])
            unsettled_store = None if there is None else there.terminus.unsettled_store
            if not isinstance(unsettled_store, _DeliveryStore) or not unsettled_store.restore(row):
                self.journal.drop(UNSETTLED, row[0])
            elif not unsettled_store.has(row):
                self.journal.drop(UNSETTLED, row[0])
                unsettled_store.write(row)
        self._termini.clear()
        self._ends.clear()
        self._unsettled.clear()
        self._records.clear()
        return list(found.values())

    def resume_by(self, record: int | str, resume: Resume) -> bool:
        """Have ``resume`` asked, when the node of this message is there again, which link has it.

        Returns:
            False if there is no such message. What a node has in a table of its own is known only to the node.
        """
        if record.__class__ is int and record not in self._records:
            return False
        self._message_store.resume_by(record, resume)
        return True

    @staticmethod
    def expire(retained: RetainedTerminus) -> None:
        """Nobody came back since the restart."""
        if isinstance(retained.terminus.unsettled_store, OutletStore):
            retained.terminus.unsettled_store.expire()


class _DeliveryStore:
    """Writes down what becomes of the deliveries of one link.

    Args:
        link_store: that it writes to.
        retained: the terminus of the link.
    """

    __slots__ = ("_link_store", "_name", "_retained", "_tags")

    def __init__(self, link_store: LinkStore, retained: RetainedTerminus) -> None:
        self._link_store = link_store
        self._retained = retained
        self._name = _id_of(retained.key)
        self._tags: set[bytes] = set()

    def _note(self, tag: bytes, place: int, record: int | str | None) -> None:
        key = self._key(tag)
        self._tags.add(tag)
        self._link_store.journal.note(UNSETTLED, key, (key, self._name, place, tag, record), len(key))

    def _key(self, tag: bytes) -> str:
        return f"{self._name} {tag.hex()}"

    def has(self, row: Any) -> bool:
        """Whether a row that was restored has the key that it would get now."""
        return bool(row[0] == self._key(row[3]))

    def write(self, row: Any) -> None:
        """Write a row that was restored under the key that it has now."""
        self._note(row[3], row[2], row[4])

    def sent(self, delivery: Any, payload: bytes, message_format: int) -> None:
        """As ``UnsettledStore.sent``."""

    def record_acceptance(self, tag: bytes) -> None:
        """As ``UnsettledStore.record_acceptance``."""

    def drop(self, tag: bytes) -> None:
        """As ``UnsettledStore.drop``."""
        if tag in self._tags:
            self._tags.discard(tag)
            self._link_store.journal.drop(UNSETTLED, self._key(tag))

    def after(self, then: Callable[[], object]) -> None:
        """As ``UnsettledStore.after``; where the store fails, the link is detached, so that its peer asks again."""

        def done(failure: StoreError | None) -> None:
            if failure is None:
                then()
            elif self._retained.holder is not None:
                self._retained.holder.suspend(*why(failure))

        self._link_store.journal.after(done)

    def close(self) -> None:
        """The link is over."""
        for tag in list(self._tags):
            self.drop(tag)

    def restore(self, row: Any) -> bool:
        """This was written before; False where it is of no use any more."""
        raise NotImplementedError


class InletStore(_DeliveryStore):
    """For a link on which a peer sends: the tags of what was accepted."""

    __slots__ = ("_on_room",)

    def __init__(self, link_store: LinkStore, retained: RetainedTerminus) -> None:
        super().__init__(link_store, retained)
        self._on_room: Callable[[], object] | None = None

    @property
    def room(self) -> int:
        """Deliveries to give credit for: as many may be unsettled as there may be rows."""
        return MOST - len(self._retained.terminus.unsettled)

    def has_room(self, call: Callable[[], object]) -> bool:
        """Whether there is room for another one; if not, ``call`` is called once there is: its sender has settled one."""
        if self.room > 0:
            return True
        self._on_room = call
        return False

    def drop(self, tag: bytes) -> None:
        super().drop(tag)
        call = self._on_room
        if call is not None and self.room > 0:
            self._on_room = None
            call()

    def begin(self) -> None:
        """The terminus is to survive from now on, with what is in it."""
        for tag, delivery in self._retained.terminus.unsettled.items():
            if isinstance(delivery, IncomingDelivery):
                self.record_outcome(tag, delivery.state, _nothing)

    def record_acceptance(self, tag: bytes) -> None:
        """As ``UnsettledStore.record_acceptance``: it goes into the commit that has the message."""
        if tag not in self._tags:
            self._note(tag, self._link_store.next_place(), None)

    def record_outcome(self, tag: bytes, state: Any, then: Callable[[], object]) -> None:
        """As ``UnsettledStore.record_outcome``; nothing waits for it, see above."""
        if isinstance(state, Accepted):
            self.record_acceptance(tag)
        else:
            self.drop(tag)
        then()

    def restore(self, row: Any) -> bool:
        tag = row[3]
        assert isinstance(self._retained.terminus, ReceiverTerminus)
        self._retained.terminus.restore(tag, ACCEPTED)
        self._tags.add(tag)
        return True


class OutletStore(_DeliveryStore):
    """For a link on which a peer receives: which messages it may have."""

    __slots__ = ("_absent",)

    def __init__(self, link_store: LinkStore, retained: RetainedTerminus) -> None:
        super().__init__(link_store, retained)
        self._absent: dict[bytes, Sent] = {}

    @property
    def _terminus(self) -> SenderTerminus:
        assert isinstance(self._retained.terminus, SenderTerminus)
        return self._retained.terminus

    @property
    def journal(self) -> Journal:
        """Where its rows go."""
        return self._link_store.journal

    def begin(self) -> None:
        """The terminus is to survive from now on, with what is in it."""
        for tag, sent in self._terminus.unsettled.items():
            watch = sent.delivery.watcher
            record = watch.record if isinstance(watch, DeliveryWatch) else None
            if record is not None:
                self._note(tag, self._link_store.next_place(), record)

    def record_sending(self, record: int | str) -> bytes:
        """Write down that the peer gets this message of the store; returns the tag that it is to have.

        Tags are longer than those that a link makes by itself, so that none is there already.
        """
        place = self._link_store.next_place()
        tag = place.to_bytes(8, "big")
        self._note(tag, place, record)
        return tag

    def record_outcome(self, tag: bytes, state: Any, then: Callable[[], object]) -> None:  # noqa: ARG002
        """As ``UnsettledStore.record_outcome``: what becomes of the message is noted now, to be in the same commit."""
        sent = self._terminus.unsettled.get(tag)
        watch = None if sent is None else sent.delivery.watcher
        if tag in self._tags and isinstance(watch, DeliveryWatch) and watch.work is None:
            watch.finish_now()
            self.drop(tag)
            self.after(then)
        else:
            then()

    # -- after a restart --------------------------------------------------------------------

    def restore(self, row: Any) -> bool:
        tag, record = row[3], row[4]
        if record is None or not self._link_store.resume_by(record, partial(self._bind, tag)):
            return False
        # It has no link before the terminus is given to one.
        sent = Sent(OutgoingDelivery(cast("Any", None), 0, tag, settled=False), b"", 0)
        self._absent[tag] = self._terminus.unsettled[tag] = sent
        self._tags.add(tag)
        return True

    def _bind(self, tag: bytes, lease: Lease, content: Content | Message) -> object | None:
        """The node of a message is there again; returns the key of the link, or None where the peer was there before the node."""
        sent = self._absent.pop(tag, None)
        if sent is None:
            return None
        sent.payload, sent.message_format = to_transfer(content)
        sent.delivery.watcher = AbsentWatch(sent.delivery, len(sent.payload), lease)
        return self._retained.outlet_key

    def claimed(self) -> None:
        """The peer is back: of what has no queue yet, nothing is known any more."""
        for tag in self._absent:
            del self._terminus.unsettled[tag]
            self.drop(tag)
        self._absent.clear()

    def expire(self) -> None:
        """Nobody came back: what became of all that is unsettled will not be known."""
        self.claimed()
        default: Any = getattr(self._retained.end, "default_outcome", None)
        for sent in self._terminus.unsettled.values():
            if isinstance(sent.delivery.watcher, AbsentWatch):
                sent.delivery.watcher.expire(default)


def why(failure: StoreError) -> tuple[str, str]:
    """Condition and description for a peer, of a store that failed."""
    if isinstance(failure, StoreFullError):
        return Condition.RESOURCE_LIMIT_EXCEEDED.value, "the store is full"
    return Condition.INTERNAL_ERROR.value, "the store failed"


def _close_unsettled_store(retained: RetainedTerminus) -> None:
    if isinstance(retained.terminus.unsettled_store, _DeliveryStore):
        retained.terminus.unsettled_store.close()
        retained.terminus.unsettled_store = None


def _nothing() -> None:
    """Nobody waits."""


def _id_of(key: Key) -> str:
    return json.dumps([key.container_id, key.name, int(key.role), key.user])


def _end_of(octets: bytes) -> Source | Target:
    found: Any = decode(octets, 0, Budget(types=TYPES))[0]
    if not isinstance(found, Source | Target):
        raise ValueError(f"{found!r:.60} is neither a source nor a target")
    return found


def _place_of(row: Any) -> int:
    return cast("int", row[2])


def _place_in(key: Any) -> int:
    """The place of a row by its key, which ends with the tag; 0 if the tag was the peer's."""
    tag = str(key).rpartition(" ")[2]
    try:
        return int(tag, 16) if len(tag) == _TAG_DIGITS else 0
    except ValueError:
        return 0
