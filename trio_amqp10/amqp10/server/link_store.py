"""The stored termini of a container, for exactly-once after a restart (2.6.5).

Each stored terminus has one row with its owner and its expiry time; one row with the source or target in the
container's attach, for a peer that recovers the link by its name (2.6.3); and one row for each delivery that must be
remembered, by its tag:

================  ==================================================================================
a peer sends      the tag of a message that was accepted. It is written in the commit that has the
                  message, and deleted when the sender has settled: a sender that resumes between
                  the two gets the outcome, and does not send again.
a peer receives   the tag, and which message of the store it is for. It is written before the
                  message is sent (``pending_sends``), and deleted in the commit that has the outcome
                  of the message; only then the container settles. After a restart no other link gets
                  the message until the receiver has resumed and sent the outcome, or its time is up.
================  ==================================================================================

A sender that has received an outcome does not ask again, so an outcome is sent without waiting for the disk. A
message that was not accepted has no row: if it is sent again, it counts as a new message.

Knows termini, rows, and messages that are leased; knows no link.
"""

from __future__ import annotations

import itertools
import json
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.amqp10.engine.delivery import ACCEPTED, IncomingDelivery
from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus, SenderTerminus, Sent
from trio_amqp10.amqp10.peer.delivery import OutgoingDelivery
from trio_amqp10.amqp10.peer.terminus_store import Retention
from trio_amqp10.amqp10.spec import TYPES
from trio_amqp10.amqp10.spec.messaging import Accepted, Source, Target, TerminusDurability
from trio_amqp10.amqp10.wire.decode import Budget, decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.broker.nodes.message_store import MESSAGES
from trio_amqp10.broker.stores.base import StoreTable, error_for_peers
from trio_amqp10.broker.stores.column_kinds import COUNT, OCTETS, TEXT, TIME, either, one_of, optional, whole

from .delivery_watch import AbsentWatch, DeliveryWatch
from .native_message import to_transfer
from .retained_terminus import UNKNOWN, Key, RetainedTerminus

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.message import Message
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.message_store import MessageStore, Resume
    from trio_amqp10.broker.nodes.node import Lease
    from trio_amqp10.broker.stores.base import Row, StoreError
    from trio_amqp10.broker.stores.group_commit import Journal

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
"""Hexadecimal digits, in a key, of a tag that ``OutletStore.record_sending`` made."""

MOST: Final = 10_000
"""The most rows of deliveries on one link, so that no peer can fill the disk.

A peer that never settles gets no credit for more.
"""


class LinkStore:
    """The stored link termini of a container, so that links can be resumed later.

    Args:
        message_store: the store of messages; rows of termini go through its journal, in one commit with their messages.

    Raises:
        StoreError: the content of the store cannot be read.
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
        # The peer of an unreadable row may remember its tag, so no other delivery may get this tag.
        places += [_place_in(key) for key in self.journal.rows_set_aside.get(UNSETTLED, ())]
        self._places = itertools.count(1 + max(places, default=0))

    def next_place(self) -> int:
        """Return a number for one more delivery; the numbers increase."""
        return next(self._places)

    # -- writing ----------------------------------------------------------------------------

    def keep(self, retained: RetainedTerminus) -> None:
        """Write the terms of a terminus that a link has now, or delete its rows."""
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
        """Write the row of a stored terminus as it is now."""
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
        """Delete the rows of a terminus that is over, or is not durable any more."""
        _close_unsettled_store(retained)
        if retained.stored:
            retained.stored = False
            self.journal.drop(TERMINI, _id_of(retained.key))
            self.journal.drop(ENDS, _id_of(retained.key))

    # -- after a restart --------------------------------------------------------------------

    def restore(self) -> list[RetainedTerminus]:
        """Return the termini of the last process; call it once, under trio."""
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
            if name != _id_of(key):  # An older version wrote it, whose keys did not have the user.
                self.journal.drop(TERMINI, name)
                self.write(retained)
        records = [row[4] for row in self._unsettled if isinstance(row[4], int)]
        self._records = self._message_store.read_ahead(records)
        aside = self.journal.rows_set_aside
        for row in self._unsettled:
            if row[1] in aside.get(TERMINI, ()) or row[4] in aside.get(MESSAGES, ()):
                continue  # Its terminus or message was set aside as unreadable, so this row stays with it.
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
        """Ask ``resume`` for the link of a message, when its node is restored.

        Returns:
            False if there is no such message. Messages in a table of their node are known only to the node.
        """
        if record.__class__ is int and record not in self._records:
            return False
        self._message_store.resume_by(record, resume)
        return True

    @staticmethod
    def expire(retained: RetainedTerminus) -> None:
        """End the leases of a terminus whose peer has not resumed it since the restart."""
        if isinstance(retained.terminus.unsettled_store, OutletStore):
            retained.terminus.unsettled_store.expire()


class _DeliveryStore:
    """The rows of the deliveries of one link.

    Args:
        link_store: the store of all links.
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
        """Whether a restored row has the key that it would get now."""
        return bool(row[0] == self._key(row[3]))

    def write(self, row: Any) -> None:
        """Write a restored row under the key that it has now."""
        self._note(row[3], row[2], row[4])

    def sent(self, delivery: Any, payload: bytes, message_format: int) -> None:
        """See ``UnsettledStore.sent``."""

    def record_acceptance(self, tag: bytes) -> None:
        """See ``UnsettledStore.record_acceptance``."""

    def drop(self, tag: bytes) -> None:
        """See ``UnsettledStore.drop``."""
        if tag in self._tags:
            self._tags.discard(tag)
            self._link_store.journal.drop(UNSETTLED, self._key(tag))

    def after(self, then: Callable[[], object]) -> None:
        """See ``UnsettledStore.after``.

        If the store fails, the link is detached, so that its peer asks again.
        """

        def done(failure: StoreError | None) -> None:
            if failure is None:
                then()
            elif self._retained.holder is not None:
                self._retained.holder.suspend(*error_for_peers(failure))

        self._link_store.journal.after(done)

    def close(self) -> None:
        """Delete all rows, because the link is over."""
        for tag in list(self._tags):
            self.drop(tag)

    def restore(self, row: Any) -> bool:
        """Restore the delivery of a row; return False if the row is not needed any more."""
        raise NotImplementedError


