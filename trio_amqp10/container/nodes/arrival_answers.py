"""Answers of a node to arrivals whose sender may be gone, or waits for none.

Knows arrivals and inlets; knows no node.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from trio_amqp10.container.stores.base import StoreFullError
from trio_amqp10.errors import Condition, LocalProtocolError

from .node import why_not_durable

if TYPE_CHECKING:
    from trio_amqp10.container.stores.base import StoreError

    from .node import Arrival, Inlet

__all__ = ["accept", "answer", "refuse", "refuse_durable", "release"]

_log = logging.getLogger("trio_amqp10.container")


def answer(inlet: Inlet, arrival: Arrival, failure: StoreError | None) -> None:
    """It is stored, or could not be: then its sender still has it, and is answered so."""
    if failure is None:
        accept(arrival)
        return
    if isinstance(failure, StoreFullError):
        condition, description = Condition.RESOURCE_LIMIT_EXCEEDED, "the store is full"
    else:
        condition, description = Condition.INTERNAL_ERROR, "the store failed"
    if arrival.keep():
        return
    if arrival.settled:  # its sender waits for no answer, so the link is what can be refused
        inlet.close(condition.value, description, {"delivery-tag": arrival.tag})
    else:
        refuse(arrival, condition, description)


def accept(arrival: Arrival) -> None:
    """It is in safe hands, whether its sender still wants to know or not."""
    try:
        arrival.accept()
    except LocalProtocolError as gone:  # the message came all the same; its sender cannot know
        _log.debug("not accepted: %s", gone)


def refuse(arrival: Arrival, condition: str, description: str) -> None:
    """It is not taken; if its sender waits for no answer, it is gone."""
    try:
        arrival.reject(condition, description)
    except LocalProtocolError as gone:
        _log.debug("not rejected: %s", gone)


def refuse_durable(inlet: Inlet, arrival: Arrival, address: str) -> None:
    """It is to survive, and nothing here does: it is rejected, or its link ends where that cannot be said (3.2.1)."""
    why = why_not_durable(address)
    if arrival.settled:
        inlet.close(Condition.PRECONDITION_FAILED.value, why)
    else:
        refuse(arrival, Condition.PRECONDITION_FAILED, why)


def release(arrival: Arrival) -> None:
    """It is not taken, and its sender may send it again; if that one waits for no answer, it is gone."""
    try:
        arrival.release()
    except LocalProtocolError as gone:
        _log.debug("not released: %s", gone)
