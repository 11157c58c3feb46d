"""Subscribers: which durable subscriptions a store has, and what each of them takes (3.5.5).

A row says whose a subscription is, and has its filters as the octets that an attach would carry; its
messages are in the ledger, under a name that no node can have. When its topic is made again, so is it,
and waits for its subscriber as if that one had just detached.

Knows rows and filters; knows no links.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from trio_amqp10.errors import RemoteProtocolError
from trio_amqp10.filters import FilterError, parse_filters
from trio_amqp10.wire.decode import decode
from trio_amqp10.wire.encode import encode

from .ledger import HIDDEN, SUBSCRIPTIONS, Book
from .node import Interest
from .origins import origin_of_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trio_amqp10.container.stores.base import Row
    from trio_amqp10.filters import FilterSet
    from trio_amqp10.message import Message

    from .ledger import Ledger
    from .node import Owner

__all__ = ["Subscribers", "wanted_by"]

_log = logging.getLogger("trio_amqp10.container")


class Subscribers:
    """The durable subscriptions of one topic.

    Args:
        ledger: of the container.
        topic: its address.
    """

    __slots__ = ("_ledger", "_topic")

    def __init__(self, ledger: Ledger, topic: str) -> None:
        self._ledger = ledger
        self._topic = topic

    def enter(self, interest: Interest) -> Book | None:
        """Keep a subscription, and have a book for it; None for one that is not to survive the process."""
        if not (interest.durable and interest.lasting):
            return None
        key = self._key(interest)
        container, identity = interest.owner or (None, None)
        row: Row = (
            key,
            self._topic,
            interest.name,
            container,
            identity,
            int(interest.shared),
            interest.lasting,
            encode(interest.selection or {}),
        )
        self._ledger.journal.note(SUBSCRIPTIONS, key, row)
        return Book(self._ledger, HIDDEN + key)

    def erase(self, interest: Interest) -> None:
        """A subscription that had a book is over."""
        self._ledger.journal.drop(SUBSCRIPTIONS, self._key(interest))

    def recover(self) -> Iterator[tuple[Interest, Callable[[Message, str | None], bool] | None, Book]]:
        """Those that were there when the last process ended: each with its filter, and its book."""
        for row in self._ledger.take_subscriptions(self._topic):
            values: list[Any] = list(row)
            key, _, name, container, identity, shared, lasting, octets = values
            try:
                selection = decode(octets)[0]
                filters = parse_filters(selection)
            except (RemoteProtocolError, FilterError) as fault:
                _log.error("the subscription %s cannot be taken up again: %s", key, fault)
                continue
            interest = Interest(
                name=name,
                owner=None if container is None else (container, identity),
                shared=bool(shared),
                lasting=lasting,
                durable=True,
                selection=selection,
            )
            yield (
                interest,
                wanted_by((container or "", identity), filters),
                Book(self._ledger, HIDDEN + key),
            )

    def _key(self, interest: Interest) -> str:
        return json.dumps([self._topic, interest.name, interest.owner, interest.shared])


def wanted_by(owner: Owner, filters: FilterSet) -> Callable[[Message, str | None], bool] | None:
    """Whether this peer wants a message, given its origin; None if it wants all (3.5.8)."""
    if not filters:
        return None
    mine = origin_of_owner(owner)

    def wants(message: Message, origin: str | None) -> bool:
        return filters.matches(message, link_container_id=mine, origin=origin)

    return wants
