"""Deliveries that are in the spool and not settled by the peer (2.6.1, 2.6.13).

What a segment cannot tell is whether the peer has heard that it is there. So each segment tells, beside its rows,
the tags of all deliveries that are on the disk with it and may be unsettled at the peer. Who comes after a crash says of
those that they are accepted, in the unsettled map of its attach; the peer sends the others, and nothing comes twice, whether
or not messages have ids.

Tags are unique as long as the peer remembers the link (2.6.12). Where it attaches without a map, it has begun
anew, and so may its tags: what was known is void, and that is on the disk before there is credit for anything new.

Knows tags, and where segments keep them; knows no row.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import trio

import trio_amqp10 as amqp
from trio_amqp10.engine.unsettled_state import ReceiverTerminus
from trio_amqp10.spec.messaging import Accepted

from .segments import extra_of
from .spool import SpoolError, SpoolFullError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trio_amqp10.engine.unsettled_state import Terminus
    from trio_amqp10.peer.terminus_store import LinkKey

    from .lane_spool import LaneSpool
    from .options import QueueOptions
    from .spool import Spool

__all__ = ["TAGS", "SpoolTerminusStore", "named"]

_log = logging.getLogger("trio_amqp10.spark")

TAGS: Final = b"trio-amqp10.tags"
"""What a segment calls the tags of what is unsettled at the peer."""
_NOTE: Final = "links"
"""The file of the spool that says from which row on the tags of each link mean anything."""

_REST: Final = 1.0
"""Seconds until a disk that was full is tried again."""


def named(options: QueueOptions, spool: Spool | LaneSpool) -> QueueOptions:
    """These options with names for container and link, by which the peer knows who comes back: those of the spool, if none are given."""
    return replace(
        options,
        container_id=options.container_id or f"spark-{spool.id}",
        link_name=options.link_name or spool.id,
    )


class SpoolTerminusStore(amqp.TerminusStore):
    """The unsettled deliveries of the links that fill one spool.

    Args:
        spool: whose segments tell of them.

    Raises:
        SpoolError: what it says of links is damaged.
    """

    def __init__(self, spool: Spool | LaneSpool) -> None:
        self._spool = spool
        self._since = _since(spool)
        self._tags: dict[str, dict[bytes, None]] = {}
        self._unsettled_stores: dict[str, _SpooledDeliveries] = {}
        self._coming: list[tuple[str, bytes]] = []
        for path in spool.segments[-1:]:
            try:
                told: dict[str, list[str]] = extra_of(path, TAGS) or {}
            except FileNotFoundError:  # of a lane, consumed and deleted by somebody else
                break
            for name, tags in told.items():
                if spool.end > self._since.get(name, spool.end):
                    self._tags[name] = dict.fromkeys(map(bytes.fromhex, tags))

    async def open(self, key: LinkKey, make: Callable[[], Terminus]) -> Terminus:
        """As ``TerminusStore.open``: what is on the disk is accepted, and of all else nothing is known. Cancelled: nothing has changed."""
        await trio.lowlevel.checkpoint()
        terminus = make()
        assert isinstance(terminus, ReceiverTerminus)
        if key.name in self._unsettled_stores:
            self._unsettled_stores[key.name].settled = None  # its connection is gone
        tags = self._tags.setdefault(key.name, {})
        terminus.known = key.name in self._since
        for tag in tags:
            terminus.restore(tag, Accepted())
        terminus.unsettled_store = self._unsettled_stores[key.name] = _SpooledDeliveries(tags)
        return terminus

    async def discard(self, key: LinkKey) -> None:
        """As ``TerminusStore.discard``. Cancelled: it is forgotten all the same."""
        self._tags.pop(key.name, None)
        with suppress(OSError, SpoolFullError):  # then the peer will say that it knows nothing of the link
            self._note({name: row for name, row in self._since.items() if name != key.name})
        await trio.lowlevel.checkpoint()

    def _note(self, since: dict[str, int]) -> None:
        self._spool.note(_NOTE, json.dumps(since))
        self._since = since

    async def begin(self, receiver: amqp.Receiver, settled: Callable[[int], object]) -> None:
        """A link is attached, and has no credit yet. Where the disk is full, waits until it has room.

        Args:
            receiver: which.
            settled: called with how many the peer has settled, of the deliveries that come from now on.

        Raises:
            SpoolError: the spool cannot be written.

        Cancelled: nothing has changed, or all of it.
        """
        name = receiver.name
        if name not in self._since or receiver.remote.unsettled is None:
            if name in self._since:
                _log.warning("the peer has begun the link %r anew: what it had not settled comes again", name)
            self._tags[name].clear()
            while True:
                try:
                    self._note(self._since | {name: self._spool.end})
                except SpoolFullError as full:
                    _log.warning("%s; receiving rests until there is room", full)
                    await trio.sleep(_REST)
                except OSError as wrong:  # not to be taken for a lost connection
                    raise SpoolError(f"the spool cannot be written: {wrong}") from wrong
                else:
                    break
        self._unsettled_stores[name].settled = settled

    def tags(self, came: Iterable[amqp.Delivery]) -> dict[str, list[str]]:
        """What a segment of these deliveries says: their tags, and those of all others that are unsettled."""
        self._coming = [(each.link.name, each.tag) for each in came if not each.settled]
        tags = {name: [tag.hex() for tag in known] for name, known in self._tags.items()}
        for name, tag in self._coming:
            tags.setdefault(name, []).append(tag.hex())
        return tags

    def written(self) -> None:
        """That segment is on the disk; its link may have gone meanwhile."""
        for name, tag in self._coming:
            self._tags.setdefault(name, {})[tag] = None


def _since(spool: Spool | LaneSpool) -> dict[str, int]:
    noted = spool.noted(_NOTE)
    try:
        return {} if noted is None else dict(json.loads(noted))
    except (ValueError, TypeError) as wrong:
        raise SpoolError(f"the file {_NOTE!r} of the spool is damaged: {wrong}") from None


class _SpooledDeliveries:
    """Hears what the peer has settled. What else becomes of a delivery is on the disk before it is said."""

    def __init__(self, tags: dict[bytes, None]) -> None:
        self.settled: Callable[[int], object] | None = None
        self._tags = tags
        self._old = set(tags)
        self._count = 0

    def sent(self, delivery: object, payload: bytes, message_format: int) -> None:
        """A receiver sends nothing."""

    def record_outcome(self, tag: bytes, state: object, then: Callable[[], object]) -> None:  # noqa: ARG002
        then()

    def record_acceptance(self, tag: bytes) -> None:
        """Nothing is said before it is true."""

    def drop(self, tag: bytes) -> None:
        self._tags.pop(tag, None)
        if tag in self._old:
            self._old.remove(tag)  # it had no credit of this link
            return
        self._count += 1
        if self._count == 1:  # a disposition names many: they are told of together
            trio.lowlevel.current_trio_token().run_sync_soon(self._tell)

    def _tell(self) -> None:
        count, self._count = self._count, 0
        if self.settled is not None:
            self.settled(count)

    def after(self, then: Callable[[], object]) -> None:
        then()