class InletStore(_DeliveryStore):
    """The tags of accepted messages of a link on which a peer sends."""

    __slots__ = ("_on_room",)

    def __init__(self, link_store: LinkStore, retained: RetainedTerminus) -> None:
        super().__init__(link_store, retained)
        self._on_room: Callable[[], object] | None = None

    @property
    def room(self) -> int:
        """Deliveries that the link may get credit for.

        There may be as many unsettled deliveries as rows.
        """
        return MOST - len(self._retained.terminus.unsettled)

    def has_room(self, call: Callable[[], object]) -> bool:
        """Whether there is room for one more delivery.

        If not, ``call`` is called when the sender has settled a delivery and there is room.
        """
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
        """Write the present deliveries, because the terminus is durable from now on."""
        for tag, delivery in self._retained.terminus.unsettled.items():
            if isinstance(delivery, IncomingDelivery):
                self.record_outcome(tag, delivery.state, _nothing)

    def record_acceptance(self, tag: bytes) -> None:
        """See ``UnsettledStore.record_acceptance``.

        The row is in the commit that has the message.
        """
        if tag not in self._tags:
            self._note(tag, self._link_store.next_place(), None)

    def record_outcome(self, tag: bytes, state: Any, then: Callable[[], object]) -> None:
        """See ``UnsettledStore.record_outcome``; it is sent without waiting for the disk."""
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
    """The messages that a link may have sent, if its peer receives."""

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
        """The journal that writes the rows."""
        return self._link_store.journal

    def begin(self) -> None:
        """Write the present deliveries, because the terminus is durable from now on."""
        for tag, sent in self._terminus.unsettled.items():
            watch = sent.delivery.watcher
            record = watch.record if isinstance(watch, DeliveryWatch) else None
            if record is not None:
                self._note(tag, self._link_store.next_place(), record)

    def record_sending(self, record: int | str) -> bytes:
        """Write that the peer gets this message; return the tag of the delivery.

        The tags are longer than tags that a link makes by itself, so that no tag is used twice.
        """
        place = self._link_store.next_place()
        tag = place.to_bytes(8, "big")
        self._note(tag, place, record)
        return tag

    def record_outcome(self, tag: bytes, state: Any, then: Callable[[], object]) -> None:  # noqa: ARG002
        """See ``UnsettledStore.record_outcome``.

        The lease gets the outcome now, so that its effect on the message is in the same commit.
        """
        sent = self._terminus.unsettled.get(tag)
        watch = None if sent is None else sent.delivery.watcher
        if tag in self._tags and isinstance(watch, DeliveryWatch) and watch.finish_in_commit():
            self.drop(tag)
            self.after(then)
        else:
            then()

    # -- after a restart --------------------------------------------------------------------

    def restore(self, row: Any) -> bool:
        tag, record = row[3], row[4]
        if record is None or not self._link_store.resume_by(record, partial(self._bind, tag)):
            return False
        # The delivery has no link yet: a link that claims the terminus sets it.
        sent = Sent(OutgoingDelivery(cast("Any", None), 0, tag, settled=False), b"", 0)
        self._absent[tag] = self._terminus.unsettled[tag] = sent
        self._tags.add(tag)
        return True

    def _bind(self, tag: bytes, lease: Lease, content: Content | Message) -> object | None:
        """Attach a delivery to its message when the node of the message is restored.

        Return the key of the link, or None if the peer resumed before the node was restored.
        """
        sent = self._absent.pop(tag, None)
        if sent is None:
            return None
        sent.payload, sent.message_format = to_transfer(content)
        sent.delivery.watcher = AbsentWatch(sent.delivery, len(sent.payload), lease)
        return self._retained.outlet_key

    def claimed(self) -> None:
        """Forget deliveries of messages without a node, because the peer is back."""
        for tag in self._absent:
            del self._terminus.unsettled[tag]
            self.drop(tag)
        self._absent.clear()

    def expire(self) -> None:
        """End all leases: the peer did not resume, so the outcomes will not be known."""
        self.claimed()
        default: Any = getattr(self._retained.end, "default_outcome", None)
        for sent in self._terminus.unsettled.values():
            if isinstance(sent.delivery.watcher, AbsentWatch):
                sent.delivery.watcher.expire(default)


def _close_unsettled_store(retained: RetainedTerminus) -> None:
    if isinstance(retained.terminus.unsettled_store, _DeliveryStore):
        retained.terminus.unsettled_store.close()
        retained.terminus.unsettled_store = None


def _nothing() -> None:
    """Do nothing."""


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
    """Return the place of a row by its key, which ends with the tag.

    Return 0 if the peer chose the tag.
    """
    tag = str(key).rpartition(" ")[2]
    try:
        return int(tag, 16) if len(tag) == _TAG_DIGITS else 0
    except ValueError:
        return 0
