"""What a node that holds messages answers to whoever sent them.

Knows arrivals and inlets; knows no node.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from trio_amqp10.container.stores.base import StoreFullError
from trio_amqp10.errors import Condition, LocalProtocolError

from .deadletters import Letter

if TYPE_CHECKING:
    from trio_amqp10.container.stores.base import StoreError

    from .node import Arrival, Inlet

__all__ = ["accept", "answer", "refuse"]

_log = logging.getLogger("trio_amqp10.container")


def accept(arrival: Arrival) -> None:
    """It is in safe hands, whether its sender still wants to know or not."""
    try:
        arrival.accept()
    except LocalProtocolError as gone:  # the message came all the same; its sender cannot know
        _log.debug("not accepted: %s", gone)


def refuse(arrival: Arrival, condition: Condition, description: str) -> None:
    """It is not held here; where its sender wants to know nothing, it is gone."""
    try:
        arrival.reject(condition, description)
    except LocalProtocolError as gone:
        _log.debug("not rejected: %s", gone)


def answer(inlet: Inlet, arrival: Arrival, failure: StoreError | None) -> None:
    """It is stored, or could not be: then its sender still has it, and is told so."""
    if failure is None:
        accept(arrival)
        return
    if isinstance(failure, StoreFullError):
        condition, description = Condition.RESOURCE_LIMIT_EXCEEDED, "the store is full"
    else:
        condition, description = Condition.INTERNAL_ERROR, "the store failed"
    if isinstance(arrival, Letter):
        arrival.keep()
    elif arrival.settled:  # nobody waits for an answer, so the link is what can be refused
        inlet.close(condition.value, description)
    else:
        refuse(arrival, condition, description)
