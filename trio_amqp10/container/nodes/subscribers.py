"""Subscribers: which durable subscriptions a store has, and what each of them takes (3.5.5).

A row says whose a subscription is, and what it selects: in octets for the form 0, as text with the number of any other; its
messages are in the ledger, under a name that no node can have. When its topic is made again, so is it,
and waits for its subscriber as if that one had just detached.

Knows rows; knows no links.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from .forms import selection_of
from .ledger import HIDDEN, SUBSCRIPTIONS, Book
from .node import Interest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trio_amqp10.container.stores.base import Cell, Row

    from .forms import Selection, Wants
    from .ledger import Ledger
    from .node import Owner

__all__ = ["Subscribers"]

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
            _cell_of(interest.selection),
        )
        self._ledger.journal.note(SUBSCRIPTIONS, key, row)
        return Book(self._ledger, HIDDEN + key)

    def erase(self, interest: Interest) -> None:
        """A subscription that had a book is over."""
        self._ledger.journal.drop(SUBSCRIPTIONS, self._key(interest))

    def recover(self) -> Iterator[tuple[Interest, Wants | None, Book]]:
        """Those that were there when the last process ended: each with its filter, and its book."""
        for row in self._ledger.take_subscriptions(self._topic):
            values: list[Any] = list(row)
            key, _, name, container, identity, shared, lasting, cell = values
            try:
                selection, wants = _selection_of(cell, (container or "", identity))
            except ValueError as fault:
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
            yield interest, wants, Book(self._ledger, HIDDEN + key)

    def _key(self, interest: Interest) -> str:
        return json.dumps([self._topic, interest.name, interest.owner, interest.shared])


def _cell_of(selection: Selection | None) -> Cell:
    if selection is None:
        return None
    octets = selection.to_octets()
    return octets if selection.number == 0 else f"{selection.number}:{octets.hex()}"


def _selection_of(cell: Cell, owner: Owner) -> tuple[Selection | None, Wants | None]:
    if cell is None:
        return None, None
    if isinstance(cell, bytes):
        return selection_of(0, cell, owner)
    number, _, octets = str(cell).partition(":")
    return selection_of(int(number), bytes.fromhex(octets), owner)
