"""Answer an arrival although its sender may be gone or may want no answer.

Knows arrivals and inlets; knows no node.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from trio_amqp10.broker.stores.base import error_for_peers
from trio_amqp10.core.errors import Condition, LocalProtocolError

from .node import why_not_durable

if TYPE_CHECKING:
    from trio_amqp10.broker.stores.base import StoreError

    from .node import Arrival, Inlet

_log = logging.getLogger("trio_amqp10.container")


def answer(inlet: Inlet, arrival: Arrival, failure: StoreError | None) -> None:
    """Answer an arrival once the store has written it, or has failed to.

    After a failure the message is still its sender's: it is kept where it came from, rejected, or, if the sender wants no
    answer, the link is closed.
    """
    if failure is None:
        accept(arrival)
        return
    if arrival.keep():
        return
    condition, description = error_for_peers(failure)
    if arrival.settled:  # The sender wants no answer, so only the link can be refused.
        inlet.close(condition, description, {"delivery-tag": arrival.tag})
    else:
        refuse(arrival, condition, description)


def accept(arrival: Arrival) -> None:
    """Accept an arrival; do nothing if its link is gone."""
    try:
        arrival.accept()
    except LocalProtocolError as gone:  # The node has the message, but its sender cannot be notified.
        _log.debug("not accepted: %s", gone)


def refuse(arrival: Arrival, condition: str, description: str) -> None:
    """Reject an arrival. If its sender wants no answer, the message is lost."""
    try:
        arrival.reject(condition, description)
    except LocalProtocolError as gone:
        _log.debug("not rejected: %s", gone)


def refuse_durable(inlet: Inlet, arrival: Arrival, address: str) -> None:
    """Refuse a durable message for a node that stores nothing (3.2.1).

    The message is rejected. If its sender wants no answer, the link is closed instead.
    """
    why = why_not_durable(address)
    if arrival.settled:
        inlet.close(Condition.PRECONDITION_FAILED.value, why)
    else:
        refuse(arrival, Condition.PRECONDITION_FAILED, why)


def release(arrival: Arrival) -> None:
    """Release an arrival, which its sender may send again.

    If the sender wants no answer, the message is lost.
    """
    try:
        arrival.release()
    except LocalProtocolError as gone:
        _log.debug("not released: %s", gone)
