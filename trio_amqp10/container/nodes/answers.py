"""What a node that stores messages answers to their senders.

Knows arrivals and inlets; knows no node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10.container.stores.base import StoreFullError
from trio_amqp10.errors import Condition

from .refusals import accept, refuse

if TYPE_CHECKING:
    from trio_amqp10.container.stores.base import StoreError

    from .node import Arrival, Inlet

__all__ = ["answer"]


def answer(inlet: Inlet, arrival: Arrival, failure: StoreError | None) -> None:
    """It is stored, or could not be: then its sender still has it, and is told so."""
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
