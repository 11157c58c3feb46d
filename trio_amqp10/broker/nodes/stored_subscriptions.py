"""The durable subscriptions of a topic in the store, and their filters (3.5.5).

A row has the owner of a subscription and its selection: as octets for the form 0, as text with the number for any other
form. Its messages are in the ``message_store``, under an address that no node can have. When the topic is made again, so is
the subscription, which waits for its subscriber as if that had just detached.

Knows rows; knows no links.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .form_registry import selection_of
from .message_store import HIDDEN, SUBSCRIPTIONS, QueueStore
from .node import SubscriptionTerms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trio_amqp10.broker.stores.base import Cell, Row

    from .form_registry import Selection, Wants
    from .message_store import MessageStore
    from .node import Owner


class StoredSubscriptions:
    """The stored subscriptions of one topic.

    Args:
        message_store: the message store of the container.
        topic: the address of the topic.
    """

    __slots__ = ("_message_store", "_topic")

    def __init__(self, message_store: MessageStore, topic: str) -> None:
        self._message_store = message_store
        self._topic = topic

    def enter(self, subscription_terms: SubscriptionTerms) -> QueueStore | None:
        """Store a durable subscription, and return the store of its messages.

        Return None for a subscription that does not survive the process.
        """
        if not (subscription_terms.durable and subscription_terms.lasting):
            return None
        key = self._key(subscription_terms)
        container, identity = subscription_terms.owner or (None, None)
        row: Row = (
            key,
            self._topic,
            subscription_terms.name,
            container,
            identity,
            int(subscription_terms.shared),
            subscription_terms.lasting,
            _cell_of(subscription_terms.selection),
        )
        self._message_store.journal.note(SUBSCRIPTIONS, key, row)
        return QueueStore(self._message_store, HIDDEN + key)

    def erase(self, subscription_terms: SubscriptionTerms) -> None:
        """Delete a stored subscription."""
        self._message_store.journal.drop(SUBSCRIPTIONS, self._key(subscription_terms))

    def recover(self) -> Iterator[tuple[SubscriptionTerms, Wants | None, QueueStore]]:
        """Yield the subscriptions of the last process.

        Each with its filter, and the store of its messages.
        """
        for row in self._message_store.take_subscriptions(self._topic):
            values: list[Any] = list(row)
            key, _, name, container, identity, shared, lasting, cell = values
            readable: list[tuple[Selection | None, Wants | None]] = []
            with self._message_store.journal.reading(SUBSCRIPTIONS, key):
                readable.append(_selection_of(cell, (container or "", identity)))
            if not readable:
                continue
            selection, wants = readable[0]
            subscription_terms = SubscriptionTerms(
                name=name,
                owner=None if container is None else (container, identity),
                shared=bool(shared),
                lasting=lasting,
                durable=True,
                selection=selection,
            )
            yield subscription_terms, wants, QueueStore(self._message_store, HIDDEN + key)

    def _key(self, subscription_terms: SubscriptionTerms) -> str:
        return json.dumps(
            [self._topic, subscription_terms.name, subscription_terms.owner, subscription_terms.shared]
        )


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
