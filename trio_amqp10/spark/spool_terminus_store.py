"""SpoolTerminusStore: the unsettled deliveries in the spool (2.6.1, 2.6.13).

It makes ``dedup=link`` work. The rows of a segment do not show whether the peer knows that they were accepted. So each segment also has
the tags of all deliveries that are on the disk with it and may be unsettled at the peer. After a crash, the receiver lists
them as accepted in the unsettled map of its attach; the peer sends only the others, so no message comes twice, even
without message-ids.

Tags are unique as long as the peer keeps the link (2.6.12). If the peer attaches without an unsettled map, it has started a new
link, and may repeat tags: the known tags become void, and this is on the disk before credit is granted.

Knows tags, and their place in segments; not rows.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus
from trio_amqp10.amqp10.spec.messaging import Accepted

from .segments import extra_of
from .spool import SpoolError, SpoolFullError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trio_amqp10.amqp10.engine.unsettled_state import Terminus
    from trio_amqp10.amqp10.peer.terminus_store import LinkKey

    from .lane_spool import LaneSpool
    from .options import QueueOptions
    from .spool import Spool

_log = logging.getLogger("trio_amqp10.spark")

TAGS: Final = b"trio-amqp10.tags"
"""The metadata of a segment with the tags that may be unsettled at the peer."""
_NOTE: Final = "links"
"""The file of the spool with the row from which the tags of each link are valid."""

_REST: Final = 1.0
"""Seconds after which a full disk is tried again."""


def with_link_names(options: QueueOptions, spool: Spool | LaneSpool) -> QueueOptions:
    """Return options with a container-id and a link name, which identify the link.

    Names that are not given are made from the id of the spool.
    """
    return replace(
        options,
        container_id=options.container_id or f"spark-{spool.id}",
        link_name=options.link_name or spool.id,
    )


class SpoolTerminusStore(amqp.TerminusStore):
    """The unsettled deliveries of the links that fill one spool.

    Args:
        spool: the spool whose segments have the tags.

    Raises:
        SpoolError: the file ``links`` of the spool is damaged.
    """

    def __init__(self, spool: Spool | LaneSpool) -> None:
        self._spool = spool
        self._since = _since(spool)
        self._tags: dict[str, dict[bytes, None]] = {}
        self._unsettled_stores: dict[str, _SpooledDeliveries] = {}
        self._coming: list[tuple[str, bytes]] = []
        for path in spool.segments[-1:]:
            try:
                found: dict[str, list[str]] = extra_of(path, TAGS) or {}
            except FileNotFoundError:  # of a lane: consumed and deleted by the query
                break
            for name, tags in found.items():
                if spool.end > self._since.get(name, spool.end):
                    self._tags[name] = dict.fromkeys(map(bytes.fromhex, tags))

    async def open(self, key: LinkKey, make: Callable[[], Terminus]) -> Terminus:
        """Return a terminus whose deliveries on the disk are accepted; no other is known.

        Cancelled: nothing has changed.
        """
        await trio.lowlevel.checkpoint()
        terminus = make()
        assert isinstance(terminus, ReceiverTerminus)
        if key.name in self._unsettled_stores:
            self._unsettled_stores[key.name].settled = None  # its connection is closed
        tags = self._tags.setdefault(key.name, {})
        terminus.known = key.name in self._since
        for tag in tags:
            terminus.restore(tag, Accepted())
        terminus.unsettled_store = self._unsettled_stores[key.name] = _SpooledDeliveries(tags)
        return terminus

    async def discard(self, key: LinkKey) -> None:
        """Forget a link, also if cancelled."""
        self._tags.pop(key.name, None)
        with suppress(OSError, SpoolFullError):  # harmless: the peer will attach without an unsettled map
            self._note({name: row for name, row in self._since.items() if name != key.name})
        await trio.lowlevel.checkpoint()

    def _note(self, since: dict[str, int]) -> None:
        self._spool.write_note(_NOTE, json.dumps(since))
        self._since = since

    async def begin(self, receiver: amqp.Receiver, settled: Callable[[int], object]) -> None:
        """Prepare for deliveries of a link that is attached and has no credit yet.

        If the disk is full, waits until it has room.

        Args:
            receiver: the link.
            settled: called with the number of deliveries that the peer has settled, of those that come from now on.

        Raises:
            SpoolError: the spool cannot be written.

        Cancelled: either nothing has changed, or the call has completed.
        """
        name = receiver.name
        if name not in self._since or receiver.remote.unsettled is None:
            if name in self._since:
                _log.warning(
                    "the peer has started the link %r from scratch: unsettled messages come again", name
                )
            self._tags[name].clear()
            while True:
                try:
                    self._note(self._since | {name: self._spool.end})
                except SpoolFullError as full:
                    _log.warning("%s; receiving pauses until there is room", full)
                    await trio.sleep(_REST)
                except OSError as wrong:  # an OSError would be taken for a lost connection
                    raise SpoolError(f"the spool cannot be written: {wrong}") from wrong
                else:
                    break
        self._unsettled_stores[name].settled = settled

    def tags(self, came: Iterable[amqp.Delivery]) -> dict[str, list[str]]:
        """Return the tags for a segment: of its deliveries, and of all unsettled ones."""
        self._coming = [(each.link.name, each.tag) for each in came if not each.settled]
        tags = {name: [tag.hex() for tag in known] for name, known in self._tags.items()}
        for name, tag in self._coming:
            tags.setdefault(name, []).append(tag.hex())
        return tags

    def written(self) -> None:
        """Remember the tags of the last ``tags``, because its segment is on the disk."""
        for name, tag in self._coming:
            self._tags.setdefault(name, {})[tag] = None


def _since(spool: Spool | LaneSpool) -> dict[str, int]:
    noted = spool.read_note(_NOTE)
    try:
        return {} if noted is None else dict(json.loads(noted))
    except (ValueError, TypeError) as wrong:
        raise SpoolError(f"the file {_NOTE!r} of the spool is damaged: {wrong}") from None


class _SpooledDeliveries:
    """Notices which deliveries the peer has settled.

    Outcomes need not be recorded here: a delivery is on the disk before it is accepted.
    """

    def __init__(self, tags: dict[bytes, None]) -> None:
        self.settled: Callable[[int], object] | None = None
        self._tags = tags
        self._old = set(tags)
        self._count = 0

    def sent(self, delivery: object, payload: bytes, message_format: int) -> None:
        """Do nothing: a receiver sends no messages."""

    def record_outcome(self, tag: bytes, state: object, then: Callable[[], object]) -> None:  # noqa: ARG002
        then()

    def record_acceptance(self, tag: bytes) -> None:
        """Do nothing: the delivery is on the disk already."""

    def drop(self, tag: bytes) -> None:
        self._tags.pop(tag, None)
        if tag in self._old:
            self._old.remove(tag)  # of an earlier connection: it has used no credit of this one
            return
        self._count += 1
        if self._count == 1:  # a disposition settles many deliveries, which are reported together
            trio.lowlevel.current_trio_token().run_sync_soon(self._report)

    def _report(self) -> None:
        count, self._count = self._count, 0
        if self.settled is not None:
            self.settled(count)

    def after(self, then: Callable[[], object]) -> None:
        then()
